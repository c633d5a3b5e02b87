//! Files that are well formed and must not run: each gives a typed error that names what is wrong, never a panic.

mod support;

use minfer_gguf::{Array, DType, GgufError, GgufFile, GgufWriter, Value, ValueType};
use minfer_model::{ModelError, Role, Shape2, build_graph, load_spec};
use minfer_testkit::{TinyArch, TinyModel, tiny_model, tiny_models};
use support::{changed, params, without};

fn refusal(change: impl FnOnce(&mut GgufWriter)) -> ModelError {
    error_of(&changed(&tiny_model("llama-f32"), change))
}

fn error_of(file: &GgufFile) -> ModelError {
    match load_spec(file) {
        Ok(spec) => panic!("loaded {:?}", spec.options),
        Err(error) => error,
    }
}

/// The key that an error about a value names, without the architecture.
fn key_of(error: &ModelError) -> &str {
    let key = match error {
        ModelError::Value { key, .. }
        | ModelError::ArrayLength { key, .. }
        | ModelError::UnsupportedSetting { key, .. }
        | ModelError::UnsupportedRopeScaling { key, .. }
        | ModelError::Gguf(GgufError::WrongType { key, .. } | GgufError::MissingKey { key }) => key,
        other => panic!("no key in {other:?}"),
    };
    key.split_once('.').map_or(key, |(_, suffix)| suffix)
}

#[test]
fn architectures() {
    let error = refusal(|w| _ = w.set("general.architecture", "mamba"));
    let text = error.to_string();
    assert!(matches!(error, ModelError::UnsupportedArchitecture { .. }));
    for name in ["mamba", "llama", "qwen2", "qwen3", "gemma3"] {
        assert!(text.contains(name), "{text}");
    }
    let vocabulary = refusal(|w| _ = w.set("general.type", "vocab"));
    assert!(matches!(vocabulary, ModelError::Gguf(GgufError::NotAModel { .. })), "{vocabulary}");
    let missing = error_of(&without(&tiny_model("llama-f32"), &["general.architecture"]));
    assert!(matches!(missing, ModelError::Gguf(GgufError::MissingKey { .. })), "{missing}");
}

