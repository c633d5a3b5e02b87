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
    /// Most tokens in a batch of any graph over the same KV cache: of the largest that is stored before it is read.
    pub batch_capacity: u32,
    /// Most sequences in a batch.
    pub sequence_capacity: u32,
    /// Positions a sequence may have: `0 .. n_ctx`.
    pub n_ctx: u32,
    /// KV cells of a layer that sees everything, shared by all sequences; a multiple of [`KV_BLOCK_CELLS`].
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

    /// Most blocks that a sequence holds at once in layers with this window, or without one: its latest.
    ///
    /// When the `n` tokens of a batch are stored, the first of them still sees the `window - 1` positions before it. That
    /// is a run of `m = window - 1 + n` positions; wherever it begins, it lies in at most `ceil((m - 1) / 32) + 1` blocks.
    pub fn blocks_held(&self, window: Option<u32>) -> u32 {
        let all = self.blocks_per_sequence();
        let Some(window) = window else { return all };
        let positions = (u64::from(window) + u64::from(self.batch_capacity)).saturating_sub(1);
        let blocks = positions.saturating_sub(1).div_ceil(u64::from(KV_BLOCK_CELLS)) + 1;
        u32::try_from(blocks).map_or(all, |blocks| blocks.min(all))
    }

    /// KV cells of a layer with this window, or without one, shared by all sequences; a multiple of [`KV_BLOCK_CELLS`].
    pub fn n_cells_of(&self, window: Option<u32>) -> u32 {
        let held = self.blocks_held(window).saturating_mul(self.sequence_capacity);
        if window.is_some() { held.min(self.n_cells / KV_BLOCK_CELLS) * KV_BLOCK_CELLS } else { self.n_cells }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(n_ctx: u32, batch_capacity: u32, sequence_capacity: u32) -> GraphParams {
        GraphParams {
            kind: GraphKind::Decode,
            token_capacity: 1,
            batch_capacity,
            output_capacity: 1,
            sequence_capacity,
            n_ctx,
            n_cells: n_ctx.next_multiple_of(KV_BLOCK_CELLS) * sequence_capacity,
            cache_type: CacheType::F16,
            fusion: Fusion::ALL,
            weights_version: 0,
        }
    }

    /// What a window needs, counted: a batch and what its first token sees, wherever it begins.
    #[test]
    fn window_cells_are_exact() {
        let block = |position: u32| position / KV_BLOCK_CELLS;
        for window in [1, 2, 31, 32, 33, 63, 64, 65, 100, 128, 512] {
            for batch in [1, 2, 7, 31, 32, 33, 64, 500, 512] {
                let params = params(1 << 20, batch, 3);
                let span = |first: u32| block(first + window - 1 + batch - 1) - block(first) + 1;
                let most = (0..KV_BLOCK_CELLS).map(span).max().unwrap();
                assert_eq!(params.blocks_held(Some(window)), most, "window {window}, batch {batch}");
                assert_eq!(params.n_cells_of(Some(window)), 3 * most * KV_BLOCK_CELLS);
            }
        }
        assert_eq!(params(4096, 512, 1).n_cells_of(Some(512)), 33 * 32);
    }

    #[test]
    fn no_window_holds_more_than_the_context() {
        for n_ctx in [1, 31, 32, 100, 4096] {
            let params = params(n_ctx, 64, 2);
            let all = params.n_cells_of(None);
            assert_eq!((all, params.blocks_held(None)), (params.n_cells, n_ctx.div_ceil(32)));
            for window in [n_ctx, n_ctx + 1, i32::MAX as u32, u32::MAX] {
                assert_eq!(params.n_cells_of(Some(window)), all, "window {window} of {n_ctx}");
            }
            // No model gets that far: a window of nothing holds what a batch writes.
            assert_eq!(params.blocks_held(Some(0)), params.blocks_held(Some(1)));
        }
    }
}
