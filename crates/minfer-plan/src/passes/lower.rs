//! Lower: products get their operand in the type their weights want. Takes a draft; gives one in which every value that
//! several products read is quantised once; knows formats only through [`Capabilities`](minfer_backend::Capabilities).
//!
//! Where all readers want the quantised form and the producer can write it, the floats are never stored at all.

use crate::draft::{Backends, Draft, Rewriter, activation_type, kernel_of};
use minfer_backend::{BackendId, Kernel};
use minfer_graph::{Node, NodeId, Op, ValueType};
use std::collections::HashMap;

pub(crate) fn lower(draft: &Draft, backends: &Backends) -> Draft {
    let graph = &draft.graph;
    let emits: Vec<bool> = emitters(draft, backends);
    let mut rewriter = Rewriter::new(draft);
    let mut quantised: HashMap<(NodeId, BackendId), NodeId> = HashMap::new();
    for id in graph.ids() {
        let mut node = rewriter.renamed(id);
        let backend = draft.backend(id);
        if emits[id.index()] {
            node.ty = ValueType::Q8;
        }
        let x = graph.node(id).inputs.first().copied();
        if let Some(x) = x.filter(|x| wants_q8(draft, backends, id) && !emits[x.index()]) {
            node.inputs[0] = *quantised.entry((x, backend)).or_insert_with(|| {
                let source = rewriter.mapped(x);
                let quantize = quantize_node(rewriter.emitted(source), source, backend);
                rewriter.insert(quantize, backend)
            });
        }
        rewriter.replace(&[id], node, backend);
    }
    rewriter.finish()
}

/// Whether a node is a product that wants its first input quantised.
fn wants_q8(draft: &Draft, backends: &Backends, id: NodeId) -> bool {
    let node = draft.graph.node(id);
    let caps = &*backends[draft.backend(id).index()];
    node.op.is_product() && activation_type(caps, &draft.graph, &node.op, node) == Some(ValueType::Q8)
}

/// The nodes that write their value quantised, because all their readers want it so and their backend can.
fn emitters(draft: &Draft, backends: &Backends) -> Vec<bool> {
    let graph = &draft.graph;
    let readers = graph.readers();
    let can_emit = |id: NodeId| {
        let node = graph.node(id);
        let readers = &readers[id.index()];
        let backend = draft.backend(id);
        let all_want = readers.iter().all(|&reader| {
            let taken: Vec<usize> =
                graph.node(reader).inputs.iter().enumerate().filter(|(_, i)| **i == id).map(|(n, _)| n).collect();
            let aside = matches!(graph.node(reader).op, Op::KvView { .. });
            aside || (taken == [0] && draft.backend(reader) == backend && wants_q8(draft, backends, reader))
        });
        let mut kernel = Kernel { output: ValueType::Q8, ..kernel_of(graph, node) };
        if wants_q8(draft, backends, id) {
            kernel.inputs[0] = ValueType::Q8;
        }
        node.ty == ValueType::F32
            && node.op.is_executed()
            && !readers.is_empty()
            && all_want
            && !graph.outputs.contains(&id)
            && backends[backend.index()].supports(&kernel)
    };
    graph.ids().map(|id| graph.params.fusion.quantize && can_emit(id)).collect()
}

fn quantize_node(source: &Node, id: NodeId, backend: BackendId) -> Node {
    Node {
        op: Op::Quantize,
        name: format!("{}.q8.{}", source.name, backend.0),
        layer: source.layer,
        inputs: vec![id],
        weights: vec![],
        shape: source.shape,
        ty: ValueType::Q8,
    }
}
