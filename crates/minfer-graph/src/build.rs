//! Building a graph node by node. Takes operations and names; gives a [`Graph`] whose every node obeys the shape rules;
//! must not know architectures.

use crate::graph::{Graph, GraphError, KvLayer, Node, NodeId, Weight, WeightId};
use crate::infer::infer_output;
use crate::op::Op;
use crate::params::GraphParams;
use crate::types::{Shape, ValueType};
use std::collections::HashMap;

/// What a new node is to be: everything but its shape and type, which follow.
pub struct NodeSpec<'a> {
    /// Operation.
    pub op: Op,
    /// Unique name.
    pub name: String,
    /// Layer, if it belongs to one.
    pub layer: Option<u32>,
    /// Values taken.
    pub inputs: &'a [NodeId],
    /// Weights taken.
    pub weights: &'a [WeightId],
}

/// A graph under construction.
pub struct GraphBuilder {
    graph: Graph,
    weight_ids: HashMap<String, WeightId>,
}

impl GraphBuilder {
    /// An empty graph; `kv_layers` is what each layer caches.
    pub fn new(params: GraphParams, kv_layers: Vec<KvLayer>) -> Self {
        let graph = Graph { params, nodes: Vec::new(), weights: Vec::new(), outputs: Vec::new(), kv_layers };
        Self { graph, weight_ids: HashMap::new() }
    }

    /// What the graph is built for.
    pub fn params(&self) -> &GraphParams {
        &self.graph.params
    }

    /// See [`Graph::kv_kinds`].
    pub fn kv_kinds(&self) -> Vec<Option<u32>> {
        self.graph.kv_kinds()
    }

    /// The shape of a value.
    pub fn shape(&self, id: NodeId) -> Shape {
        self.graph.node(id).shape
    }

    /// A weight, once per name.
    pub fn weight(&mut self, weight: &Weight) -> WeightId {
        if let Some(&id) = self.weight_ids.get(&weight.name) {
            return id;
        }
        let id = WeightId(self.graph.weights.len() as u32);
        self.weight_ids.insert(weight.name.clone(), id);
        self.graph.weights.push(weight.clone());
        id
    }

    /// A value that the host writes before each run, found by its name.
    pub fn input(&mut self, name: &str, shape: Shape, ty: ValueType) -> NodeId {
        let node = Node { op: Op::Input, name: name.into(), layer: None, inputs: vec![], weights: vec![], shape, ty };
        self.graph.nodes.push(node);
        NodeId(self.graph.nodes.len() as u32 - 1)
    }

    /// Appends a node; its shape and type follow from the rules.
    pub fn push(&mut self, spec: NodeSpec<'_>) -> Result<NodeId, GraphError> {
        let stated = (Shape::new(crate::Rows::Fixed(0), 0), ValueType::F32);
        let mut node = Node {
            op: spec.op,
            name: spec.name,
            layer: spec.layer,
            inputs: spec.inputs.to_vec(),
            weights: spec.weights.to_vec(),
            shape: stated.0,
            ty: stated.1,
        };
        (node.shape, node.ty) = infer_node(&self.graph, &node)?;
        self.graph.nodes.push(node);
        Ok(NodeId(self.graph.nodes.len() as u32 - 1))
    }

    /// The graph, with these values read after the last step. Verified.
    pub fn finish(mut self, outputs: &[NodeId]) -> Result<Graph, GraphError> {
        self.graph.outputs = outputs.to_vec();
        crate::verify(&self.graph)?;
        Ok(self.graph)
    }
}

/// Shape and type of a node by the rules; its operands must exist.
pub(crate) fn infer_node(graph: &Graph, node: &Node) -> Result<(Shape, ValueType), GraphError> {
    let inputs: Vec<_> = node.inputs.iter().map(|&id| (graph.node(id).shape, graph.node(id).ty)).collect();
    let weights: Vec<_> = node.weights.iter().map(|id| &graph.weights[id.index()]).collect();
    let kv = node.op.kv_layer().map_or(Shape::new(crate::Rows::Fixed(0), 0), |layer| graph.kv_shape(layer));
    infer_output(&node.op, &inputs, &weights, &graph.params, kv, (node.shape, node.ty))
        .map_err(|error| GraphError::Operands { node: node.name.clone(), error })
}
