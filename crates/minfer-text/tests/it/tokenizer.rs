//! Encoding and decoding with small vocabularies made by hand.

use crate::small;
use minfer_text::{
    DecodeOptions, EncodeOptions, EndSource, PreTokenizer, PromptPart, Strip, TokenKind, TokenTable, Tokenizer,
};
use proptest::prelude::*;

const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };
const PARSED: EncodeOptions = EncodeOptions { add_special: false, parse_special: true };

fn bpe() -> Tokenizer {
    Tokenizer::new(small::bpe("gpt-2", false)).unwrap()
}

fn spm() -> Tokenizer {
    Tokenizer::new(small::spm(true)).unwrap()
}

fn pieces(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    ids.iter().map(|&id| String::from_utf8_lossy(tokenizer.token_text(id).unwrap()).into_owned()).collect()
}

fn encoded(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    pieces(tokenizer, &tokenizer.encode(text, PLAIN))
}

#[test]
fn bpe_merges_by_rank_then_from_the_left() {
    let t = bpe();
    assert_eq!(encoded(&t, "lower"), ["lower"]);
    assert_eq!(encoded(&t, " lower"), [" low", "er"]);
    assert_eq!(encoded(&t, "aaa"), ["aa", "a"]);
    assert_eq!(encoded(&t, "aaaaaaa"), ["aaaa", "aa", "a"]);
    assert_eq!(encoded(&t, "éé"), ["é", "é"]);
    assert_eq!(t.encode("ü", PLAIN), [0xc3, 0xbc]);
    assert!(t.encode("", PLAIN).is_empty());
}

#[test]
fn pre_tokenizer_bounds_the_merges() {
    assert_eq!(encoded(&bpe(), "12"), ["12"]);
    for pre in ["smollm", "qwen2"] {
        let t = Tokenizer::new(small::bpe(pre, false)).unwrap();
        assert_eq!(encoded(&t, "12"), ["1", "2"]);
    }
}

#[test]
fn ignore_merges_takes_the_whole_word() {
    let whole = Tokenizer::new(small::bpe("llama-bpe", true)).unwrap();
    assert_eq!(encoded(&whole, " Việt"), [" Việt"]);
    let merged = Tokenizer::new(small::bpe("llama-bpe", false)).unwrap();
    assert_eq!(merged.encode(" Việt", PLAIN).len(), " Việt".len());
}

#[test]
fn bytes_outside_utf8_survive() {
    for t in [bpe(), spm()] {
        for bytes in [&b"\xe6\xad"[..], b"a\xff\xfeb", b"\x80", b"\xf0\x9f\xa6"] {
            assert_eq!(t.decode(&t.encode(bytes, PLAIN)), bytes);
        }
    }
}

#[test]
fn control_tokens_in_text_are_text_unless_parsed() {
    for t in [bpe(), spm()] {
        let eos = t.special().eos.unwrap();
        let spelled = String::from_utf8(t.token_text(eos).unwrap().to_vec()).unwrap();
        let text = format!("a{spelled}b");
        assert!(!t.encode(&text, PLAIN).contains(&eos));
        assert_eq!(t.decode(&t.encode(&text, PLAIN)), text.as_bytes());
        let parsed = t.encode(&text, PARSED);
        assert!(parsed.contains(&eos));
        assert_eq!(t.decode(&parsed), b"ab");
        let shown = DecodeOptions { show_special: true, continues: false };
        assert_eq!(t.decode_with(&parsed, shown), text.as_bytes());
        let tool = t.token_id("<tool>").unwrap();
        assert!(t.encode("x<tool>y", PLAIN).contains(&tool));
        assert_eq!(t.token_bytes(tool).unwrap(), &b"<tool>"[..]);
        assert_eq!(t.token_bytes(eos).unwrap(), &b""[..]);
        assert_eq!(t.token_bytes(u32::MAX), None);
    }
}

