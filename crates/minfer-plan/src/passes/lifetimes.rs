//! Lifetimes: when each value must keep its bytes, and which values take over another's. Takes a draft; gives steps, live
//! ranges and aliases, all counted in execution order; must not know offsets.
//!
//! The order of execution is the build order. A topological order of another kind would free values that a later step
//! still reads.

use crate::draft::{Backends, Draft, kernel_of};
use crate::plan::{Alias, AliasReason, PlannedStep};
use minfer_graph::{Graph, NodeId, Op};
use std::ops::Range;

/// What this pass finds out; indices are node ids.
pub(crate) struct Lifetimes {
    pub steps: Vec<PlannedStep>,
    /// Bytes of scratch of each step.
    pub workspace_bytes: Vec<u64>,
    pub live: Vec<Range<u32>>,
    pub alias: Vec<Option<Alias>>,
}

pub(crate) fn lifetimes(draft: &Draft, backends: &Backends) -> Lifetimes {
    let graph = &draft.graph;
    let executed = executed_nodes(graph);
    let mut step_of: Vec<Option<u32>> = vec![None; graph.nodes.len()];
    for (step, id) in executed.iter().enumerate() {
        step_of[id.index()] = Some(step as u32);
    }
    let byte_readers = byte_readers(graph, &executed);
    let live = live_ranges(graph, &step_of, &byte_readers, executed.len() as u32);
    let alias =
        graph.ids().map(|id| step_of[id.index()].and_then(|step| alias_of(draft, &byte_readers, id, step))).collect();
    let (mut steps, mut workspace_bytes) = (Vec::new(), Vec::new());
    for id in executed {
        let node = graph.node(id);
        let kernel = kernel_of(graph, node);
        let caps = &backends[draft.backend(id).index()];
        workspace_bytes.push(caps.workspace_bytes(&kernel, node.shape, &graph.params));
        steps.push(PlannedStep { node: id, kernel, workspace: None });
    }
    Lifetimes { steps, workspace_bytes, live, alias }
}

/// Nodes that run, in build order: not the dead ones, and none that the host fills or that only name bytes.
pub(super) fn executed_nodes(graph: &Graph) -> Vec<NodeId> {
    let alive = graph.live_nodes();
    graph.ids().filter(|id| alive[id.index()] && graph.node(*id).op.is_executed()).collect()
}

/// For each node, the executed nodes that read its bytes, each once, in build order.
pub(super) fn byte_readers(graph: &Graph, executed: &[NodeId]) -> Vec<Vec<NodeId>> {
    let mut readers: Vec<Vec<NodeId>> = vec![Vec::new(); graph.nodes.len()];
    for &id in executed {
        let node = graph.node(id);
        for (_, input) in node.inputs.iter().enumerate().filter(|(index, _)| node.op.reads_bytes(*index)) {
            let list = &mut readers[input.index()];
            if list.last() != Some(&id) {
                list.push(id);
            }
        }
    }
    readers
}

/// First write to last read, half open. Graph inputs are written before the first step whatever reads them, so they live
/// from the start to the end; outputs are read after the last step. A value in a KV region has no range of its own.
fn live_ranges(graph: &Graph, step_of: &[Option<u32>], byte_readers: &[Vec<NodeId>], n_steps: u32) -> Vec<Range<u32>> {
    let range = |id: NodeId| {
        let node = graph.node(id);
        if node.op.lives_in_kv() {
            return 0..0;
        }
        if matches!(node.op, Op::Input) {
            let used = !byte_readers[id.index()].is_empty() || graph.outputs.contains(&id);
            return 0..if used { n_steps } else { 0 };
        }
        let Some(written) = step_of[id.index()] else { return 0..0 };
        if graph.outputs.contains(&id) {
            return written..n_steps;
        }
        let last_read = byte_readers[id.index()].iter().filter_map(|reader| step_of[reader.index()]).max();
        written..last_read.map_or(written, |step| step.max(written)) + 1
    };
    graph.ids().map(range).collect()
}

/// The input whose bytes this node takes over: the first that it may, once nobody reads it later.
fn alias_of(draft: &Draft, byte_readers: &[Vec<NodeId>], id: NodeId, step: u32) -> Option<Alias> {
    let inputs = &draft.graph.node(id).inputs;
    let readers = |index: usize| &byte_readers[inputs[index].index()];
    let input = in_place_inputs(draft, byte_readers, id).find(|&index| readers(index).last() == Some(&id))?;
    let reason = if readers(input).len() == 1 { AliasReason::SoleReader } else { AliasReason::LastReader };
    Some(Alias { of: inputs[input], input, step, reason })
}

/// The inputs whose bytes this node may take over if it is the last to read them, in order of preference: the operation
/// allows it, nobody else reads that value (others may, before a sum), it is of the same size and backend, and it is
/// neither a graph input nor an output.
pub(super) fn in_place_inputs<'a>(
    draft: &'a Draft,
    byte_readers: &'a [Vec<NodeId>],
    id: NodeId,
) -> impl Iterator<Item = usize> + 'a {
    let graph = &draft.graph;
    let node = graph.node(id);
    let allowed = node.op.in_place_inputs();
    allowed.iter().copied().filter(move |&index| {
        let of = node.inputs[index];
        let source = graph.node(of);
        let only_there = node.inputs.iter().enumerate().all(|(n, input)| *input != of || allowed.contains(&n));
        (node.op.accumulates() || byte_readers[of.index()].len() == 1)
            && only_there
            && (source.shape, source.ty) == (node.shape, node.ty)
            && draft.backend(of) == draft.backend(id)
            && source.op.is_executed()
            && !source.op.lives_in_kv()
            && !graph.outputs.contains(&of)
    })
}
