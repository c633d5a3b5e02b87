//! The closed set of operations and their properties. Takes nothing; gives [`Op`]; must not know backends or names.
//!
//! A property (in place, which inputs are bytes, which KV layer) is stated here once, in an exhaustive `match`, so that a
//! pass never lists operations by name.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Gate functions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Activation {
    /// `x · sigmoid(x)`.
    Silu,
    /// `0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))` (Hendrycks and Gimpel 2016, tanh form).
    GeluTanh,
}

/// Which elements of a head rope rotates together (Su et al. 2021).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum RopeStyle {
    /// Pairs `(2i, 2i+1)`.
    Adjacent,
    /// Pairs `(i, i + n_dims/2)`.
    Halves,
}

/// One of a layer's two KV regions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
pub enum KvSide {
    /// Keys.
    K,
    /// Values.
    V,
}

/// Parameters of causal attention over the KV cache.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Attention {
    /// Which layer's KV regions are read.
    pub layer: u32,
    /// Query heads.
    pub n_head: u32,
    /// Key and value heads; a divisor of `n_head`.
    pub n_kv_head: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// Factor on `q·k` before the softmax.
    pub scale: f32,
    /// A query at position `p` sees the keys at `p - window + 1 ..= p`; all when absent.
    pub window: Option<u32>,
}

/// Parameters of the fused projection `q, k, v` with bias, head norms, rope and KV store.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Qkv {
    /// Which layer's KV regions are written.
    pub layer: u32,
    /// Query heads.
    pub n_head: u32,
    /// Key and value heads.
    pub n_kv_head: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// Biases follow the three matrices in the node's weights.
    pub bias: bool,
    /// Epsilon of the q and k head norms, whose weights come last; no norms when absent.
    pub head_norm_eps: Option<f32>,
    /// Pairing of rope.
    pub rope: RopeStyle,
    /// Elements at the head's start that rope rotates.
    pub rope_dims: u32,
}

/// What a node computes. `x` is the first input; `W` has shape `[out, in]`, row-major.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Op {
    /// Written by the host before the first step. No inputs.
    Input,
    /// `(token_ids)`, weight `[n_vocab, n_embd]`: the rows named by the ids, times `scale`.
    Embed {
        /// Factor on each element.
        scale: f32,
    },
    /// `(positions)`, optional weight: frequency factors `[n_dims/2]` that divide the frequencies. Gives per token
    /// `n_dims/2` cosines, then `n_dims/2` sines of `position · freq_scale · base^(-2i/n_dims)`.
    RopeTable {
        /// Rotated elements of a head.
        n_dims: u32,
        /// Frequency base.
        base: f32,
        /// Factor on positions (linear scaling).
        freq_scale: f32,
    },
    /// `(x)`, weight `[group]`: each run of `group` elements divided by its root mean square (Zhang and Sennrich 2019).
    RmsNorm {
        /// Added to the mean square.
        eps: f32,
        /// Elements normalised together: the row, or a head.
        group: u32,
    },
    /// `(x)`, weights `W [, bias]`: `x Wᵀ + bias`.
    Linear,
    /// `(x, table)`: rotates the first `n_dims` of each head.
    Rope {
        /// Pairing.
        style: RopeStyle,
        /// Elements of a head.
        head_dim: u32,
        /// Rotated elements of a head.
        n_dims: u32,
    },
    /// `(k, v, cells)`: writes row `t` of k and v to cell `cells[t]` of the layer's regions. Its value is the K region.
    KvStore {
        /// Which layer.
        layer: u32,
    },
    /// `(store)`: one of the layer's regions, once `store` has run. Computes nothing.
    KvView {
        /// Which layer.
        layer: u32,
        /// Which region.
        side: KvSide,
    },
    /// `(q, k view, v view, positions, sequence rows, block table)`.
    ///
    /// Token `t` at position `p` of the sequence in row `s` of the block table attends to the cells
    /// `block_table[s][i / 32] · 32 + i % 32` of the positions `i` that its window shows.
    Attention(Attention),
    /// `(x)`: element by element.
    Activate(Activation),
    /// `(a, b)`: `a + b`.
    Add,
    /// `(a, b)`: `a · b`, element by element.
    Mul,
    /// `(x, rows)`: the rows of `x` named by the output rows.
    SelectRows,

    /// Fused. `(x)`, weights gate and up: `act(x Wgᵀ) · (x Wuᵀ)`.
    GatedLinear {
        /// Function of the gate.
        activation: Activation,
    },
    /// Fused. `(x, residual)`, weight `W`: `residual + x Wᵀ`.
    LinearAdd,
    /// Fused. `(x, rope table, cells)`, weights `Wq Wk Wv [bq bk bv] [q_norm k_norm]`: q after bias, norm and rope; k and
    /// v go to their cells.
    QkvStore(Qkv),

    /// Lowered. `(x)`: the same value in a quantised [`ValueType`](crate::ValueType).
    Quantize,
    /// Transfer. `(x)`: the copy of a value on another backend.
    Copy,
}