#[test]
fn bos_comes_once_and_only_when_asked() {
    let t = bpe();
    let bos = t.special().bos.unwrap();
    let with = EncodeOptions { add_special: true, parse_special: true };
    assert_eq!(t.encode("", with), [bos]);
    assert_eq!(t.encode("a", with), [bos, u32::from(b'a')]);
    assert_eq!(t.encode("<|start|>a", PARSED), [bos, u32::from(b'a')]);
}

#[test]
fn parts_are_one_text_with_control_tokens_from_the_scaffold_only() {
    let t = bpe();
    let (start, end) = (t.special().bos.unwrap(), t.special().eos.unwrap());
    let parts =
        [PromptPart::Scaffold("<|start|>lo"), PromptPart::Content("w<|im_end|>"), PromptPart::Scaffold("<|im_end|>")];
    let ids = t.encode_parts(&parts, false);
    assert_eq!(ids.first(), Some(&start));
    assert_eq!(ids.iter().filter(|&&id| id == end).count(), 1);
    assert_eq!(pieces(&t, &ids)[1], "low");
    // Nor is one put together from both.
    let split = [
        PromptPart::Scaffold("<|im"),
        PromptPart::Content("_end|>"),
        PromptPart::Scaffold("<|im_"),
        PromptPart::Scaffold("end|>"),
    ];
    assert!(!t.encode_parts(&split, false).contains(&end));
    assert!(t.encode_parts(&[], false).is_empty());
}

#[test]
fn spm_merges_by_score_then_from_the_left() {
    let t = spm();
    assert_eq!(encoded(&t, "abc"), [" ab", "c"]);
    assert_eq!(encoded(&t, "cbc"), [" ", "c", "bc"]);
    assert_eq!(encoded(&t, "c  a"), [" ", "c", " ", " a"]);
    assert!(t.encode("", PLAIN).is_empty());
}

#[test]
fn spm_space_prefix_is_at_the_text_start_and_after_the_begin_token() {
    let t = spm();
    assert_eq!(encoded(&t, "a"), [" a"]);
    // The same ids whether the begin token is spelled or added.
    assert_eq!(pieces(&t, &t.encode("<s>a", PARSED)), ["<s>", " a"]);
    assert_eq!(pieces(&t, &t.encode("a</s>a<s>a", PARSED)), [" a", "</s>", "a", "<s>", " a"]);
    assert_eq!(t.decode(&t.encode("a</s>a<s> a", PARSED)), b"aa a");
    assert_eq!(pieces(&t, &t.encode("a<tool>a", PARSED)), [" a", "<tool>", "a"]);
    // The prefix is taken off again, a space of the text is not.
    for text in ["a", " a", "  a b", "", " "] {
        assert_eq!(t.decode(&t.encode(text, PLAIN)), text.as_bytes());
    }
    let with_bos = EncodeOptions { add_special: true, parse_special: false };
    assert_eq!(t.decode(&t.encode("a", with_bos)), b"a");
    let continues = DecodeOptions { show_special: false, continues: true };
    assert_eq!(t.decode_with(&t.encode("a", PLAIN), continues), b" a");
}

#[test]
fn spm_falls_back_to_bytes_or_to_one_unknown() {
    let t = spm();
    let ids = t.encode("aü", PLAIN);
    assert_eq!(ids[1..], [3 + 0xc3, 3 + 0xbc]);
    let t = Tokenizer::new(small::spm(false)).unwrap();
    assert_eq!(encoded(&t, "aüxb"), [" a", "<unk>", "b"]);
    // The text of a byte token is not that byte.
    let t = spm();
    assert_eq!(t.decode(&t.encode("<0x0A>", PLAIN)), b"<0x0A>");
    assert_eq!(t.encode("\n", PLAIN)[1..], [3 + 10]);
}

