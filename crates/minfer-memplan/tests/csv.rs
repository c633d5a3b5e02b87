//! Problem files: what is read, what is refused and how the refusal reads.

use minfer_memplan::csv::{CsvError, Table, line_of, read, with_offsets, write};
use minfer_memplan::{Buffer, Problem, svg};

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
    for gap in ["2", "2-", "-3", "2-3-4", "a-b", "2:3", "2--3", "+2-3", "2-+3", "2-99999999999999999999"] {
        let expected = format!("line 2, column \"gaps\": expected lower-upper, got {gap:?}");
        assert_eq!(with(&format!("a,0,9,4,1-2 {gap}")), expected);
    }
    assert_eq!(
        with("a,0,9,4,1-2 2-3@0:2"),
        "line 2, column \"gaps\": idle periods that keep a part of the buffer (after \"@\") are not supported, got \"2-3@0:2\""
    );
    // Beside an `end` the last step is named, and the one after it is needed.
    let past = format!("id,lower,end,size,gaps\na,0,9,4,1-{}", u64::MAX);
    let gap = format!("1-{}", u64::MAX);
    assert_eq!(error(&past), format!("line 2, column \"gaps\": the step after {gap:?} leaves 64 bits"));
    assert_eq!(with("a,0,1,4,\n\na,0,1,4,"), "line 4, column \"id\": \"a\" is there twice");
    assert_eq!(with("\"a,0,1,4,"), "line 2: unbalanced quotes");
    assert_eq!(with("\"a\"b,0,1,4,"), "line 2: unbalanced quotes");
    let past = format!("id,lower,end,size\na,0,{},4", u64::MAX);
    assert_eq!(error(&past), format!("line 2, column \"end\": the step after \"{}\" leaves 64 bits", u64::MAX));
}

/// Digits and nothing else, in every column; spaces around a cell are no part of it, those in quotes are.
#[test]
fn numbers_are_digits() {
    let row = |column: usize, cell: &str| {
        let mut cells = ["a", "0", "9", "4", "1", "8"];
        cells[column] = cell;
        format!("id,lower,upper,size,alignment,offset\n{}\n", cells.join(","))
    };
    for column in 1..6 {
        for cell in ["+7", "-7", "7.0", "0x7", "7_000", "1e3", "\u{667}", "\" 7\"", "7 7", "18446744073709551616"] {
            let read = read(&row(column, cell));
            assert!(matches!(read, Err(CsvError::Number { line: 2, .. })), "column {column}: {cell:?} gave {read:?}");
        }
        for cell in ["7", " 7 ", "\t7", "007", "\"7\""] {
            assert_eq!(read(&row(column, cell)), read(&row(column, "7")), "column {column}: {cell:?}");
        }
        let empty = read(&row(column, ""));
        assert_eq!(empty.is_ok(), column > 3, "column {column}: {empty:?}");
    }
    assert_eq!(read("id,lower,upper,size\n\" a \",0,1,1\n b ,0,1,1\n").unwrap().ids, [" a ", "b"]);
}

#[test]
fn every_buffer_has_its_line() {
    let text = "\u{feff}\r\nid,lower,upper,size\r\n\r\na,0,3,4\r\n \nb,3,9,4";
    assert_eq!([0, 1, 2, usize::MAX].map(|buffer| line_of(text, buffer)), [Some(4), Some(6), None, None]);
    assert_eq!(line_of("", 0), None);
}

#[test]
fn gaps_are_read_and_written() {
    let text = "id,lower,upper,size,alignment,gaps,offset\na,0,9,4,1,2-3 5-8,\nb,0,9,4,8,,16\n";
    let table = read(text).unwrap();
    let [a, b] = &table.problem.buffers[..] else { panic!("{table:?}") };
    assert_eq!(a, &Buffer::new(0, 9, 4).idle_in(2..3).idle_in(5..8));
    assert_eq!(b, &Buffer::new(0, 9, 4).aligned(8).fixed_at(16));
    assert_eq!(write(&table, None).unwrap(), text);
    // Any order and more spaces; beside an `end` both bounds are inclusive. The answer keeps the cell as it was.
    let text = "gaps,id,lower,end,size\n 5-7  2-2 ,a,0,8,4\n,b,0,8,4\n";
    let other = read(text).unwrap();
    assert_eq!(other.problem.buffers, [a.clone(), Buffer::new(0, 9, 4)]);
    assert_eq!(with_offsets(text, &[0, 4]).unwrap(), "gaps,id,lower,end,size,offset\n5-7  2-2,a,0,8,4,0\n,b,0,8,4,4\n");
    // What makes no sense is read, and refused by the problem.
    assert!(read("id,lower,upper,size,gaps\na,3,5,4,9-7\n").unwrap().problem.validate().is_err());
}

