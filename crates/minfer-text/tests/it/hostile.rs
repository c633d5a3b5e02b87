//! Specifications that make no sense: an error or a documented meaning, never a panic.

use crate::small;
use minfer_text::{
    EncodeOptions, Merges, PreTokenizer, SpecialTokens, TextError, TokenKind, TokenTable, Tokenizer, TokenizerKind,
    TokenizerSpec,
};
use proptest::prelude::*;

const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };

fn error(spec: TokenizerSpec) -> TextError {
    Tokenizer::new(spec).unwrap_err()
}

#[test]
fn empty_vocabularies_are_refused() {
    let mut spec = small::bpe("gpt-2", false);
    spec.tokens = TokenTable::new();
    assert_eq!(error(spec), TextError::EmptyVocabulary);
}

#[test]
fn ids_outside_the_vocabulary_are_refused() {
    let n_vocab = small::spm(true).tokens.len() as u32;
    for id in [u32::MAX, n_vocab] {
        let mut spec = small::spm(true);
        spec.special.eos = Some(id);
        let role = "eos";
        assert_eq!(error(spec), TextError::SpecialIdOutOfRange { role, id, n_vocab });
    }
}

#[test]
fn flags_need_their_tokens() {
    let mut spec = small::spm(true);
    spec.special.bos = None;
    let (flag, role) = ("add_bos", "bos");
    assert_eq!(error(spec), TextError::SpecialMissing { flag, role });
    let mut spec = small::spm(true);
    (spec.add_eos, spec.special.eos) = (true, None);
    let (flag, role) = ("add_eos", "eos");
    assert_eq!(error(spec), TextError::SpecialMissing { flag, role });
}

#[test]
fn sentencepiece_needs_all_scores() {
    let mut spec = small::spm(true);
    let got = spec.tokens.len();
    spec.tokens.push(b"x", TokenKind::Normal, None).unwrap();
    let expected = got + 1;
    assert_eq!(error(spec), TextError::ScoresMissing { expected, got });
}

fn one_token(kind: TokenizerKind, unk: Option<u32>) -> Result<Tokenizer, TextError> {
    let mut tokens = TokenTable::new();
    tokens.push(b"a", TokenKind::Normal, Some(0.0)).unwrap();
    Tokenizer::new(TokenizerSpec {
        kind,
        tokens,
        special: SpecialTokens { unk, ..SpecialTokens::default() },
        add_bos: false,
        add_eos: false,
        add_space_prefix: true,
        strips: Vec::new(),
    })
}

#[test]
fn one_token_is_a_vocabulary_if_it_may_stand_for_unknown_text() {
    let bpe = || TokenizerKind::Bpe { pre: PreTokenizer::default(), merges: Merges::new(), ignore_merges: false };
    let unigram = || TokenizerKind::Unigram { charsmap: Vec::new(), merge_spaces: false };
    for (kind, n_missing) in [(bpe(), 240), (TokenizerKind::Spm, 241), (unigram(), 241)] {
        assert_eq!(one_token(kind.clone(), None).unwrap_err(), TextError::BytesMissing { n_missing, first: 0 });
        let tokenizer = one_token(kind, Some(0)).unwrap();
        assert_eq!(tokenizer.encode("baa", PLAIN), [0, 0, 0]);
        assert!(!tokenizer.is_end_of_generation(0));
    }
}

/// Text never becomes the end of a text, even where a file names that as its unknown token.
#[test]
fn unknown_text_is_never_an_end_token() {
    let mut spec = small::bpe("gpt-2", false);
    spec.special.unk = spec.special.eos;
    let eos = spec.special.eos.unwrap();
    let mut tokens = TokenTable::new();
    for id in 0..spec.tokens.len() as u32 {
        let text = if id == 3 { b"spare" } else { spec.tokens.bytes(id).unwrap() };
        tokens.push(text, spec.tokens.kind(id).unwrap(), None).unwrap();
    }
    spec.tokens = tokens;
    assert_eq!(spec.missing_bytes(), 1);
    let tokenizer = Tokenizer::new(spec.clone()).unwrap();
    assert_eq!(tokenizer.missing_bytes(), [3]);
    assert_eq!(tokenizer.encode(b"a\x03", PLAIN), [0x61, 0xef, 0xbf, 0xbd]);
    assert!(!tokenizer.encode([3; 9], PLAIN).contains(&eos));
    spec.special.unk = Some(0x3f);
    assert_eq!(Tokenizer::new(spec).unwrap().encode(b"a\x03", PLAIN), [0x61, 0x3f]);
}

#[test]
fn byte_tokens_that_are_none_are_text() {
    let mut spec = small::spm(true);
    let kind = TokenKind::Byte;
    for text in ["<0x-1>", "<0xZZ>", "<0x100>", ""] {
        spec.tokens.push(text.as_bytes(), kind, Some(0.0)).unwrap();
    }
    let last = spec.tokens.len() as u32;
    let tokenizer = Tokenizer::new(spec).unwrap();
    assert_eq!(tokenizer.decode(&[last - 3]), b"<0xZZ>");
    assert_eq!(tokenizer.decode(&[last - 1, last, u32::MAX]), b"");
}