impl Op {
    /// Inputs whose bytes the output may take over, in order of preference: each output element depends on no element
    /// of that input but those at its own place, or in its own row where the row is read before it is written.
    pub fn in_place_inputs(&self) -> &'static [usize] {
        match self {
            Op::Activate(_) | Op::Rope { .. } | Op::RmsNorm { .. } | Op::Attention(_) => &[0],
            Op::Add | Op::Mul => &[0, 1],
            Op::LinearAdd => &[1],
            Op::Input
            | Op::Embed { .. }
            | Op::RopeTable { .. }
            | Op::Linear
            | Op::KvStore { .. }
            | Op::KvView { .. }
            | Op::SelectRows
            | Op::GatedLinear { .. }
            | Op::QkvStore(_)
            | Op::Quantize
            | Op::Copy => &[],
        }
    }

    /// Whether the operation adds onto an operand. A sum may take over the bytes of an operand that others have read
    /// before (a residual stream is read by a norm first); every other operation only those of a value that it alone reads.
    pub fn accumulates(&self) -> bool {
        matches!(self, Op::Add | Op::LinearAdd)
    }

    /// Whether the operation multiplies with weight matrices, so that its first input may come quantised.
    pub fn is_product(&self) -> bool {
        matches!(self, Op::Linear | Op::GatedLinear { .. } | Op::LinearAdd | Op::QkvStore(_))
    }

    /// How many of the leading weights are matrices of the product.
    pub fn n_matrices(&self) -> usize {
        match self {
            Op::Linear | Op::LinearAdd => 1,
            Op::GatedLinear { .. } => 2,
            Op::QkvStore(_) => 3,
            _ => 0,
        }
    }

    /// Whether the node becomes a step. Inputs are written by the host, views only name bytes.
    pub fn is_executed(&self) -> bool {
        !matches!(self, Op::Input | Op::KvView { .. })
    }

    /// The layer whose KV regions the operation reads or writes.
    pub fn kv_layer(&self) -> Option<u32> {
        match self {
            Op::KvStore { layer } | Op::KvView { layer, .. } => Some(*layer),
            Op::Attention(a) => Some(a.layer),
            Op::QkvStore(q) => Some(q.layer),
            _ => None,
        }
    }

    /// Whether the operation writes KV cells: it has an effect beyond its value.
    pub fn writes_kv(&self) -> bool {
        matches!(self, Op::KvStore { .. } | Op::QkvStore(_))
    }

    /// Whether the value lives in a KV region and not in an arena.
    pub fn lives_in_kv(&self) -> bool {
        matches!(self, Op::KvStore { .. } | Op::KvView { .. })
    }

    /// Whether the operation reads the bytes of this input. A view takes only its region's name, never its bytes.
    pub fn reads_bytes(&self, _input: usize) -> bool {
        !matches!(self, Op::KvView { .. })
    }

    /// Short name, as printed.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Input => "input",
            Op::Embed { .. } => "embed",
            Op::RopeTable { .. } => "rope_table",
            Op::RmsNorm { .. } => "rms_norm",
            Op::Linear => "linear",
            Op::Rope { .. } => "rope",
            Op::KvStore { .. } => "kv_store",
            Op::KvView { .. } => "kv_view",
            Op::Attention(_) => "attention",
            Op::Activate(Activation::Silu) => "silu",
            Op::Activate(Activation::GeluTanh) => "gelu",
            Op::Add => "add",
            Op::Mul => "mul",
            Op::SelectRows => "select_rows",
            Op::GatedLinear { .. } => "gated_linear",
            Op::LinearAdd => "linear_add",
            Op::QkvStore(_) => "qkv_store",
            Op::Quantize => "quantize",
            Op::Copy => "copy",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
