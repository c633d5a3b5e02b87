//! What a graph's structure depends on. Takes nothing; gives [`GraphParams`], the key under which a graph is reused;
//! must not know how many tokens are cached or which, since that is data.

use crate::types::{BatchDims, ValueType};
use serde::{Deserialize, Serialize};

/// Cells of one KV block: a sequence owns whole blocks, and the cells of a block hold consecutive positions.
pub const KV_BLOCK_CELLS: u32 = 32;

/// What a graph is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum GraphKind {
    /// Many tokens of a prompt at once.
    Prefill,
    /// One token per sequence.
    Decode,
}

/// Element type of the KV cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum CacheType {
    /// 32-bit float.
    F32,
    /// 16-bit float.
    F16,
    /// Signed bytes with a scale for each 32 of them; for heads of a multiple of 32 elements.
    ///
    /// Keys of some models (Qwen2's, by their bias) have a few elements hundreds of times larger than the rest, which would
    /// vanish beside them. So each run of [`turned_elems`](CacheType::turned_elems) elements of a key is stored
    /// multiplied with a normalised Hadamard matrix, which spreads what is large, and queries are multiplied likewise,
    /// which leaves their dots as they were (as in QuaRot, Ashkboos et al. 2024).
    Q8_0,
}

impl CacheType {
    /// Whether heads of `head_dim` elements can be cached in this type.
    pub fn fits(self, head_dim: u32) -> bool {
        self != CacheType::Q8_0 || head_dim.is_multiple_of(32)
    }

    /// Elements of a head that are turned together: the largest power of two that divides the head.
    pub fn turned_elems(head_dim: u32) -> u32 {
        1 << head_dim.trailing_zeros().min(31)
    }

    /// The same as the type of a value.
    pub fn value_type(self) -> ValueType {
        match self {
            CacheType::F32 => ValueType::F32,
            CacheType::F16 => ValueType::F16,
            CacheType::Q8_0 => ValueType::Q8_0,
        }
    }
}

/// Which fusions may be made. All on by default.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Fusion {
    /// Q, K and V projections with bias, head norms, rope and KV store in one step.
    pub qkv: bool,
    /// Gate and up projections in one step that writes only the product.
    pub ffn: bool,
    /// A producer writes the quantised form of its value itself when nobody needs the floats.
    pub quantize: bool,
    /// A projection adds its result onto the residual stream.
    pub residual: bool,
}

impl Fusion {
    /// Every fusion on.
    pub const ALL: Fusion = Fusion { qkv: true, ffn: true, quantize: true, residual: true };
    /// Every fusion off.
    pub const NONE: Fusion = Fusion { qkv: false, ffn: false, quantize: false, residual: false };
}

impl Default for Fusion {
    fn default() -> Self {
        Self::ALL
    }
}

/// Everything that a graph's structure depends on; equal parameters give equal graphs.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct GraphParams {
    /// Prefill or decode.
    pub kind: GraphKind,
    /// Most tokens in a batch.
    pub token_capacity: u32,
    /// Most rows of logits.
    pub output_capacity: u32,
    /// Most sequences in a batch.
    pub sequence_capacity: u32,
    /// Positions a sequence may have: `0 .. n_ctx`.
    pub n_ctx: u32,
    /// KV cells shared by all sequences, a multiple of [`KV_BLOCK_CELLS`].
    pub n_cells: u32,
    /// Element type of the KV cache.
    pub cache_type: CacheType,
    /// Which fusions are on.
    pub fusion: Fusion,
    /// Changes when the weights do.
    pub weights_version: u64,
}

impl GraphParams {
    /// The largest batch: what plans are sized for.
    pub fn capacity(&self) -> BatchDims {
        BatchDims { n_tokens: self.token_capacity, n_outputs: self.output_capacity }
    }

    /// Entries of one sequence's row in the block table.
    pub fn blocks_per_sequence(&self) -> u32 {
        self.n_ctx.div_ceil(KV_BLOCK_CELLS)
    }
}
