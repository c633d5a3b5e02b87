//! Tokenizer specifications from files: what absent keys mean, what is refused, and that the tiny models' text works.

mod support;

use minfer_gguf::{Array, GgufFile, GgufWriter, Value, ValueType};
use minfer_model::{
    ModelError, TokenizerWarning, chat_template, load_tokenizer, load_tokenizer_as, named_chat_templates,
    tokenizer_spec,
};
use minfer_testkit::tiny_model;
use minfer_text::{EncodeOptions, PreTokenizer, Strip, TokenKind, Tokenizer, TokenizerKind};
use support::{changed, without};

fn sentencepiece(change: impl FnOnce(&mut GgufWriter)) -> GgufFile {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "llama").set("general.type", "vocab").set("tokenizer.ggml.model", "llama");
    writer.set("tokenizer.ggml.tokens", Array::from_strings(["<unk>", "<s>", "</s>", "▁a"]));
    writer.set("tokenizer.ggml.scores", array(ValueType::F32, [0f32, 0.0, 0.0, -1.0]));
    writer.set("tokenizer.ggml.token_type", array(ValueType::I32, [2i32, 3, 3, 1]));
    change(&mut writer);
    GgufFile::from_bytes(writer.to_bytes()).unwrap()
}

fn array<T: Into<Value>>(elem: ValueType, values: impl IntoIterator<Item = T>) -> Array {
    let values: Vec<Value> = values.into_iter().map(Into::into).collect();
    Array::from_values(elem, &values).unwrap()
}

#[test]
fn text_of_a_tiny_model_round_trips() {
    let file = tiny_model("llama-f32").open();
    let tokenizer = Tokenizer::new(tokenizer_spec(&file).unwrap()).unwrap();
    let text = "the end and\nthe \u{1f999}";
    let ids = tokenizer.encode(text, EncodeOptions::default());
    assert!(ids.len() < text.len(), "merges apply: {ids:?}");
    assert!(ids.iter().all(|&id| id < 276), "no filler: {ids:?}");
    assert!(chat_template(&file).unwrap().unwrap().contains("<|im_start|>"));
}

#[test]
fn defaults_of_byte_level() {
    let model = tiny_model("llama-f32");
    let plain = load_tokenizer(&without(&model, &["tokenizer.ggml.add_bos_token"])).unwrap();
    assert!(plain.warnings.is_empty());
    assert!(!plain.spec.add_bos && !plain.spec.add_eos && !plain.spec.add_space_prefix);
    assert!(matches!(plain.spec.kind, TokenizerKind::Bpe { ignore_merges: false, .. }));
    let llama3 = changed(&model, |w| _ = w.set("tokenizer.ggml.pre", "llama-bpe"));
    let llama3 = tokenizer_spec(&llama3).unwrap();
    assert!(!llama3.add_bos, "the key says no");
    assert!(matches!(llama3.kind, TokenizerKind::Bpe { ignore_merges: true, .. }));
}

#[test]
fn a_missing_or_unknown_pre_tokenizer_is_a_warning() {
    let model = tiny_model("llama-f32");
    let missing = load_tokenizer(&without(&model, &["tokenizer.ggml.pre"])).unwrap();
    let (key, assumed) = ("tokenizer.ggml.pre", "default");
    assert_eq!(missing.warnings, [TokenizerWarning::MissingPre { key, assumed }]);
    let unknown = changed(&model, |w| _ = w.set("tokenizer.ggml.pre", "next-year"));
    let got = "next-year".to_owned();
    assert_eq!(load_tokenizer(&unknown).unwrap().warnings, [TokenizerWarning::UnknownPre { key, got, assumed }]);
    // The rule that a caller chooses wins, without a word.
    let qwen2 = PreTokenizer::from_name("qwen2").unwrap();
    for file in [&unknown, &model.open()] {
        let chosen = load_tokenizer_as(file, Some(qwen2)).unwrap();
        assert!(chosen.warnings.is_empty());
        assert!(matches!(chosen.spec.kind, TokenizerKind::Bpe { pre, .. } if pre == qwen2));
    }
    let unused = load_tokenizer_as(&sentencepiece(|_| ()), Some(qwen2)).unwrap();
    assert_eq!(unused.warnings, [TokenizerWarning::UnusedPre { model: "llama", pre: "qwen2" }]);
    let other = changed(&model, |w| _ = w.set("tokenizer.ggml.model", "bert"));
    assert!(matches!(tokenizer_spec(&other), Err(ModelError::UnsupportedTokenizer { .. })));
}

