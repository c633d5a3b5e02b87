//! Problem files: what is read, what is refused and how the refusal reads.

use minfer_memplan::csv::{CsvError, Table, read, write};
use minfer_memplan::{Buffer, Problem};

fn error(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn columns_come_in_any_order_and_by_alias() {
    let plain = read("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n").unwrap();
    assert_eq!(plain.ids, ["b1", "b2"]);
    assert_eq!(plain.problem, Problem::new(vec![Buffer::new(0, 3, 4), Buffer::new(3, 9, 4)]));
    for text in [
        "size,buffer,start,upper\n4,b1,0,3\n4,b2,3,9",
        "buffer_id,begin,end,size\r\nb1,0,2,4\r\n\r\nb2,3,8,4\r\n",
        "\u{feff} id , lower , upper , size , hint , gaps , alignment , offset\nb1, 0, 3, 4, -1, , , \nb2,3,9,4,7,,1,\n",
    ] {
        assert_eq!(read(text), Ok(plain.clone()), "{text:?}");
    }
}

#[test]
fn alignment_and_offset_are_read_and_written() {
    let text = "id,lower,upper,size,alignment,offset\na,0,3,4,16,\n\"b, \"\"x\"\"\",3,9,4,1,32\n";
    let table = read(text).unwrap();
    assert_eq!(table.ids, ["a", "b, \"x\""]);
    assert_eq!(table.problem.buffers, [Buffer::new(0, 3, 4).aligned(16), Buffer::new(3, 9, 4).fixed_at(32)]);
    assert_eq!(write(&table, None).unwrap(), text);
    let solved = write(&table, Some(&[0, 32])).unwrap();
    assert_eq!(solved, "id,lower,upper,size,alignment,offset\na,0,3,4,16,0\n\"b, \"\"x\"\"\",3,9,4,1,32\n");
}

#[test]
fn errors_name_line_column_and_text() {
    assert_eq!(error(" \n"), "no header: the file is empty");
    assert_eq!(error("id,lower,size\n"), "line 1: no column \"upper\"");
    assert_eq!(error("\nid,lower,upper,size,colour\n"), "line 2: unknown column \"colour\"");
    assert_eq!(error("id,lower,upper,size,end\n"), "line 1: column \"end\" is there twice, again as \"end\"");
    assert_eq!(error("id,lower,upper,size,start\n"), "line 1: column \"lower\" is there twice, again as \"start\"");
    let with = |line: &str| error(&format!("id,lower,upper,size,gaps\n{line}\n"));
    assert_eq!(with("a,0,1,4"), "line 2: expected 5 cells, got 4");
    let number = "expected an unsigned 64-bit number, got";
    assert_eq!(with("a,0,-1,4,"), format!("line 2, column \"upper\": {number} \"-1\""));
    assert_eq!(with("a,0,1,4 KiB,"), format!("line 2, column \"size\": {number} \"4 KiB\""));
    assert_eq!(
        with("a,0,9,4,2-3@0:2"),
        "line 2, column \"gaps\": gaps in a lifetime are not supported, got \"2-3@0:2\""
    );
    assert_eq!(with("a,0,1,4,\n\na,0,1,4,"), "line 4, column \"id\": \"a\" is there twice");
    assert_eq!(with("\"a,0,1,4,"), "line 2: unbalanced quotes");
    assert_eq!(with("\"a\"b,0,1,4,"), "line 2: unbalanced quotes");
    let past = format!("id,lower,end,size\na,0,{},4", u64::MAX);
    assert_eq!(error(&past), format!("line 2, column \"end\": {number} \"{}\"", u64::MAX));
}

#[test]
fn what_cannot_be_written_is_refused() {
    let table = Table { ids: vec!["a\nb".to_owned()], problem: Problem::new(vec![Buffer::new(0, 1, 1)]) };
    assert_eq!(write(&table, None), Err(CsvError::LineBreak { buffer: 0, id: "a\nb".to_owned() }));
    assert_eq!(write(&table, Some(&[])), Err(CsvError::Count { expected: 1, got: 0 }));
}
