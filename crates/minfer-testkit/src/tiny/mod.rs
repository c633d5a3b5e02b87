//! Small random models. Takes a shape, formats, options and a seed; gives a GGUF that loads, tokenizes and runs.

mod catalogue;
mod file;
mod sparse;
mod vocab;

pub use catalogue::{tiny_model, tiny_models};
pub use vocab::VOCAB_CONTROLS;

use minfer_gguf::DType;

/// Which architecture's keys and tensors are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum TinyArch {
    Llama,
    Qwen2,
    Qwen3,
    Gemma3,
}

impl TinyArch {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            TinyArch::Llama => "llama",
            TinyArch::Qwen2 => "qwen2",
            TinyArch::Qwen3 => "qwen3",
            TinyArch::Gemma3 => "gemma3",
        }
    }
}

/// Formats of the matrices by role; vectors are always F32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Formats {
    pub embedding: DType,
    pub output: DType,
    pub q: DType,
    pub k: DType,
    pub v: DType,
    pub attn_out: DType,
    pub gate: DType,
    pub up: DType,
    pub down: DType,
}

impl Formats {
    /// One format for all.
    pub const fn all(dtype: DType) -> Self {
        Self {
            embedding: dtype,
            output: dtype,
            q: dtype,
            k: dtype,
            v: dtype,
            attn_out: dtype,
            gate: dtype,
            up: dtype,
            down: dtype,
        }
    }
}

/// A scaling of rope by keys.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RopeScaling {
    /// `none`, `linear`, `yarn`, ...
    pub kind: &'static str,
    /// By how much positions are compressed.
    pub factor: f32,
}

/// A model to write. Start from [`TinyModel::new`] and change what matters.
#[derive(Clone, PartialEq, Debug)]
pub struct TinyModel {
    /// Name, also of the file.
    pub name: String,
    /// Architecture.
    pub arch: TinyArch,
    /// Layers.
    pub n_layer: u32,
    /// Width of the residual stream.
    pub n_embd: u32,
    /// Query heads.
    pub n_head: u32,
    /// Key and value heads.
    pub n_kv_head: u32,
    /// Key and value heads layer by layer, written as an array, in place of the number.
    pub n_kv_heads: Option<Vec<u32>>,
    /// Elements of a head; the key is written if it is not `n_embd / n_head`.
    pub head_dim: u32,
    /// Width of the feed-forward block.
    pub n_ff: u32,
    /// Tokens, at least the 256 bytes, the merges and the control tokens.
    pub n_vocab: u32,
    /// Context length.
    pub n_ctx_train: u32,
    /// Formats of the matrices.
    pub formats: Formats,
    /// Whether the output matrix is the embedding.
    pub tied: bool,
    /// Biases on q, k and v.
    pub biases: bool,
    /// Norms on query and key heads.
    pub head_norms: bool,
    /// Frequency factors of rope.
    pub rope_freqs: bool,
    /// Rotated elements of a head; the key is written if given.
    pub rope_dims: Option<u32>,
    /// Frequency base of rope.
    pub rope_base: f32,
    /// Scaling of rope by keys.
    pub rope_scaling: Option<RopeScaling>,
    /// Positions a windowed layer sees.
    pub window: Option<u32>,
    /// The pattern of windowed layers, if it is not to be the architecture's own.
    pub window_pattern: Option<u32>,
    /// Of all random numbers.
    pub seed: u64,
}

impl TinyModel {
    /// Two layers of width 64 with the architecture's own biases and norms, all in F32: 4 query heads of 16 elements over
    /// 2 KV heads; Gemma gets 7 layers, of which the sixth sees everything, and a window of 8.
    pub fn new(name: &str, arch: TinyArch) -> Self {
        let gemma = arch == TinyArch::Gemma3;
        Self {
            name: name.to_owned(),
            arch,
            n_layer: if gemma { 7 } else { 2 },
            n_embd: 64,
            n_head: 4,
            n_kv_head: 2,
            n_kv_heads: None,
            head_dim: 16,
            n_ff: 160,
            n_vocab: 320,
            n_ctx_train: 512,
            formats: Formats::all(DType::F32),
            tied: gemma,
            biases: arch == TinyArch::Qwen2,
            head_norms: matches!(arch, TinyArch::Qwen3 | TinyArch::Gemma3),
            rope_freqs: false,
            rope_dims: None,
            rope_base: if gemma { 1_000_000.0 } else { 10_000.0 },
            rope_scaling: None,
            window: gemma.then_some(8),
            window_pattern: None,
            seed: 1,
        }
    }

    /// Key and value heads of a layer.
    pub fn n_kv_head_of(&self, layer: u32) -> u32 {
        self.n_kv_heads.as_ref().and_then(|heads| heads.get(layer as usize).copied()).unwrap_or(self.n_kv_head)
    }
}

/// The 64-bit FNV-1a hash (Fowler, Noll, Vo): tells whether two files are the same.
pub fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    #[test]
    fn hash_is_the_published_one() {
        assert_eq!(super::fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(super::fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(super::fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
