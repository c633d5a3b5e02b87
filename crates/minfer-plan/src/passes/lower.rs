//! Lower: products get their operand in the type their weights want. Takes a draft; gives one in which every value that
//! several products read is quantised once; knows formats only through [`Capabilities`](minfer_backend::Capabilities).
//!
//! Where all readers want the quantised form and the producer can write it, the floats are never stored at all.

use crate::draft::{Backends, Draft, Rewriter, activation_type, kernel_of, lasting};
use minfer_backend::{BackendId, Kernel};
use minfer_graph::{Node, NodeId, Op, ValueType};
use std::collections::HashMap;

pub(crate) fn lower(draft: &Draft, backends: &Backends) -> Draft {
    let graph = &draft.graph;
    let wanted = wanted(draft, backends);
    let emitted = emitted(draft, backends, &wanted);
    let mut rewriter = Rewriter::new(draft);
    let mut quantised: HashMap<(NodeId, BackendId, ValueType), NodeId> = HashMap::new();
    for id in graph.ids() {
        let mut node = rewriter.renamed(id);
        let backend = draft.backend(id);
        if let Some(ty) = emitted[id.index()] {
            node.ty = ty;
        }
        if let Some(ty) = wanted[id.index()] {
            let x = graph.node(id).inputs[0];
            if emitted[x.index()].is_none() {
                node.inputs[0] = *quantised.entry((x, backend, ty)).or_insert_with(|| {
                    let source = rewriter.mapped(x);
                    let quantize = quantize_node(rewriter.emitted(source), source, backend, ty);
                    rewriter.insert(quantize, backend)
                });
            }
        }
        rewriter.replace(&[id], node, backend);
    }
    rewriter.finish()
}

/// Of each node: the quantised type in which it wants its first input, if it is a product that does.
fn wanted(draft: &Draft, backends: &Backends) -> Vec<Option<ValueType>> {
    let graph = &draft.graph;
    let lasting = lasting(graph);
    let wanted = |id: NodeId| {
        let (node, caps) = (graph.node(id), &*backends[draft.backend(id).index()]);
        let ty = activation_type(caps, graph, node, lasting[id.index()]).filter(|ty| ty.is_quantised());
        ty.filter(|_| node.op.is_product())
    };
    graph.ids().map(wanted).collect()
}

/// Of each node: the quantised type in which it writes its value, because all its readers want that and its backend can.
fn emitted(draft: &Draft, backends: &Backends, wanted: &[Option<ValueType>]) -> Vec<Option<ValueType>> {
    let graph = &draft.graph;
    let readers = graph.readers();
    let emitted = |id: NodeId| {
        let node = graph.node(id);
        let readers = &readers[id.index()];
        let backend = draft.backend(id);
        let ty = readers.iter().find_map(|reader| wanted[reader.index()])?;
        let all_want = readers.iter().all(|&reader| {
            let taken: Vec<usize> =
                graph.node(reader).inputs.iter().enumerate().filter(|(_, i)| **i == id).map(|(n, _)| n).collect();
            let aside = matches!(graph.node(reader).op, Op::KvView { .. });
            aside || (taken == [0] && draft.backend(reader) == backend && wanted[reader.index()] == Some(ty))
        });
        let mut kernel = Kernel { output: ty, ..kernel_of(graph, node) };
        if let Some(ty) = wanted[id.index()] {
            kernel.inputs[0] = ty;
        }
        let emits = node.ty == ValueType::F32
            && node.op.is_executed()
            && all_want
            && !graph.outputs.contains(&id)
            && backends[backend.index()].supports(&kernel);
        emits.then_some(ty)
    };
    graph.ids().map(|id| emitted(id).filter(|_| graph.params.fusion.quantize)).collect()
}

fn quantize_node(source: &Node, id: NodeId, backend: BackendId, ty: ValueType) -> Node {
    Node {
        op: Op::Quantize,
        name: format!("{}.{ty}.{}", source.name, backend.0),
        layer: source.layer,
        inputs: vec![id],
        weights: vec![],
        shape: source.shape,
        ty,
    }
}