#[test]
fn values_out_of_range() {
    let table: &[(&str, Value)] = &[
        ("block_count", 0u32.into()),
        ("block_count", 513u32.into()),
        ("block_count", u32::MAX.into()),
        ("block_count", (-1i32).into()),
        ("embedding_length", 0u32.into()),
        ("feed_forward_length", 0u32.into()),
        ("context_length", 0u32.into()),
        ("attention.head_count", 0u32.into()),
        ("attention.head_count", 3u32.into()),
        ("attention.head_count_kv", 0u32.into()),
        ("attention.head_count_kv", 8u32.into()),
        ("attention.head_count_kv", 3u32.into()),
        ("attention.head_count_kv", ints(&[2, 2, 2])),
        ("attention.head_count_kv", ints(&[2, 0])),
        ("attention.head_count_kv", ints(&[2, -2])),
        ("attention.head_count", ints(&[4, 2])),
        ("attention.key_length", (1u32 << 30).into()),
        ("attention.value_length", 8u32.into()),
        ("attention.layer_norm_rms_epsilon", f32::NAN.into()),
        ("attention.layer_norm_rms_epsilon", f32::INFINITY.into()),
        ("attention.layer_norm_rms_epsilon", (-1e-5f32).into()),
        ("attention.scale", f32::NAN.into()),
        ("rope.dimension_count", 7u32.into()),
        ("rope.dimension_count", 0u32.into()),
        ("rope.dimension_count", 18u32.into()),
        ("rope.freq_base", 0f32.into()),
        ("rope.freq_base", f32::NEG_INFINITY.into()),
        ("rope.scaling.factor", f32::NAN.into()),
        ("rope.scaling.factor", 1e-40f32.into()),
        ("rope.scaling.type", "yarn".into()),
        ("rope.scaling.type", "longrope".into()),
        ("rope.scaling.type", "\u{1b}[31mnew".into()),
        ("rope.scaling.type", 1u32.into()),
        ("expert_count", 8u32.into()),
        ("final_logit_softcapping", 30f32.into()),
        ("logit_scale", 2f32.into()),
        ("attention.causal", false.into()),
    ];
    for (suffix, value) in table {
        let error = refusal(|w| _ = w.set(format!("llama.{suffix}"), value.clone()));
        let (named, text) = (key_of(&error), error.to_string());
        // What does not divide may be told of either of the two.
        let expected: &[&str] = match *suffix {
            "attention.head_count" => &["attention.head_count", "attention.head_count_kv"],
            other => &[other],
        };
        assert!(expected.contains(&named), "{suffix} = {value}: {text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}

#[test]
fn settings_that_mean_nothing_are_accepted() {
    let table: &[(&str, Value)] = &[
        ("rope.scaling.type", "none".into()),
        ("rope.scaling.type", "linear".into()),
        ("rope.scaling.factor", 0f32.into()),
        ("attention.scale", 0f32.into()),
        ("attention.sliding_window", 0u32.into()),
        ("attention.head_count_kv", ints(&[2, 2])),
        ("expert_count", 0u32.into()),
        ("attention.causal", true.into()),
    ];
    for (suffix, value) in table {
        let file = changed(&tiny_model("llama-f32"), |w| _ = w.set(format!("llama.{suffix}"), value.clone()));
        load_spec(&file).unwrap_or_else(|error| panic!("{suffix}: {error}"));
    }
}

#[test]
fn required_keys() {
    for suffix in ["block_count", "embedding_length", "feed_forward_length", "attention.head_count", "context_length"] {
        let error = error_of(&without(&tiny_model("qwen2-f32"), &[&format!("qwen2.{suffix}")]));
        assert_eq!(key_of(&error), suffix);
    }
    let error = error_of(&without(&tiny_model("gemma3-f32"), &["gemma3.attention.sliding_window"]));
    assert_eq!(key_of(&error), "attention.sliding_window");
}

#[test]
fn missing_tensors_are_named() {
    let table = [
        ("llama-f32", "token_embd.weight", Role::Embedding),
        ("llama-f32", "output_norm.weight", Role::OutputNorm),
        ("llama-f32", "blk.1.ffn_up.weight", Role::Up),
        ("llama-bias", "blk.1.attn_k.bias", Role::KeyBias),
        ("qwen2-f32", "blk.0.attn_q.bias", Role::QueryBias),
        ("qwen3-f32", "blk.1.attn_q_norm.weight", Role::QueryNorm),
        ("gemma3-f32", "blk.6.post_ffw_norm.weight", Role::PostFeedForwardNorm),
    ];
    for (model, name, role) in table {
        let error = error_of(&without(&tiny_model(model), &[name]));
        let ModelError::MissingTensor { slot, tensor } = &error else { panic!("{error}") };
        assert_eq!((slot.role, tensor.as_str()), (role, name));
        assert!(error.to_string().contains(name));
    }
}

#[test]
fn tensors_that_would_be_ignored() {
    let extra = |name: &'static str| refusal(move |w| _ = w.tensor_f32(name, &[4], DType::F32, &[0.0; 4]).unwrap());
    for name in ["blk.0.ffn_gate_inp.weight", "blk.0.attn_output.bias", "blk.2.attn_q.weight", "v.enc"] {
        let error = extra(name);
        let ModelError::UnknownTensor { tensor, arch: "llama", others: 0 } = &error else { panic!("{error}") };
        assert_eq!(tensor, name);
        assert!(error.to_string().contains(name));
    }
    // A Qwen 2 file with head norms is no Qwen 2.
    let file = TinyModel { head_norms: true, ..tiny_model("qwen2-f32") }.open();
    assert!(matches!(error_of(&file), ModelError::UnknownTensor { others: 3, .. }));
    // Frequency factors where the architecture has none.
    let file = TinyModel { rope_freqs: true, ..tiny_model("qwen3-f32") }.open();
    assert!(matches!(error_of(&file), ModelError::UnknownTensor { .. }));
}

#[test]
fn tensor_shapes() {
    let error = refusal(|w| _ = w.set("llama.feed_forward_length", 128u32));
    let ModelError::TensorShape { slot, expected, got, .. } = &error else { panic!("{error}") };
    assert_eq!((slot.layer, slot.role), (Some(0), Role::Gate));
    assert_eq!((*expected, got.as_str()), (Shape2 { rows: 128, cols: 64 }, "[160, 64]"));
    assert_eq!(
        error.to_string(),
        "the gate matrix of layer 0 (tensor `blk.0.ffn_gate.weight`) must have the shape [128, 64] but is [160, 64]"
    );
    // One dimension too many.
    let file = without(&tiny_model("llama-f32"), &["output_norm.weight"]);
    let mut writer = rewrite(&file);
    writer.tensor_f32("output_norm.weight", &[32, 1, 2], DType::F32, &[0.0; 64]).unwrap();
    assert!(matches!(reopen(&writer), Err(ModelError::TensorShape { .. })));
}

#[test]
fn tensor_formats() {
    let base = without(&tiny_model("llama-f32"), &["blk.0.attn_q.weight", "output_norm.weight"]);
    let formats = |q_id: u32, q_bytes: usize, norm: DType| {
        let mut writer = rewrite(&base);
        writer.tensor_unchecked("blk.0.attn_q.weight", &[64, 64], q_id, vec![0; q_bytes]);
        writer.tensor_f32("output_norm.weight", &[64], norm, &[1.0; 64]).unwrap();
        reopen(&writer)
    };
    formats(DType::F32.ggml_id(), 64 * 64 * 4, DType::F32).unwrap();
    let text = |result: Result<(), ModelError>| result.unwrap_err().to_string();
    let mxfp4 = text(formats(39, 64 * 64 / 32 * 17, DType::F32));
    assert!(mxfp4.contains("blk.0.attn_q.weight") && mxfp4.contains("MXFP4"), "{mxfp4}");
    let ints = text(formats(DType::I32.ggml_id(), 64 * 64 * 4, DType::F32));
    assert!(ints.contains("blk.0.attn_q.weight") && ints.contains("I32"), "{ints}");
    let norm = text(formats(DType::F32.ggml_id(), 64 * 64 * 4, DType::F16));
    assert!(norm.contains("output_norm.weight") && norm.contains("F16"), "{norm}");
}

#[test]
fn vocabulary_and_embedding_must_agree() {
    let error = refusal(|w| _ = w.set("tokenizer.ggml.tokens", Array::from_strings(["a", "b"])));
    assert!(matches!(error, ModelError::VocabularySize { n_tokens: 2, n_rows: 320 }), "{error}");
    // A file without a tokenizer still has a graph.
    load_spec(&without(&tiny_model("llama-f32"), &["tokenizer.ggml.tokens"])).unwrap();
}

#[test]
fn a_window_that_the_architecture_lacks() {
    let qwen = |window| TinyModel { window: Some(window), ..tiny_model("qwen2-f32") }.open();
    assert_eq!(key_of(&error_of(&qwen(128))), "attention.sliding_window");
    load_spec(&qwen(512)).expect("as long as the context");
}

/// Every key of every architecture with every hostile value: an error or a graph, never a panic.
#[test]
fn no_metadata_panics() {
    let hostile: Vec<Value> = vec![
        0u32.into(),
        1u32.into(),
        2u32.into(),
        3u32.into(),
        u32::MAX.into(),
        (1u32 << 31).into(),
        u64::MAX.into(),
        (-1i64).into(),
        f32::NAN.into(),
        f32::MAX.into(),
        f32::MIN_POSITIVE.into(),
        true.into(),
        "".into(),
        "linear".into(),
        ints(&[]),
        ints(&[1, 2, 3]),
        ints(&[i32::MAX, i32::MAX]),
        Array::from_strings(["x"]).into(),
    ];
    let mut tried = 0;
    for name in ["llama-f32", "qwen2-f32", "qwen3-f32", "gemma3-f32"] {
        let model = TinyModel { rope_dims: Some(8), window_pattern: Some(2), ..tiny_model(name) };
        let writer = model.writer();
        let keys: Vec<String> = model.open().metadata().iter().map(|entry| entry.key.clone()).collect();
        for key in keys.iter().filter(|key| !key.starts_with("tokenizer.")) {
            for value in &hostile {
                let mut writer = writer.clone();
                writer.set(key.as_str(), value.clone());
                if let Ok(spec) = load_spec(&GgufFile::from_bytes(writer.to_bytes()).unwrap()) {
                    build_graph(&spec, &params()).unwrap_or_else(|error| panic!("{key} = {value}: {error}"));
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 1000);
}

#[test]
fn the_whole_catalogue_is_accepted() {
    for model in tiny_models() {
        load_spec(&model.open()).unwrap_or_else(|error| panic!("{}: {error}", model.name));
    }
    let gemma = TinyModel { window_pattern: Some(3), ..TinyModel::new("gemma", TinyArch::Gemma3) };
    let spec = load_spec(&gemma.open()).unwrap();
    let local = [true, true, false, true, true, false, true];
    assert_eq!(spec.options.window.unwrap().local, local);
}

fn ints(values: &[i32]) -> Value {
    let values: Vec<Value> = values.iter().map(|&value| value.into()).collect();
    Array::from_values(ValueType::I32, &values).unwrap().into()
}

fn rewrite(file: &GgufFile) -> GgufWriter {
    let mut writer = GgufWriter::new();
    for entry in file.metadata() {
        writer.set(entry.key.as_str(), entry.value.clone());
    }
    for info in file.tensors() {
        writer.tensor_unchecked(&*info.name, &info.dims, info.ty.ggml_id(), file.tensor_bytes(info).to_vec());
    }
    writer
}

fn reopen(writer: &GgufWriter) -> Result<(), ModelError> {
    load_spec(&GgufFile::from_bytes(writer.to_bytes()).unwrap()).map(drop)
}
