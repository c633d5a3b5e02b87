//! The constants of a model by role. Takes nothing; gives typed tables, so that a block never looks a tensor up by name;
//! must not know files.

use crate::role::{Role, Slot};
use minfer_graph::Weight;

/// The constants of a model.
#[derive(Clone, PartialEq, Debug)]
pub struct Weights {
    /// Token embedding `[n_vocab, n_embd]`.
    pub embedding: Weight,
    /// Final norm `[n_embd]`.
    pub output_norm: Weight,
    /// Output matrix `[n_vocab, n_embd]`; `None` if it is the embedding.
    pub output: Option<Weight>,
    /// Divisors of rope's frequencies `[n_dims/2]`.
    pub rope_factors: Option<Weight>,
    /// One per layer.
    pub layers: Vec<LayerWeights>,
}

/// The constants of a layer.
#[derive(Clone, PartialEq, Debug)]
pub struct LayerWeights {
    /// Norm before attention `[n_embd]`.
    pub attn_norm: Weight,
    /// Query projection `[n_head·head_dim, n_embd]`.
    pub q: Weight,
    /// Key projection `[n_kv_head·head_dim, n_embd]`.
    pub k: Weight,
    /// Value projection `[n_kv_head·head_dim, n_embd]`.
    pub v: Weight,
    /// Biases of q, k and v.
    pub qkv_bias: Option<[Weight; 3]>,
    /// Norms of each query head and each key head `[head_dim]`.
    pub head_norms: Option<[Weight; 2]>,
    /// Projection of the heads `[n_embd, n_head·head_dim]`.
    pub attn_out: Weight,
    /// Norm before the feed-forward block `[n_embd]`.
    pub ffn_norm: Weight,
    /// Gate matrix `[n_ff, n_embd]`.
    pub gate: Weight,
    /// Up matrix `[n_ff, n_embd]`.
    pub up: Weight,
    /// Down matrix `[n_embd, n_ff]`.
    pub down: Weight,
    /// Norms of the results of attention and feed-forward `[n_embd]`.
    pub post_norms: Option<[Weight; 2]>,
}

impl Weights {
    /// Every constant once, with what it is for; the tied output matrix is the embedding and not listed again.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &Weight)> {
        let embedding = [(Role::Embedding, Some(&self.embedding))];
        let rest = [
            (Role::RopeFactors, self.rope_factors.as_ref()),
            (Role::OutputNorm, Some(&self.output_norm)),
            (Role::Output, self.output.as_ref()),
        ];
        let global = |(role, weight): (Role, Option<_>)| weight.map(|weight| (Slot::global(role), weight));
        let layers = self.layers.iter().enumerate().flat_map(|(index, layer)| {
            layer.iter().map(move |(role, weight)| (Slot::layer(index as u32, role), weight))
        });
        embedding.into_iter().filter_map(global).chain(layers).chain(rest.into_iter().filter_map(global))
    }

    /// Bytes of all constants, each counted once.
    pub fn total_bytes(&self) -> u64 {
        self.iter().map(|(_, weight)| weight.source.len).sum()
    }
}

impl LayerWeights {
    /// Every constant of the layer.
    pub fn iter(&self) -> impl Iterator<Item = (Role, &Weight)> {
        let [q_bias, k_bias, v_bias] = self.qkv_bias.as_ref().map_or([None; 3], |biases| biases.each_ref().map(Some));
        let [q_norm, k_norm] = self.head_norms.as_ref().map_or([None; 2], |norms| norms.each_ref().map(Some));
        let [post_attn, post_ffn] = self.post_norms.as_ref().map_or([None; 2], |norms| norms.each_ref().map(Some));
        [
            (Role::AttentionNorm, Some(&self.attn_norm)),
            (Role::Query, Some(&self.q)),
            (Role::Key, Some(&self.k)),
            (Role::Value, Some(&self.v)),
            (Role::QueryBias, q_bias),
            (Role::KeyBias, k_bias),
            (Role::ValueBias, v_bias),
            (Role::QueryNorm, q_norm),
            (Role::KeyNorm, k_norm),
            (Role::AttentionOutput, Some(&self.attn_out)),
            (Role::PostAttentionNorm, post_attn),
            (Role::FeedForwardNorm, Some(&self.ffn_norm)),
            (Role::Gate, Some(&self.gate)),
            (Role::Up, Some(&self.up)),
            (Role::Down, Some(&self.down)),
            (Role::PostFeedForwardNorm, post_ffn),
        ]
        .into_iter()
        .filter_map(|(role, weight)| weight.map(|weight| (role, weight)))
    }
}
