//! The tiny models that golden cases exist for, one row each. A test asks for one by name or walks them all.

use super::{Formats, RopeScaling, TinyArch, TinyModel};
use minfer_gguf::DType;

/// The model of this name.
///
/// # Panics
/// If there is none.
pub fn tiny_model(name: &str) -> TinyModel {
    tiny_models().into_iter().find(|model| model.name == name).unwrap_or_else(|| panic!("no tiny model {name}"))
}

/// Every model of the catalogue.
pub fn tiny_models() -> Vec<TinyModel> {
    let mut models = llama();
    models.extend(others());
    models
}

fn llama() -> Vec<TinyModel> {
    let new = |name: &str| TinyModel::new(name, TinyArch::Llama);
    let grouped = |name: &str, n_kv_head: u32| TinyModel { n_head: 8, head_dim: 8, n_kv_head, ..new(name) };
    vec![
        new("llama-f32"),
        TinyModel { tied: true, ..new("llama-tied") },
        TinyModel { biases: true, ..new("llama-bias") },
        TinyModel { rope_freqs: true, seed: 2, ..new("llama-rope-freqs") },
        TinyModel { rope_dims: Some(8), ..new("llama-rope-part") },
        TinyModel { rope_scaling: Some(RopeScaling { kind: "linear", factor: 4.0 }), ..new("llama-rope-linear") },
        // Query heads that share a KV head: 1, 2, 4, 8.
        grouped("llama-gqa1", 8),
        grouped("llama-gqa2", 4),
        grouped("llama-gqa4", 2),
        grouped("llama-gqa8", 1),
        // Widths that are no power of two.
        TinyModel { n_layer: 3, n_vocab: 321, ..odd("llama-odd-f32", TinyArch::Llama) },
        TinyModel { formats: Formats::all(DType::Q8_0), ..odd("llama-odd-q8_0", TinyArch::Llama) },
        TinyModel { formats: Formats::all(DType::Q4_0), ..odd("llama-odd-q4_0", TinyArch::Llama) },
        TinyModel { formats: Formats::all(DType::Q4_1), tied: true, ..odd("llama-odd-q4_1", TinyArch::Llama) },
        TinyModel { formats: Formats::all(DType::F16), ..new("llama-f16") },
        TinyModel { formats: Formats::all(DType::BF16), ..new("llama-bf16") },
        TinyModel { formats: ZOO, ..wide("llama-zoo", TinyArch::Llama) },
    ]
}

fn others() -> Vec<TinyModel> {
    let new = TinyModel::new;
    let mixed = Formats { v: DType::Q8_0, down: DType::Q5_1, output: DType::Q8_0, ..Formats::all(DType::Q5_0) };
    vec![
        new("qwen2-f32", TinyArch::Qwen2),
        TinyModel { formats: mixed, ..odd("qwen2-odd-mixed", TinyArch::Qwen2) },
        TinyModel { formats: K_M, ..wide("qwen2-q4_k_m", TinyArch::Qwen2) },
        // Heads wider together than the stream, as in the small Qwen 3 models.
        TinyModel { head_dim: 32, ..new("qwen3-f32", TinyArch::Qwen3) },
        TinyModel { head_dim: 128, tied: true, formats: K_M, ..wide("qwen3-q4_k_m", TinyArch::Qwen3) },
        TinyModel { head_dim: 32, n_kv_head: 1, ..new("gemma3-f32", TinyArch::Gemma3) },
        TinyModel {
            formats: Formats::all(DType::Q8_0),
            n_vocab: 352,
            window: Some(5),
            ..odd("gemma3-odd-q8_0", TinyArch::Gemma3)
        },
    ]
}

/// Width 96, heads of 48, 160 in the feed-forward block.
fn odd(name: &str, arch: TinyArch) -> TinyModel {
    TinyModel { n_embd: 96, n_head: 2, n_kv_head: 1, head_dim: 48, n_ff: 160, seed: 3, ..TinyModel::new(name, arch) }
}

/// Rows of whole blocks of 256.
fn wide(name: &str, arch: TinyArch) -> TinyModel {
    TinyModel { n_embd: 256, n_head: 4, n_kv_head: 2, head_dim: 64, n_ff: 512, seed: 4, ..TinyModel::new(name, arch) }
}

/// What a `Q4_K_M` file has.
const K_M: Formats = Formats {
    v: DType::Q6_K,
    down: DType::Q6_K,
    output: DType::Q6_K,
    embedding: DType::Q6_K,
    ..Formats::all(DType::Q4_K)
};

/// A format of its own for each role.
const ZOO: Formats = Formats {
    embedding: DType::Q5_1,
    output: DType::Q5_0,
    q: DType::Q2_K,
    k: DType::Q3_K,
    v: DType::Q5_K,
    attn_out: DType::Q6_K,
    gate: DType::IQ4_XS,
    up: DType::IQ4_NL,
    down: DType::Q4_K,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_format_occurs() {
        let models = tiny_models();
        let mut names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), models.len());
        let mut seen = std::collections::BTreeSet::new();
        for model in &models {
            let file = model.open();
            seen.extend(file.tensors().iter().filter_map(|info| info.dtype().ok()));
        }
        let missing: Vec<_> =
            DType::ALL.iter().filter(|&&dtype| dtype != DType::I32 && !seen.contains(&dtype)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn bytes_depend_on_nothing_but_the_description() {
        let model = tiny_model("llama-f32");
        assert_eq!(model.to_bytes(), model.to_bytes());
        assert_ne!(model.to_bytes(), TinyModel { seed: 9, ..model.clone() }.to_bytes());
    }
}
