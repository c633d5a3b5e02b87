//! Checks a whole graph. Takes a graph from anywhere (a builder, a pass, a test); gives the first thing that is wrong;
//! changes nothing.

use crate::build::infer_node;
use crate::graph::{Graph, GraphError, Node, NodeId};
use std::collections::HashSet;

/// Names unique, operands present, no cycle, build order runnable, shapes and types by the rules.
pub fn verify(graph: &Graph) -> Result<(), GraphError> {
    let n_nodes = graph.nodes.len();
    if let Some(output) = graph.outputs.iter().find(|id| id.index() >= n_nodes) {
        return Err(GraphError::UnknownOutput { output: output.0, n_nodes });
    }
    let mut names = HashSet::new();
    for node in &graph.nodes {
        if !names.insert(node.name.as_str()) {
            return Err(GraphError::DuplicateName { name: node.name.clone() });
        }
        operands_exist(graph, node)?;
    }
    if let Some(node) = on_cycle(graph) {
        return Err(GraphError::Cycle { node: graph.node(node).name.clone() });
    }
    for id in graph.ids() {
        let node = graph.node(id);
        if let Some(late) = node.inputs.iter().find(|&&input| input >= id) {
            let input = graph.node(*late).name.clone();
            return Err(GraphError::OutOfOrder { node: node.name.clone(), input });
        }
        let inferred = infer_node(graph, node)?;
        if inferred != (node.shape, node.ty) {
            return Err(GraphError::Stated {
                node: node.name.clone(),
                stated: format!("{} {}", node.shape, node.ty),
                inferred: format!("{} {}", inferred.0, inferred.1),
            });
        }
        kv_layer(graph, node)?;
    }
    Ok(())
}

fn operands_exist(graph: &Graph, node: &Node) -> Result<(), GraphError> {
    let n_nodes = graph.nodes.len();
    let bad_input = node.inputs.iter().enumerate().find(|(_, id)| id.index() >= n_nodes);
    if let Some((index, input)) = bad_input {
        return Err(GraphError::UnknownInput { node: node.name.clone(), index, input: input.0, n_nodes });
    }
    let n_weights = graph.weights.len();
    if let Some(weight) = node.weights.iter().find(|id| id.index() >= n_weights) {
        return Err(GraphError::UnknownWeight { node: node.name.clone(), weight: weight.0, n_weights });
    }
    Ok(())
}

/// A layer's columns and window are those of its cache.
fn kv_layer(graph: &Graph, node: &Node) -> Result<(), GraphError> {
    let Some(layer) = node.op.kv_layer() else { return Ok(()) };
    let kv = graph.kv_layers.get(layer as usize);
    if let (crate::Op::Attention(a), Some(kv)) = (node.op, kv)
        && a.window != kv.window
    {
        return Err(GraphError::KvWindow { node: node.name.clone(), layer, expected: kv.window, got: a.window });
    }
    let expected = kv.map(|kv| kv.cols);
    let got = match node.op {
        crate::Op::Attention(a) => a.n_kv_head * a.head_dim,
        crate::Op::QkvStore(q) => q.n_kv_head * q.head_dim,
        _ => node.shape.cols,
    };
    if expected == Some(got) {
        return Ok(());
    }
    Err(GraphError::KvColumns { node: node.name.clone(), layer, expected, got })
}

/// A node on a cycle, if there is one. Kahn's order serves only to reject cycles; it is never the order of execution.
fn on_cycle(graph: &Graph) -> Option<NodeId> {
    let mut missing: Vec<usize> = graph.nodes.iter().map(|node| node.inputs.len()).collect();
    let mut dependents = vec![Vec::new(); graph.nodes.len()];
    for id in graph.ids() {
        for input in &graph.node(id).inputs {
            dependents[input.index()].push(id);
        }
    }
    let mut ready: Vec<NodeId> = graph.ids().filter(|id| missing[id.index()] == 0).collect();
    while let Some(id) = ready.pop() {
        for &dependent in &dependents[id.index()] {
            missing[dependent.index()] -= 1;
            if missing[dependent.index()] == 0 {
                ready.push(dependent);
            }
        }
    }
    graph.ids().find(|id| missing[id.index()] > 0)
}