#[test]
fn merges_on_characters_fall_back_to_bytes() {
    let t = Tokenizer::new(small::gemma()).unwrap();
    assert_eq!(t.n_merges(), 5);
    assert_eq!(encoded(&t, "a ab abc"), ["a", " ab", " ab", "c"]);
    assert_eq!(encoded(&t, "abc  a"), ["ab", "c", " ", " a"]);
    assert_eq!(t.encode("ü", PLAIN), [3 + 0xc3, 3 + 0xbc]);
    assert_eq!(encoded(&t, "éa▁"), ["é", "a", " "]);
    // A byte token is not the character of that byte.
    assert_eq!(t.encode(b"\xffa", PLAIN)[0], 3 + 0xff);
}

#[test]
fn unigram_takes_the_best_cut_of_the_whole() {
    let t = Tokenizer::new(small::unigram(true, false)).unwrap();
    // Scores: "▁" 0, a -1, b -2, c -3, ab -4, bc -5, "▁a" -6, "▁ab" -7: a + b is better than ab, but not longer cuts of " ab".
    assert_eq!(encoded(&t, "ab"), [" ", "a", "b"]);
    assert_eq!(encoded(&t, "a  b"), [" ", "a", " ", " ", "b"]);
    assert_eq!(t.encode("ü", PLAIN)[1..], [3 + 0xc3, 3 + 0xbc]);
    assert_eq!(t.decode(&t.encode("  a b ", PLAIN)), b"  a b ");
    let mut spec = small::unigram(false, true);
    let mut table = TokenTable::new();
    for id in 0..spec.tokens.len() as u32 {
        let score =
            if spec.tokens.bytes(id) == Some("▁ab".as_bytes()) { -0.5 } else { spec.tokens.scores()[id as usize] };
        table.push(spec.tokens.bytes(id).unwrap(), spec.tokens.kind(id).unwrap(), Some(score)).unwrap();
    }
    spec.tokens = table;
    let t = Tokenizer::new(spec).unwrap();
    assert_eq!(encoded(&t, "  ab   xyab "), [" ab", " ", "<unk>", "a", "b"]);
    assert!(t.encode("   ", PLAIN).is_empty());
}

#[test]
fn tokens_take_white_space_along() {
    let mut spec = small::spm(true);
    let tool = spec.tokens.len() as u32 - 1;
    let eos = spec.special.eos.unwrap();
    spec.strips = vec![Strip { id: tool, left: true, right: false }, Strip { id: eos, left: false, right: true }];
    let t = Tokenizer::new(spec).unwrap();
    assert_eq!(
        pieces(&t, &t.encode("a \n\u{3000}<tool> b</s> \n </s>\u{a0}c", PARSED)),
        [" a", "<tool>", " ", "b", "</s>", "</s>", "c"]
    );
    // Spelled in user text it is text, and so is what follows.
    assert_eq!(t.decode(&t.encode("</s> c", PLAIN)), b"</s> c");
    let parts = [PromptPart::Scaffold("</s>"), PromptPart::Content(" c </s> c")];
    assert_eq!(t.decode(&t.encode_parts(&parts, false)), b"c </s> c");
}

#[test]
fn longest_special_wins_at_each_position() {
    let mut spec = small::bpe("gpt-2", false);
    for text in ["<|im_end|>!", "\n\n\n", "\n\n"] {
        let kind = TokenKind::UserDefined;
        spec.tokens.push(text.as_bytes(), kind, None).unwrap();
    }
    let t = Tokenizer::new(spec).unwrap();
    let long = t.token_id("<|im_end|>!").unwrap();
    assert_eq!(t.encode("<|im_end|>!", PARSED), [long]);
    assert_eq!(t.encode("<|im_end|>!", PLAIN), [long]);
    assert_eq!(t.encode("<|im_end|>", PARSED), [t.special().eos.unwrap()]);
    let three = t.token_id("\n\n\n").unwrap();
    assert_eq!(t.encode("\n\n\n\n\n\n\n", PLAIN), [three, three, 10]);
}

