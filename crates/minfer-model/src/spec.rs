//! What a model is: hyper-parameters, typed options, weights by role. Takes nothing; gives plain data that the blocks
//! turn into a graph; must not know files. Every difference between architectures is a field here.

use crate::weights::Weights;
use minfer_graph::{Activation, RopeStyle};

/// A model, as the graph builder needs it.
#[derive(Clone, PartialEq, Debug)]
pub struct ModelSpec {
    /// Name of the architecture.
    pub arch: &'static str,
    /// Name of the model, for people.
    pub name: Option<String>,
    /// Layers.
    pub n_layer: u32,
    /// Width of the residual stream.
    pub n_embd: u32,
    /// Query heads.
    pub n_head: u32,
    /// Key and value heads of each layer; each divides `n_head`.
    pub n_kv_head: Vec<u32>,
    /// Elements of a head.
    pub head_dim: u32,
    /// Width of the feed-forward block.
    pub n_ff: u32,
    /// Tokens in the vocabulary.
    pub n_vocab: u32,
    /// Context length the model was trained for.
    pub n_ctx_train: u32,
    /// Epsilon of every norm.
    pub norm_eps: f32,
    /// Rotary position embedding; windowed layers may have their own.
    pub rope: Rope,
    /// What else differs between architectures.
    pub options: Options,
    /// Constants by role.
    pub weights: Weights,
}

/// Rotary position embedding (Su et al. 2021). Frequency factors are a weight.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rope {
    /// Which elements of a head rotate together.
    pub style: RopeStyle,
    /// Rotated elements at the start of a head; even.
    pub n_dims: u32,
    /// Frequency base.
    pub base: f32,
    /// Factor on positions: 1 without scaling, `1/factor` with linear scaling.
    pub freq_scale: f32,
}

/// Typed differences between architectures.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Biases on the query, key and value projections.
    pub qkv_bias: bool,
    /// Each query and key head is normalised before rope.
    pub head_norms: bool,
    /// The results of attention and feed-forward are normalised before they are added.
    pub sandwich_norms: bool,
    /// Function of the gate.
    pub activation: Activation,
    /// Factor on the embedding.
    pub embed_scale: f32,
    /// Factor on `q·k`.
    pub attention_scale: f32,
    /// Layers that see only the latest positions.
    pub window: Option<Window>,
    /// Rope's frequencies are divided by factors from the file.
    pub rope_factors: bool,
    /// The output matrix is the embedding.
    pub tied_output: bool,
}

/// Attention to the latest positions only.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    /// A query at position `p` sees the keys at `p - n_tokens + 1 ..= p`.
    pub n_tokens: u32,
    /// Which layers are windowed.
    pub local: Vec<bool>,
    /// Rope of the windowed layers, if it differs.
    pub rope: Option<Rope>,
}

impl ModelSpec {
    /// The window of a layer, if it has one.
    pub fn window_of(&self, layer: u32) -> Option<&Window> {
        self.options.window.as_ref().filter(|window| window.local.get(layer as usize) == Some(&true))
    }

    /// Key and value heads of a layer; 0 past the last.
    pub fn n_kv_head_of(&self, layer: u32) -> u32 {
        self.n_kv_head.get(layer as usize).copied().unwrap_or(0)
    }
}
