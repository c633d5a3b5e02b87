//! Tokenizer specifications from files: what absent keys mean, what is refused, and that the tiny models' text works.

mod support;

use minfer_gguf::{Array, GgufFile, GgufWriter, Value, ValueType};
use minfer_model::{ModelError, TokenizerWarning, chat_template, load_tokenizer, tokenizer_spec};
use minfer_testkit::tiny_model;
use minfer_text::{EncodeOptions, TokenKind, Tokenizer, TokenizerKind};
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
fn a_missing_pre_tokenizer_is_a_warning_an_unknown_one_an_error() {
    let model = tiny_model("llama-f32");
    let missing = load_tokenizer(&without(&model, &["tokenizer.ggml.pre"])).unwrap();
    assert_eq!(missing.warnings, [TokenizerWarning::MissingPre { key: "tokenizer.ggml.pre" }]);
    let unknown = changed(&model, |w| _ = w.set("tokenizer.ggml.pre", "next-year"));
    let error = tokenizer_spec(&unknown).unwrap_err();
    assert!(matches!(&error, ModelError::UnsupportedTokenizer { got, .. } if got == "next-year"), "{error}");
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
