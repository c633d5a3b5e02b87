//! Value types and shapes. Takes nothing of ours; gives sizes in bytes; must not know operations.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The element type of a value that flows through a graph (weights have a `DType` of their own).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ValueType {
    /// 32-bit float, the type of activations.
    F32,
    /// 16-bit float, a type of KV caches.
    F16,
    /// Blocks of 32 elements, a type of KV caches: a half-precision scale, then 32 signed bytes, as GGUF's format of that
    /// name. Rows and heads are multiples of 32. Keys are stored turned, see [`CacheType::Q8_0`](crate::CacheType::Q8_0).
    Q8_0,
    /// 32-bit integer: token ids, positions, cells. Any bit pattern survives.
    I32,
    /// Activations quantised once for every product that reads them, in blocks of 32 along a row.
    ///
    /// A row of `n` columns (`n` a multiple of 32) is `n` signed bytes `q`, then `n/32` floats `d` (the scale of each
    /// block), then `n/16` 16-bit sums of `q` over each half block. The value is `d · q`.
    Q8,
    /// Activations quantised finely: each row is two rows of [`ValueType::Q8`], the value and what its rounding left out,
    /// and means their sum. Scales of the second row are 1/256 of the first's, so that `256 · q + q` of both is a 16-bit
    /// integer in units of the second. For products whose error lasts (see `Capabilities::activation_type`).
    Q8x2,
}

impl ValueType {
    /// Bytes of a row of `cols` elements.
    pub fn row_bytes(self, cols: u32) -> u64 {
        let cols = u64::from(cols);
        match self {
            ValueType::F32 | ValueType::I32 => cols * 4,
            ValueType::F16 => cols * 2,
            ValueType::Q8_0 => cols / 32 * 34,
            ValueType::Q8 => cols + cols / 32 * 4 + cols / 16 * 2,
            ValueType::Q8x2 => 2 * (cols + cols / 32 * 4 + cols / 16 * 2),
        }
    }

    /// How many rows of [`ValueType::Q8`] a row is: one, two, or none where the type is another.
    pub fn q8_rows(self) -> usize {
        match self {
            ValueType::Q8 => 1,
            ValueType::Q8x2 => 2,
            ValueType::F32 | ValueType::F16 | ValueType::Q8_0 | ValueType::I32 => 0,
        }
    }

    /// Whether it is a type of quantised activations.
    pub fn is_quantised(self) -> bool {
        self.q8_rows() > 0
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ValueType::F32 => "f32",
            ValueType::F16 => "f16",
            ValueType::Q8_0 => "q8_0",
            ValueType::I32 => "i32",
            ValueType::Q8 => "q8",
            ValueType::Q8x2 => "q8x2",
        })
    }
}

/// How many rows a value has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Rows {
    /// Always this many.
    Fixed(u32),
    /// One per token of the batch.
    Tokens,
    /// One per row of logits asked for.
    Outputs,
}

/// Rows and columns of a value; a row is contiguous.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Shape {
    /// Outer dimension.
    pub rows: Rows,
    /// Elements of one row.
    pub cols: u32,
}

impl Shape {
    /// `rows × cols`.
    pub fn new(rows: Rows, cols: u32) -> Self {
        Self { rows, cols }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rows {
            Rows::Fixed(n) => write!(f, "[{n}, {}]", self.cols),
            Rows::Tokens => write!(f, "[n_tokens, {}]", self.cols),
            Rows::Outputs => write!(f, "[n_out, {}]", self.cols),
        }
    }
}

/// The actual sizes of one batch; each at most the capacity in the graph's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchDims {
    /// Tokens in the batch.
    pub n_tokens: u32,
    /// Rows of logits wanted.
    pub n_outputs: u32,
}

impl BatchDims {
    /// The number of rows meant by `rows` in this batch.
    pub fn rows(&self, rows: Rows) -> u32 {
        match rows {
            Rows::Fixed(n) => n,
            Rows::Tokens => self.n_tokens,
            Rows::Outputs => self.n_outputs,
        }
    }

    /// Bytes of a value in this batch.
    pub fn bytes(&self, shape: Shape, ty: ValueType) -> u64 {
        u64::from(self.rows(shape.rows)) * ty.row_bytes(shape.cols)
    }
}
