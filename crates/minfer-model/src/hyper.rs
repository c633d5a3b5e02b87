//! The hyper-parameters that every architecture has. Takes the keys of an architecture; gives numbers that fit together;
//! must not know tensors.

use crate::MAX_LAYERS;
use crate::error::ModelError;
use crate::keys;
use crate::read::Keys;
use crate::spec::Rope;
use minfer_graph::RopeStyle;

/// Sizes of a decoder. `n_head · head_dim` and `n_kv_head · head_dim` fit a `u32`.
pub(crate) struct Hyper {
    pub(crate) n_layer: u32,
    pub(crate) n_embd: u32,
    pub(crate) n_head: u32,
    pub(crate) n_kv_head: Vec<u32>,
    pub(crate) head_dim: u32,
    pub(crate) n_ff: u32,
    pub(crate) n_ctx_train: u32,
    pub(crate) norm_eps: f32,
    pub(crate) rope: Rope,
}

const ROPE_SCALINGS: &[&str] = &["none", "linear"];

impl Hyper {
    /// Reads and checks them; `style` is the architecture's pairing of rope.
    pub(crate) fn read(keys: &Keys<'_>, style: RopeStyle) -> Result<Hyper, ModelError> {
        let n_layer = keys.require_count(keys::BLOCK_COUNT)?;
        if n_layer > MAX_LAYERS {
            return Err(keys.bad(keys::BLOCK_COUNT, format!("from 1 to {MAX_LAYERS}"), n_layer));
        }
        let n_embd = keys.require_count(keys::EMBEDDING_LENGTH)?;
        let n_head = keys.same_in_layers(keys::HEAD_COUNT, n_layer)?;
        let n_kv_head = keys.per_layer(keys::HEAD_COUNT_KV, n_layer)?.unwrap_or(vec![n_head; n_layer as usize]);
        for &n_kv in &n_kv_head {
            if n_kv > n_head || !n_head.is_multiple_of(n_kv) {
                return Err(keys.bad(keys::HEAD_COUNT_KV, format!("a divisor of the {n_head} query heads"), n_kv));
            }
        }
        let head_dim = head_dim(keys, n_embd, n_head)?;
        Ok(Hyper {
            n_layer,
            n_embd,
            n_head,
            n_kv_head,
            head_dim,
            n_ff: keys.same_in_layers(keys::FEED_FORWARD_LENGTH, n_layer)?,
            n_ctx_train: keys.require_count(keys::CONTEXT_LENGTH)?,
            norm_eps: keys.require_positive(keys::RMS_EPSILON)?,
            rope: rope(keys, style, head_dim)?,
        })
    }

    /// The factor on `q·k`: the key if there, else `1/√head_dim` (Vaswani et al. 2017).
    pub(crate) fn attention_scale(&self, keys: &Keys<'_>) -> Result<f32, ModelError> {
        let default = || (1.0 / f64::from(self.head_dim).sqrt()) as f32;
        Ok(keys.nonzero(keys::ATTENTION_SCALE)?.unwrap_or_else(default))
    }
}

fn head_dim(keys: &Keys<'_>, n_embd: u32, n_head: u32) -> Result<u32, ModelError> {
    let head_dim = match keys.count(keys::KEY_LENGTH, 1)? {
        Some(head_dim) => head_dim,
        None if n_embd.is_multiple_of(n_head) => n_embd / n_head,
        None => return Err(keys.bad(keys::HEAD_COUNT, format!("a divisor of the width {n_embd}"), n_head)),
    };
    if let Some(value_dim) = keys.count(keys::VALUE_LENGTH, 1)?
        && value_dim != head_dim
    {
        return Err(keys.bad(keys::VALUE_LENGTH, format!("{head_dim}, as for keys"), value_dim));
    }
    if n_head.checked_mul(head_dim).is_none() {
        let expected = format!("such that {n_head} heads have less than 2^32 elements");
        return Err(keys.bad(keys::KEY_LENGTH, expected, head_dim));
    }
    Ok(head_dim)
}

fn rope(keys: &Keys<'_>, style: RopeStyle, head_dim: u32) -> Result<Rope, ModelError> {
    let n_dims = keys.count(keys::ROPE_DIMENSIONS, 1)?.unwrap_or(head_dim);
    if n_dims > head_dim || !n_dims.is_multiple_of(2) {
        return Err(keys.bad(keys::ROPE_DIMENSIONS, format!("even and at most the head size {head_dim}"), n_dims));
    }
    // 10000 is the base of the original paper and what an absent key means.
    let base = keys.positive(keys::ROPE_BASE)?.unwrap_or(10_000.0);
    Ok(Rope { style, n_dims, base, freq_scale: freq_scale(keys)? })
}

/// Linear scaling divides positions by a factor. An absent type with a factor means linear, as in the converters.
fn freq_scale(keys: &Keys<'_>) -> Result<f32, ModelError> {
    let factor = match keys.nonzero(keys::ROPE_SCALING_FACTOR)? {
        Some(factor) => Some(factor),
        None => keys.nonzero(keys::ROPE_SCALE_LINEAR)?,
    };
    match keys.text(keys::ROPE_SCALING_TYPE)? {
        Some("none") => Ok(1.0),
        None | Some("linear") => {
            let scale = factor.map_or(1.0, |factor| 1.0 / factor);
            if !scale.is_finite() {
                return Err(keys.bad(keys::ROPE_SCALING_FACTOR, "a number with a finite inverse", 1.0 / scale));
            }
            Ok(scale)
        }
        Some(other) => Err(ModelError::UnsupportedRopeScaling {
            key: keys.key(keys::ROPE_SCALING_TYPE),
            got: other.to_owned(),
            supported: ROPE_SCALINGS,
        }),
    }
}
