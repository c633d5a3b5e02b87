//! Transfer: a value read on another backend gets a copy there. Takes a draft; gives one in which every node's inputs are on
//! its own backend, but for the copies themselves.
//!
//! A copy is a node like any other: it has a live range, a place and a step, and runs anew each time. There is one per
//! value and destination.

use crate::draft::{Draft, Rewriter};
use minfer_backend::BackendId;
use minfer_graph::{Node, NodeId, Op};
use std::collections::HashMap;

pub(crate) fn transfer(draft: &Draft) -> Draft {
    let mut rewriter = Rewriter::new(draft);
    let mut copies: HashMap<(NodeId, BackendId), NodeId> = HashMap::new();
    for id in draft.graph.ids() {
        let mut node = rewriter.renamed(id);
        let backend = draft.backend(id);
        for (index, &old_input) in draft.graph.node(id).inputs.iter().enumerate() {
            if draft.backend(old_input) == backend || !node.op.reads_bytes(index) {
                continue;
            }
            node.inputs[index] = *copies.entry((old_input, backend)).or_insert_with(|| {
                let source = rewriter.mapped(old_input);
                let copy = copy_node(rewriter.emitted(source), source, backend);
                rewriter.insert(copy, backend)
            });
        }
        rewriter.replace(&[id], node, backend);
    }
    rewriter.finish()
}

fn copy_node(source: &Node, id: NodeId, to: BackendId) -> Node {
    Node {
        op: Op::Copy,
        name: format!("{}.copy.{}", source.name, to.0),
        layer: source.layer,
        inputs: vec![id],
        weights: vec![],
        shape: source.shape,
        ty: source.ty,
    }
}
