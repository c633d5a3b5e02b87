//! The compute graph: *what* is computed, never where or how.
//!
//! Takes: operations pushed by a model builder. Gives: a [`Graph`] of [`Node`]s in build order, which is the execution
//! order; shape rules; verification; text, DOT and JSON. Must not know: devices, addresses, files, architectures.
//!
//! Every value is a matrix of `rows × cols`. The number of rows is a constant, the number of tokens of a batch or the
//! number of output rows; the last two are only bounded in a graph ([`GraphParams`]), their actual value comes with each
//! run ([`BatchDims`]). So one graph serves every batch up to its capacity.

mod build;
mod graph;
mod infer;
mod op;
mod params;
mod print;
mod types;
mod verify;

pub use build::{GraphBuilder, NodeSpec};
pub use graph::{Graph, GraphError, KvLayer, Node, NodeId, Weight, WeightId, WeightSource};
pub use infer::{InferError, infer_output};
pub use op::{Activation, Attention, KvSide, Op, Qkv, RopeStyle};
pub use params::{CacheType, Fusion, GraphKind, GraphParams, KV_BLOCK_CELLS};
pub use print::{Annotation, to_dot, to_json, to_text};
pub use types::{BatchDims, Rows, Shape, ValueType};
pub use verify::verify;

pub use minfer_gguf::DType;
