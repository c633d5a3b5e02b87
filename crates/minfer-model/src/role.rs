//! What a tensor is for, and what it is called in a file. Takes nothing; gives [`Role`] and the one table of tensor
//! names; must not know shapes.

use std::fmt;

/// What a tensor is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Role {
    /// Token embedding `[n_vocab, n_embd]`.
    Embedding,
    /// Final norm `[n_embd]`.
    OutputNorm,
    /// Output matrix `[n_vocab, n_embd]`; the embedding when absent.
    Output,
    /// Divisors of rope's frequencies `[n_dims/2]`.
    RopeFactors,
    /// Norm before attention `[n_embd]`.
    AttentionNorm,
    /// Query projection `[n_head·head_dim, n_embd]`.
    Query,
    /// Key projection `[n_kv_head·head_dim, n_embd]`.
    Key,
    /// Value projection `[n_kv_head·head_dim, n_embd]`.
    Value,
    /// Bias of the query projection.
    QueryBias,
    /// Bias of the key projection.
    KeyBias,
    /// Bias of the value projection.
    ValueBias,
    /// Norm of each query head `[head_dim]`.
    QueryNorm,
    /// Norm of each key head `[head_dim]`.
    KeyNorm,
    /// Projection of the heads back to the stream `[n_embd, n_head·head_dim]`.
    AttentionOutput,
    /// Norm of attention's result before it is added `[n_embd]`.
    PostAttentionNorm,
    /// Norm before the feed-forward block `[n_embd]`.
    FeedForwardNorm,
    /// Gate matrix `[n_ff, n_embd]`.
    Gate,
    /// Up matrix `[n_ff, n_embd]`.
    Up,
    /// Down matrix `[n_embd, n_ff]`.
    Down,
    /// Norm of the feed-forward block's result before it is added `[n_embd]`.
    PostFeedForwardNorm,
}

impl Role {
    /// Stem of the tensor's name, without `blk.<layer>.`, and the role in words.
    fn row(self) -> (&'static str, &'static str) {
        match self {
            Role::Embedding => ("token_embd.weight", "token embedding"),
            Role::OutputNorm => ("output_norm.weight", "output norm"),
            Role::Output => ("output.weight", "output matrix"),
            Role::RopeFactors => ("rope_freqs.weight", "rope frequency factors"),
            Role::AttentionNorm => ("attn_norm.weight", "attention norm"),
            Role::Query => ("attn_q.weight", "query projection"),
            Role::Key => ("attn_k.weight", "key projection"),
            Role::Value => ("attn_v.weight", "value projection"),
            Role::QueryBias => ("attn_q.bias", "query bias"),
            Role::KeyBias => ("attn_k.bias", "key bias"),
            Role::ValueBias => ("attn_v.bias", "value bias"),
            Role::QueryNorm => ("attn_q_norm.weight", "query head norm"),
            Role::KeyNorm => ("attn_k_norm.weight", "key head norm"),
            Role::AttentionOutput => ("attn_output.weight", "attention output projection"),
            Role::PostAttentionNorm => ("post_attention_norm.weight", "norm after attention"),
            Role::FeedForwardNorm => ("ffn_norm.weight", "feed-forward norm"),
            Role::Gate => ("ffn_gate.weight", "gate matrix"),
            Role::Up => ("ffn_up.weight", "up matrix"),
            Role::Down => ("ffn_down.weight", "down matrix"),
            Role::PostFeedForwardNorm => ("post_ffw_norm.weight", "norm after the feed-forward block"),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.row().1)
    }
}

/// A role and the layer it is in, if it is in one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Slot {
    /// The layer.
    pub layer: Option<u32>,
    /// The role.
    pub role: Role,
}

impl Slot {
    /// A role outside the layers.
    pub fn global(role: Role) -> Self {
        Self { layer: None, role }
    }

    /// A role in a layer.
    pub fn layer(layer: u32, role: Role) -> Self {
        Self { layer: Some(layer), role }
    }

    /// The tensor's name in a file.
    pub fn tensor_name(self) -> String {
        let (stem, _) = self.role.row();
        self.layer.map_or_else(|| stem.to_owned(), |layer| format!("blk.{layer}.{stem}"))
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.layer {
            Some(layer) => write!(f, "{} of layer {layer}", self.role),
            None => write!(f, "{}", self.role),
        }
    }
}