#[test]
fn defaults_of_sentencepiece() {
    let spec = tokenizer_spec(&sentencepiece(|_| ())).unwrap();
    assert!(matches!(spec.kind, TokenizerKind::Spm));
    assert!(spec.add_bos && !spec.add_eos && spec.add_space_prefix);
    assert_eq!((spec.special.bos, spec.special.eos, spec.special.unk), (Some(1), Some(2), Some(0)));
    assert_eq!(spec.tokens.kind(1), Some(TokenKind::Control));
    let gemma = sentencepiece(|w| {
        w.set("tokenizer.ggml.add_space_prefix", false).set("tokenizer.ggml.bos_token_id", 2u32);
    });
    let spec = tokenizer_spec(&gemma).unwrap();
    assert!(!spec.add_space_prefix);
    assert_eq!(spec.special.bos, Some(2));
}

#[test]
fn arrays_must_fit_and_make_sense() {
    let short = sentencepiece(|w| _ = w.set("tokenizer.ggml.scores", array(ValueType::F32, [0f32])));
    assert!(matches!(tokenizer_spec(&short), Err(ModelError::ArrayLength { expected: 4, got: 1, .. })));
    let kind = sentencepiece(|w| _ = w.set("tokenizer.ggml.token_type", array(ValueType::U8, [1u8, 2, 99, 3])));
    assert!(matches!(tokenizer_spec(&kind), Err(ModelError::TokenizerItem { index: 2, .. })));
    let text = sentencepiece(|w| _ = w.set("tokenizer.ggml.tokens", 3u32));
    assert!(matches!(tokenizer_spec(&text), Err(ModelError::Gguf(_))));
    let eos = sentencepiece(|w| _ = w.set("tokenizer.ggml.eos_token_id", u32::MAX));
    assert!(Tokenizer::new(tokenizer_spec(&eos).unwrap()).is_err(), "refused by the tokenizer");
}

#[test]
fn a_padding_id_outside_the_vocabulary_is_ignored() {
    for id in [-1i64, 4, i64::from(u32::MAX)] {
        let load = load_tokenizer(&sentencepiece(|w| _ = w.set("tokenizer.ggml.padding_token_id", id))).unwrap();
        assert_eq!(load.spec.special.pad, None);
        assert!(matches!(load.warnings[..], [TokenizerWarning::PaddingOutOfRange { .. }]));
    }
}

#[test]
fn a_template_must_be_text() {
    let absent = sentencepiece(|_| ());
    assert_eq!(chat_template(&absent).unwrap(), None);
    assert!(chat_template(&sentencepiece(|w| _ = w.set("tokenizer.chat_template", 1u32))).is_err());
}

#[test]
fn further_templates_are_found_by_name() {
    let file = sentencepiece(|w| {
        w.set("tokenizer.chat_templates", Array::from_strings(["rag", "absent"]));
        w.set("tokenizer.chat_template.rag", "x");
    });
    assert_eq!(named_chat_templates(&file).unwrap(), [("rag".to_owned(), "x".to_owned())]);
    assert!(named_chat_templates(&sentencepiece(|_| ())).unwrap().is_empty());
}

#[test]
fn tokens_of_phi_3_take_white_space_along() {
    let strips = |name: &str| {
        let file = sentencepiece(|w| _ = w.set("general.name", name));
        tokenizer_spec(&file).unwrap().strips
    };
    assert_eq!(strips("Phi-3-mini"), [Strip { id: 2, left: false, right: true }]);
    assert_eq!(strips("Llama 2"), []);
}

#[test]
fn unigram_vocabularies() {
    let file = sentencepiece(|w| {
        w.set("tokenizer.ggml.model", "t5").set("tokenizer.ggml.mask_token_id", 3u32);
        w.set("tokenizer.ggml.precompiled_charsmap", array(ValueType::U8, [0u8, 0, 0, 0]));
    });
    let spec = tokenizer_spec(&file).unwrap();
    assert!(matches!(&spec.kind, TokenizerKind::Unigram { charsmap, merge_spaces: true } if charsmap.len() == 4));
    assert!(!spec.add_bos && spec.add_eos && spec.add_space_prefix);
    assert_eq!((spec.special.eos, spec.special.unk), (Some(1), Some(2)));
    assert_eq!(spec.strips, [Strip { id: 3, left: true, right: false }]);
}

#[test]
fn a_byte_level_vocabulary_without_all_bytes_is_told() {
    let file = sentencepiece(|w| {
        w.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "gpt-2");
        w.set("tokenizer.ggml.merges", Array::from_strings(["a b"]));
    });
    let load = load_tokenizer(&file).unwrap();
    assert_eq!(load.warnings, [TokenizerWarning::BytesMissing { n_missing: 241 }]);
    assert!(Tokenizer::new(load.spec).is_err(), "no unknown token either");
}
