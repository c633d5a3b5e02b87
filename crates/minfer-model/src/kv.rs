//! Size of the KV cache. Takes a specification and a cache type; gives elements and bytes; must not know how cells are
//! shared between sequences.

use crate::spec::ModelSpec;
use minfer_graph::CacheType;

/// Elements of one cell in the K (and in the V) region of each layer.
pub fn kv_cols(spec: &ModelSpec) -> Vec<u32> {
    spec.n_kv_head.iter().map(|n_kv_head| n_kv_head.saturating_mul(spec.head_dim)).collect()
}

/// Bytes that one cached token takes in the K and V regions of all layers: `Σ 2 · n_kv_head · head_dim · element size`.
///
/// Windowed layers count in full, since their cells are kept as long as those of the other layers.
pub fn kv_bytes_per_token(spec: &ModelSpec, cache_type: CacheType) -> u64 {
    kv_cols(spec).into_iter().map(|cols| 2 * cache_type.value_type().row_bytes(cols)).sum()
}
