//! Pre-tokenizers against golden splits (`golden/splits.tsv`) and on hostile input.

use minfer_text::PreTokenizer;
use proptest::prelude::*;

fn split(pre: PreTokenizer, text: &[u8]) -> Vec<&[u8]> {
    let mut words = Vec::new();
    pre.split(text, |word| words.push(word));
    words
}

#[test]
fn splits_are_the_golden_ones() {
    let golden = include_str!("../golden/splits.tsv");
    let mut n = 0;
    let mut wrong = Vec::new();
    for line in golden.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let pre = PreTokenizer::from_name(fields[0]).unwrap();
        let text: String = serde_json::from_str(fields[1]).unwrap();
        let expected: Vec<String> = serde_json::from_str(fields[2]).unwrap();
        let words: Vec<&str> =
            split(pre, text.as_bytes()).into_iter().map(|word| std::str::from_utf8(word).unwrap()).collect();
        if words != expected {
            wrong.push(format!("{line}\n  got {words:?}"));
        }
        n += 1;
    }
    assert!(n > 100);
    let shown = wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {n} differ:\n{shown}", wrong.len());
}

#[test]
fn every_name_leads_to_a_pre_tokenizer() {
    for name in PreTokenizer::names() {
        assert!(PreTokenizer::from_name(name).is_some());
    }
    assert_eq!(PreTokenizer::from_name("no-such-name"), None);
}

/// Partial characters stay in one word with the symbols around them.
#[test]
fn bytes_outside_utf8_are_symbols() {
    for name in PreTokenizer::names() {
        let pre = PreTokenizer::from_name(name).unwrap();
        assert_eq!(split(pre, b"\xe6\xad"), [b"\xe6\xad"]);
    }
    let pre = PreTokenizer::from_name("llama-bpe").unwrap();
    assert_eq!(split(pre, b"a \xff\xfeb"), [&b"a"[..], b" \xff\xfe", b"b"]);
}

proptest! {
    #[test]
    fn words_are_the_whole_text(text in prop::collection::vec(any::<u8>(), 0..200)) {
        for name in PreTokenizer::names() {
            let words = split(PreTokenizer::from_name(name).unwrap(), &text);
            prop_assert!(words.iter().all(|word| !word.is_empty()));
            prop_assert_eq!(&words.concat(), &text);
        }
    }
}