#[test]
fn end_tokens_are_a_union_with_sources() {
    let mut spec = small::bpe("gpt-2", false);
    let mut push = |text: &str, kind| spec.tokens.push(text.as_bytes(), kind, None).unwrap();
    let known = push("<|endoftext|>", TokenKind::Normal);
    let tag = push("</s>", TokenKind::UserDefined);
    let turn = push("turn", TokenKind::Control);
    spec.special.eot = Some(turn);
    let eos = spec.special.eos.unwrap();
    let t = Tokenizer::new(spec).unwrap();
    let found: Vec<_> = t.end_tokens().iter().map(|e| (e.id, e.source)).collect();
    let expected = [(eos, EndSource::Eos), (known, EndSource::KnownText), (turn, EndSource::Eot)];
    assert_eq!(found, expected);
    assert!(t.is_end_of_generation(known) && !t.is_end_of_generation(tag));
    assert!(!t.is_end_of_generation(u32::MAX));
}

#[test]
fn equal_tokens_give_the_lowest_id() {
    let mut spec = small::bpe("gpt-2", false);
    spec.tokens.push(b"lower", TokenKind::Normal, None).unwrap();
    let t = Tokenizer::new(spec).unwrap();
    assert_eq!(t.token_id("lower"), Some(t.encode("lower", PLAIN)[0]));
}

#[test]
fn long_runs_are_encoded() {
    let mut texts: Vec<Vec<u8>> = [("a", 26_000), ("A", 43_000), ("Z", 128_000)]
        .into_iter()
        .chain([("\n", 100_000), (" ", 100_000)])
        .map(|(c, n)| c.repeat(n).into_bytes())
        .collect();
    let mut state = 1u64;
    let random = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    });
    texts.push(random.take(1_000_000).collect());
    for t in [bpe(), spm()] {
        for text in &texts {
            assert_eq!(&t.decode(&t.encode(text, PLAIN)), text);
        }
    }
}

#[test]
fn heap_bytes_stay_near_the_blob() {
    let mut spec = small::spm(true);
    let mut tokens = TokenTable::new();
    for id in 0..100_000 {
        let text = format!("token{id}");
        let kind = TokenKind::Normal;
        tokens.push(text.as_bytes(), kind, Some(0.0)).unwrap();
    }
    spec.tokens = tokens;
    let t = Tokenizer::new(spec).unwrap();
    // 10 bytes of text, 4 of offset, 1 of kind, 4 of score and at most 12 of lookup each.
    assert!(t.heap_bytes() < 100_000 * 31 + 4096, "{}", t.heap_bytes());
}

proptest! {
    #[test]
    fn decode_undoes_encode(text in "\\PC{0,60}|[a1 \\n\t'<é|_>im end]{0,60}") {
        for pre in PreTokenizer::names().filter(|pre| !small::SPELLED.contains(pre)) {
            let t = Tokenizer::new(small::bpe(pre, pre == "llama-bpe")).unwrap();
            let ids = t.encode(&text, PLAIN);
            prop_assert_eq!(t.decode(&ids), text.as_bytes());
        }
        let t = spm();
        let escaped = text.replace('▁', " ");
        prop_assert_eq!(t.decode(&t.encode(&text, PLAIN)), escaped.as_bytes());
    }

    #[test]
    fn encode_takes_any_bytes(
        text in prop::collection::vec(any::<u8>(), 0..200),
        add_special: bool,
        parse_special: bool,
    ) {
        let opts = EncodeOptions { add_special, parse_special };
        for t in [bpe(), spm()] {
            let ids = t.encode(&text, opts);
            prop_assert!(ids.iter().all(|&id| (id as usize) < t.n_vocab()));
            if !parse_special {
                prop_assert_eq!(t.decode(&ids), text.clone());
            }
        }
    }

    /// Where a part ends changes no id, as long as no control token is spelled.
    #[test]
    fn parts_equal_the_whole(text in "[lower a\n1]{0,40}", at in 0usize..40) {
        let (left, right) = text.split_at(at.min(text.len()));
        for t in [bpe(), spm()] {
            let parts = [PromptPart::Scaffold(left), PromptPart::Content(right)];
            prop_assert_eq!(t.encode_parts(&parts, true), t.encode(&text, EncodeOptions {
                add_special: true,
                parse_special: true,
            }));
        }
    }
}
