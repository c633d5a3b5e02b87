//! Assign: a backend for every node. Takes a graph and capabilities; gives a draft; changes no node.
//!
//! The highest priority that supports a node's kernel gets it. All nodes of a layer's KV cache go together, since its
//! regions are on one backend. An input goes to its first reader, so that most inputs need no copy.

use crate::draft::{Backends, Draft, kernel_of, lasting, runs};
use crate::error::PlanError;
use minfer_backend::{BackendId, Kernel};
use minfer_graph::{Graph, NodeId, Op};
use std::cmp::Reverse;
use std::collections::HashMap;

pub(crate) fn assign(graph: &Graph, backends: &Backends) -> Result<Draft, PlanError> {
    if backends.is_empty() {
        return Err(PlanError::NoBackends);
    }
    let mut by_priority: Vec<usize> = (0..backends.len()).collect();
    by_priority.sort_by_key(|&index| Reverse(backends[index].priority()));

    let (groups, lasting) = (kv_nodes_by_layer(graph), lasting(graph));
    let mut chosen: Vec<Option<BackendId>> = vec![None; graph.nodes.len()];
    for id in graph.ids() {
        let node = graph.node(id);
        if matches!(node.op, Op::Input) {
            continue;
        }
        let own = [id];
        let together = node.op.kv_layer().and_then(|layer| groups.get(&layer)).map_or(&own[..], Vec::as_slice);
        let runs = |index: usize, id: NodeId| runs(&*backends[index], graph, graph.node(id), lasting[id.index()]);
        let runs_all = |index: &usize| together.iter().all(|&id| runs(*index, id));
        let Some(index) = by_priority.iter().copied().find(runs_all) else {
            return Err(no_backend(node.name.clone(), &kernel_of(graph, node), backends));
        };
        chosen[id.index()] = Some(BackendId(index as u8));
    }
    let readers = graph.readers();
    let first_reader = |id: NodeId| readers[id.index()].iter().find_map(|reader| chosen[reader.index()]);
    let assigned = graph
        .ids()
        .map(|id| chosen[id.index()].or_else(|| first_reader(id)).unwrap_or(BackendId(by_priority[0] as u8)))
        .collect();
    Ok(Draft { graph: graph.clone(), backends: assigned })
}

/// The executed nodes that touch each layer's KV cache.
fn kv_nodes_by_layer(graph: &Graph) -> HashMap<u32, Vec<NodeId>> {
    let mut groups: HashMap<u32, Vec<NodeId>> = HashMap::new();
    for id in graph.ids().filter(|&id| graph.node(id).op.is_executed()) {
        if let Some(layer) = graph.node(id).op.kv_layer() {
            groups.entry(layer).or_default().push(id);
        }
    }
    groups
}

fn no_backend(node: String, kernel: &Kernel, backends: &Backends) -> PlanError {
    let names: Vec<&str> = backends.iter().map(|caps| caps.name()).collect();
    PlanError::NoBackend { node, kernel: kernel.to_string(), backends: names.join(", ") }
}
