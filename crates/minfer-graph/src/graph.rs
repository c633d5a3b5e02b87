//! Nodes, weights and the graph. Takes nothing of ours but operations and types; gives the plain data every pass reads;
//! must not know backends.

use crate::infer::InferError;
use crate::op::Op;
use crate::params::GraphParams;
use crate::types::{Rows, Shape, ValueType};
use minfer_gguf::DType;
use serde::Serialize;

/// A node's place in the build order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize)]
pub struct NodeId(pub u32);

impl NodeId {
    /// As an index into [`Graph::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A weight's place in [`Graph::weights`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize)]
pub struct WeightId(pub u32);

impl WeightId {
    /// As an index into [`Graph::weights`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Which bytes of the weights a tensor is, counted from the start of one part (a file) of the model.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct WeightSource {
    /// Index of the part.
    pub part: u32,
    /// Bytes from the part's start.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// A constant matrix `[rows, cols]`; a vector has one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weight {
    /// Name in the file.
    pub name: String,
    /// Block format.
    pub dtype: DType,
    /// Outer dimension (outputs of a product).
    pub rows: u32,
    /// Row length (inputs of a product).
    pub cols: u32,
    /// Where its bytes are.
    pub source: WeightSource,
}

/// One operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// What it computes.
    pub op: Op,
    /// Unique name, such as `blk.3.attn_norm`.
    pub name: String,
    /// The layer it belongs to.
    pub layer: Option<u32>,
    /// The nodes whose values it takes ("sources").
    pub inputs: Vec<NodeId>,
    /// The weights it takes.
    pub weights: Vec<WeightId>,
    /// Shape of its value.
    pub shape: Shape,
    /// Element type of its value.
    pub ty: ValueType,
}

/// What a layer caches. Layers with the same window are of one kind: they hold the same positions, and share the block table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KvLayer {
    /// Columns of one cell in the K (and in the V) region.
    pub cols: u32,
    /// The latest positions that a token sees; all when absent. Cells that nobody will see again are given to others.
    pub window: Option<u32>,
}

/// Nodes in build order, which is the order they run in.
#[derive(Clone, PartialEq, Debug)]
pub struct Graph {
    /// What the structure depends on.
    pub params: GraphParams,
    /// In build order; `NodeId` is the index.
    pub nodes: Vec<Node>,
    /// Constants.
    pub weights: Vec<Weight>,
    /// Values read after the last step.
    pub outputs: Vec<NodeId>,
    /// What each layer caches; the index is the layer.
    pub kv_layers: Vec<KvLayer>,
}

impl Graph {
    /// The node with this id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Ids in build order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The node with this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.ids().find(|&id| self.node(id).name == name)
    }

    /// For each node, the nodes that take its value, each once, in build order.
    pub fn readers(&self) -> Vec<Vec<NodeId>> {
        let mut readers = vec![Vec::new(); self.nodes.len()];
        for id in self.ids() {
            for &input in &self.node(id).inputs {
                let list: &mut Vec<NodeId> = &mut readers[input.index()];
                if list.last() != Some(&id) {
                    list.push(id);
                }
            }
        }
        readers
    }

    /// Whether each node contributes to an output or to a KV store that some live node sees: the others are dead, get
    /// no bytes and no step.
    pub fn live_nodes(&self) -> Vec<bool> {
        let mut live = vec![false; self.nodes.len()];
        let mut pending: Vec<NodeId> = self.outputs.clone();
        pending.extend(self.ids().filter(|&id| self.node(id).op.writes_kv()));
        while let Some(id) = pending.pop() {
            if !std::mem::replace(&mut live[id.index()], true) {
                pending.extend(&self.node(id).inputs);
            }
        }
        live
    }

    /// Inputs by name, in build order.
    pub fn inputs(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.ids().filter(|&id| matches!(self.node(id).op, Op::Input))
    }

    /// The K (and the V) region of a layer; without cells for a layer that does not exist.
    pub fn kv_shape(&self, layer: u32) -> Shape {
        match self.kv_layers.get(layer as usize) {
            Some(kv) => Shape::new(Rows::Fixed(self.params.n_cells_of(kv.window)), kv.cols),
            None => Shape::new(Rows::Fixed(0), 0),
        }
    }

    /// The kinds of layers, each once: by their window, first those that see everything.
    pub fn kv_kinds(&self) -> Vec<Option<u32>> {
        let mut kinds: Vec<Option<u32>> = self.kv_layers.iter().map(|layer| layer.window).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Bytes of a node's value in the largest batch.
    pub fn capacity_bytes(&self, id: NodeId) -> u64 {
        let node = self.node(id);
        self.params.capacity().bytes(node.shape, node.ty)
    }
}

/// What is wrong with a graph.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GraphError {
    /// A node takes a value that does not exist.
    #[error("node {node}: input {index} names node {input}, but the graph has {n_nodes} nodes")]
    UnknownInput {
        /// The node.
        node: String,
        /// Which of its inputs.
        index: usize,
        /// The id named.
        input: u32,
        /// Nodes there are.
        n_nodes: usize,
    },
    /// An output that does not exist.
    #[error("output {output} does not exist, the graph has {n_nodes} nodes")]
    UnknownOutput {
        /// The id named.
        output: u32,
        /// Nodes there are.
        n_nodes: usize,
    },
    /// A node takes a weight that does not exist.
    #[error("node {node}: weight {weight} does not exist, the graph has {n_weights}")]
    UnknownWeight {
        /// The node.
        node: String,
        /// The id named.
        weight: u32,
        /// Weights there are.
        n_weights: usize,
    },
    /// Nodes that wait for each other.
    #[error("the graph has a cycle through node {node}: no order can run it")]
    Cycle {
        /// One node on the cycle.
        node: String,
    },
    /// A value is used before it is built.
    #[error("node {node} takes {input}, which is built after it; nodes run in build order")]
    OutOfOrder {
        /// The node.
        node: String,
        /// The value it takes too early.
        input: String,
    },
    /// Two nodes of one name.
    #[error("two nodes are called {name}; values are found by name")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// Operands that do not fit the operation.
    #[error("node {node}: {error}")]
    Operands {
        /// The node.
        node: String,
        /// What does not fit.
        error: InferError,
    },
    /// A node's stated shape or type is not what its operation gives.
    #[error("node {node} is stated as {stated}, its operation gives {inferred}")]
    Stated {
        /// The node.
        node: String,
        /// Shape and type in the node.
        stated: String,
        /// Shape and type by the rules.
        inferred: String,
    },
    /// A layer's KV regions are used with another width than the graph states.
    #[error("node {node}: layer {layer} has KV cells of {expected:?} columns, got {got}")]
    KvColumns {
        /// The node.
        node: String,
        /// Layer.
        layer: u32,
        /// Columns stated in the graph, if the layer exists.
        expected: Option<u32>,
        /// Columns of the operand.
        got: u32,
    },
    /// A layer's attention has another window than the layer's cache is held for.
    #[error("node {node}: layer {layer} keeps {expected:?} positions, its attention sees {got:?} (none: all)")]
    KvWindow {
        /// The node.
        node: String,
        /// Layer.
        layer: u32,
        /// Window stated in the graph.
        expected: Option<u32>,
        /// Window of the attention.
        got: Option<u32>,
    },
}