#[test]
fn tokens_without_kinds_still_fall_back_to_bytes() {
    let spec = small::spm(true);
    let mut tokens = TokenTable::new();
    for id in 0..spec.tokens.len() as u32 {
        let text = spec.tokens.bytes(id).unwrap();
        let score = spec.tokens.scores()[id as usize];
        tokens.push(text, TokenKind::Normal, Some(score)).unwrap();
    }
    let tokenizer = Tokenizer::new(TokenizerSpec { tokens, ..spec }).unwrap();
    assert_eq!(tokenizer.encode("ü", PLAIN)[1..], [3 + 0xc3, 3 + 0xbc]);
    assert_eq!(tokenizer.decode(&[3 + 10]), b"\n");
}

/// A vocabulary with one merge more.
fn with_merge(line: &[u8]) -> (TokenizerSpec, u32) {
    let mut spec = small::bpe("gpt-2", false);
    let TokenizerKind::Bpe { merges, .. } = &mut spec.kind else { unreachable!() };
    let rank = merges.push(line).unwrap();
    (spec, rank)
}

#[test]
fn merges_that_name_no_token_are_refused() {
    for line in ["", " ", "a", "a ", " a", "  "] {
        let (spec, rank) = with_merge(line.as_bytes());
        let expected = TextError::MergeWithoutPair { rank, line: line.to_owned() };
        assert_eq!(Tokenizer::new(spec).err(), Some(expected));
    }
    for (line, piece) in [("q q", "qq"), ("界 a", "界"), ("\u{144} b", "\u{144}"), ("l zz", "zz"), ("zz l", "zz")] {
        let (spec, rank) = with_merge(line.as_bytes());
        let error = Tokenizer::new(spec).err().unwrap();
        assert_eq!(error, TextError::MergeOfNoToken { rank, line: line.to_owned(), piece: piece.to_owned() });
        assert!(error.to_string().contains(&format!("merge {rank} (counted from 0), `{line}`, needs `{piece}`")));
    }
    let long = [b"\xff ".to_vec(), vec![b'x'; 1 << 20]].concat();
    let error = Tokenizer::new(with_merge(&long).0).err().unwrap();
    assert!(error.to_string().len() < 300, "{error}");
}

/// A control token is a token, though no text becomes it.
#[test]
fn merges_to_control_tokens_are_left_out() {
    let (mut spec, rank) = with_merge(b"x y");
    spec.tokens.push(b"xy", TokenKind::Control, None).unwrap();
    let tokenizer = Tokenizer::new(spec).unwrap();
    assert_eq!(tokenizer.n_merges(), rank as usize);
    assert_eq!(tokenizer.encode("xy", PLAIN).len(), 2);
}

fn any_token() -> impl Strategy<Value = (Vec<u8>, u8, f32)> {
    let text = prop_oneof![prop::collection::vec(any::<u8>(), 0..4), "[ab▁Ġ<>0x]{0,8}".prop_map(String::into_bytes),];
    (text, 0u8..6, any::<f32>())
}

proptest! {
    #[test]
    fn any_vocabulary_works_or_is_refused(
        tokens in prop::collection::vec(any_token(), 0..40),
        merges in prop::collection::vec("[abĠ ]{0,5}", 0..20),
        ids in prop::collection::vec(prop::option::of(0u32..50), 6),
        (spm, ignore_merges, add_space_prefix) in any::<(bool, bool, bool)>(),
        text in "[ab ▁<>0x\n]{0,30}",
    ) {
        let kinds = [TokenKind::Normal, TokenKind::Unknown, TokenKind::Control,
                     TokenKind::UserDefined, TokenKind::Unused, TokenKind::Byte];
        let mut table = TokenTable::new();
        for (text, kind, score) in &tokens {
            table.push(text, kinds[usize::from(*kind)], Some(*score)).unwrap();
        }
        let mut lines = Merges::new();
        for line in &merges {
            lines.push(line.as_bytes()).unwrap();
        }
        let kind = if spm {
            TokenizerKind::Spm
        } else {
            TokenizerKind::Bpe { pre: PreTokenizer::default(), merges: lines, ignore_merges }
        };
        let special = SpecialTokens {
            bos: ids[0], eos: ids[1], eot: ids[2], eom: ids[3], unk: ids[4], pad: ids[5],
        };
        let spec = TokenizerSpec {
            kind, tokens: table, special, add_bos: ids[0].is_some(), add_eos: false, add_space_prefix, strips: Vec::new(),
        };
        if let Ok(tokenizer) = Tokenizer::new(spec) {
            for parse_special in [false, true] {
                let ids = tokenizer.encode(&text, EncodeOptions { add_special: true, parse_special });
                prop_assert!(ids.iter().all(|&id| (id as usize) < tokenizer.n_vocab()));
                tokenizer.decode(&ids);
            }
        }
    }
}