#[test]
fn what_cannot_be_written_is_refused() {
    let table = Table { ids: vec!["a\nb".to_owned()], problem: Problem::new(vec![Buffer::new(0, 1, 1)]) };
    assert_eq!(write(&table, None), Err(CsvError::LineBreak { buffer: 0, id: "a\nb".to_owned() }));
    assert_eq!(write(&table, Some(&[])), Err(CsvError::Count { expected: 1, got: 0 }));
}

#[test]
fn answers_keep_all_columns() {
    let text = "\u{feff}size,\"buffer\",start,end,hint\r\n\r\n4,\"b,1\",0,2,7\r\n 4 ,b2,3,8,\r\n";
    assert_eq!(
        with_offsets(text, &[0, 4]).unwrap(),
        "size,buffer,start,end,hint,offset\n4,\"b,1\",0,2,7,0\n4,b2,3,8,,4\n"
    );
    let text = "id,offset,lower,upper,size\na,,0,3,4\nb,8,0,3,4\n";
    assert_eq!(with_offsets(text, &[0, 8]).unwrap(), "id,offset,lower,upper,size\na,0,0,3,4\nb,8,0,3,4\n");
    assert_eq!(with_offsets(text, &[0]), Err(CsvError::Count { expected: 2, got: 1 }));
    assert_eq!(with_offsets("", &[]), Err(CsvError::Empty));
}

#[test]
fn pictures_show_every_buffer_and_hold_any_name() {
    let table = read("id,lower,upper,size\n<a&b>,0,3,4\nb,3,9,5\nempty,3,3,0\n").unwrap();
    let picture = svg::draw(&table, &[0, 0, 0], &[]);
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert!(picture.contains("<title>&lt;a&amp;b&gt;: [0, 3), 4 bytes at 0</title>"), "{picture}");
    assert_eq!(picture.matches("<title>").count(), 2);
    assert_eq!(picture, svg::draw(&table, &[0, 0, 0], &[]));
    let table = read("id,lower,upper,size,gaps\na,0,9,4,2-3 5-7\nb,2,3,4,\n").unwrap();
    let picture = svg::draw(&table, &[0, 0], &[]);
    let title = "<title>a: [0, 9), idle during [2, 3), idle during [5, 7), 4 bytes at 0</title>";
    // One name for all three spans: with a name each, the picture would grow with the square of the idle periods.
    assert_eq!((picture.matches(title).count(), picture.matches("<title>").count()), (1, 2), "{picture}");
    assert_eq!(picture.matches("<rect x=").count(), 4, "{picture}");
    // What is marked is drawn over all else.
    let [plain, marked] = [&[][..], &[0]].map(|marked| svg::draw(&table, &[0, 0], marked));
    let red = "<g fill=\"#e01b24\"";
    assert!(!plain.contains(red) && marked.matches(red).count() == 1, "{marked}");
    assert!(marked.find("<title>b:").unwrap() < marked.find(red).unwrap(), "{marked}");
    // Whatever it is given: no panic, no number that is none.
    let odd = Table {
        ids: vec![],
        problem: Problem::new(vec![
            Buffer::new(9, 3, u64::MAX),
            Buffer::new(0, u64::MAX, u64::MAX).idle_in(7..7).idle_in(3..u64::MAX).idle_in(0..2),
        ]),
    };
    for table in [Table::default(), odd] {
        let picture = svg::draw(&table, &[u64::MAX], &[1, 7]);
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }
}
