//! A kernel with the bytes it works on. Takes kernels, shapes and buffers; gives what a backend executes.

use crate::buffer::{BackendId, BufRef};
use crate::kernel::Kernel;
use minfer_graph::{DType, Shape, ValueType};

/// A value and its bytes. Rows follow each other without gaps; a batch smaller than the capacity uses the first rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Operand {
    /// The bytes.
    pub buf: BufRef,
    /// Rows and columns.
    pub shape: Shape,
    /// Element type.
    pub ty: ValueType,
}

/// A weight and its bytes: `rows` rows of `cols` elements in block format `dtype`, without gaps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WeightOperand {
    /// The bytes.
    pub buf: BufRef,
    /// Block format.
    pub dtype: DType,
    /// Outer dimension.
    pub rows: u32,
    /// Row length.
    pub cols: u32,
}

/// A layer's two KV regions: `n_cells` rows of `cols` elements each.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KvPair {
    /// Keys.
    pub k: BufRef,
    /// Values.
    pub v: BufRef,
    /// Element type.
    pub ty: ValueType,
    /// Columns of a cell.
    pub cols: u32,
    /// Cells in the region.
    pub n_cells: u32,
}

/// How, where, and on which bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The node it computes, for messages and traces.
    pub node: u32,
    /// The node's name.
    pub name: String,
    /// Who runs it.
    pub backend: BackendId,
    /// How.
    pub kernel: Kernel,
    /// Inputs, in the operation's order. The input of a [`minfer_graph::Op::Copy`] is on another backend.
    pub inputs: Vec<Operand>,
    /// Weights, in the operation's order.
    pub weights: Vec<WeightOperand>,
    /// The value. It may share its bytes with an input that the operation can overwrite in place, and with no other.
    pub output: Operand,
    /// Scratch bytes that the backend asked for, undefined before and after the step.
    pub workspace: Option<BufRef>,
    /// The KV regions, for operations that read or write them.
    pub kv: Option<KvPair>,
}
