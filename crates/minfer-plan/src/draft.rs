//! A graph whose nodes have backends, and how passes rewrite it. Takes a graph; gives the next one; must not know what any
//! pass looks for.

use minfer_backend::{BackendId, Capabilities, Kernel};
use minfer_graph::{Graph, Node, NodeId, Op, ValueType};
use std::sync::Arc;

/// The backends' answers, in the engine's order.
pub(crate) type Backends = [Arc<dyn Capabilities>];

/// A graph and the backend of each node.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub graph: Graph,
    pub backends: Vec<BackendId>,
}

impl Draft {
    pub fn backend(&self, id: NodeId) -> BackendId {
        self.backends[id.index()]
    }
}

/// The kernel of a node as it stands.
pub(crate) fn kernel_of(graph: &Graph, node: &Node) -> Kernel {
    Kernel {
        op: node.op,
        inputs: node.inputs.iter().map(|&id| graph.node(id).ty).collect(),
        weights: node.weights.iter().map(|id| graph.weights[id.index()].dtype).collect(),
        output: node.ty,
    }
}

/// Whether a backend runs a node, whose operand it may want quantised first.
pub(crate) fn runs(caps: &dyn Capabilities, graph: &Graph, node: &Node, lasting: bool) -> bool {
    let mut kernel = kernel_of(graph, node);
    if node.op.is_product() && kernel.inputs.first() == Some(&ValueType::F32) {
        let Some(wanted) = activation_type(caps, graph, node, lasting) else { return false };
        kernel.inputs[0] = wanted;
        let quantize = Kernel { op: Op::Quantize, inputs: vec![ValueType::F32], weights: Vec::new(), output: wanted };
        if wanted.is_quantised() && !caps.supports(&quantize) {
            return false;
        }
    }
    caps.supports(&kernel)
}

/// The products whose error lasts, because no later product dampens it: what they give is an output of the graph, or is
/// added to the residual stream, as it is or normalised. Fusing does not change the answer.
pub(crate) fn lasting(graph: &Graph) -> Vec<bool> {
    let readers = graph.readers();
    let is_added = |id: NodeId| {
        let mut of = readers[id.index()].iter().map(|reader| graph.node(*reader).op);
        !readers[id.index()].is_empty() && of.all(|op| op.accumulates())
    };
    let is_lasting = |id: NodeId| match graph.node(id).op {
        Op::LinearAdd => true,
        Op::Linear => {
            let normalised =
                |reader: &NodeId| matches!(graph.node(*reader).op, Op::RmsNorm { .. }) && is_added(*reader);
            let readers = &readers[id.index()];
            graph.outputs.contains(&id) || is_added(id) || !readers.is_empty() && readers.iter().all(normalised)
        }
        _ => false,
    };
    graph.ids().map(is_lasting).collect()
}

/// The type in which the matrices of a product want their operand, when they agree.
pub(crate) fn activation_type(caps: &dyn Capabilities, graph: &Graph, node: &Node, lasting: bool) -> Option<ValueType> {
    let matrices = &node.weights[..node.op.n_matrices()];
    let mut types = matrices.iter().map(|id| caps.activation_type(graph.weights[id.index()].dtype, lasting));
    let first = types.next()?;
    types.all(|ty| ty == first).then_some(first)
}

/// Builds the next draft from an old one, node by node in the old build order.
pub(crate) struct Rewriter<'a> {
    old: &'a Draft,
    new: Draft,
    map: Vec<Option<NodeId>>,
}

impl<'a> Rewriter<'a> {
    pub fn new(old: &'a Draft) -> Self {
        let graph = Graph {
            params: old.graph.params.clone(),
            nodes: Vec::with_capacity(old.graph.nodes.len()),
            weights: old.graph.weights.clone(),
            outputs: Vec::new(),
            kv_layers: old.graph.kv_layers.clone(),
        };
        let map = vec![None; old.graph.nodes.len()];
        Self { old, new: Draft { graph, backends: Vec::new() }, map }
    }

    /// The new id of an old node that has been kept or replaced.
    pub fn mapped(&self, old: NodeId) -> NodeId {
        match self.map[old.index()] {
            Some(id) => id,
            None => unreachable!("node {} is used after it was dropped or before it was built", old.0),
        }
    }

    /// Keeps an old node, with its inputs as they are now called.
    pub fn keep(&mut self, id: NodeId) -> NodeId {
        let node = self.renamed(id);
        self.replace(&[id], node, self.old.backend(id))
    }

    /// A copy of an old node with mapped inputs, to be changed and emitted.
    pub fn renamed(&self, id: NodeId) -> Node {
        let mut node = self.old.graph.node(id).clone();
        for input in &mut node.inputs {
            *input = self.mapped(*input);
        }
        node
    }

    /// Emits a node whose inputs are new ids; the old nodes `of` are from now on this one.
    pub fn replace(&mut self, of: &[NodeId], node: Node, backend: BackendId) -> NodeId {
        let id = self.insert(node, backend);
        for old in of {
            self.map[old.index()] = Some(id);
        }
        id
    }

    /// Emits a node that no old one stands for.
    pub fn insert(&mut self, node: Node, backend: BackendId) -> NodeId {
        self.new.graph.nodes.push(node);
        self.new.backends.push(backend);
        NodeId(self.new.graph.nodes.len() as u32 - 1)
    }

    /// A node emitted before.
    pub fn emitted(&self, id: NodeId) -> &Node {
        self.new.graph.node(id)
    }

    pub fn finish(mut self) -> Draft {
        self.new.graph.outputs = self.old.graph.outputs.iter().map(|&id| self.mapped(id)).collect();
        self.new
    }
}
