//! Size of the KV cache. Takes a specification and a cache type; gives elements and bytes; must not know how cells are
//! shared between sequences.

use crate::spec::ModelSpec;
use minfer_graph::{CacheType, KvLayer};

/// What each layer caches: elements of one cell in its K (and in its V) region, and for how many positions.
pub fn kv_layers(spec: &ModelSpec) -> Vec<KvLayer> {
    let layer = |(layer, n_kv_head): (u32, &u32)| KvLayer {
        cols: n_kv_head.saturating_mul(spec.head_dim),
        window: spec.window_of(layer).map(|window| window.n_tokens),
    };
    (0..).zip(&spec.n_kv_head).map(layer).collect()
}

/// Bytes that one cached token takes in the K and V regions of all layers: `Σ 2 · n_kv_head · head_dim · element size`.
///
/// Windowed layers count in full: it is what a token takes until it leaves their window.
pub fn kv_bytes_per_token(spec: &ModelSpec, cache_type: CacheType) -> u64 {
    kv_layers(spec).into_iter().map(|layer| 2 * cache_type.value_type().row_bytes(layer.cols)).sum()
}
