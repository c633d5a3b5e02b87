//! Fuse: several nodes become one kernel. Takes a draft; gives a smaller one; knows no backend by name.
//!
//! A pattern ends at its *anchor*, the last of its nodes in build order. Every inner value must have no reader outside
//! the pattern, all nodes must be on one backend, and that backend must run the fused kernel.

mod ffn;
mod qkv;
mod residual;

use crate::draft::{Backends, Draft, Rewriter, runs};
use minfer_graph::{Node, NodeId, Op};
use std::collections::{HashMap, HashSet};

/// A match: the fused node (with old inputs) takes the place of the anchor.
struct Fused {
    node: Node,
    /// Old nodes whose value the fused node gives.
    stands_for: Vec<NodeId>,
    /// Old nodes that vanish.
    inner: Vec<NodeId>,
}

/// What a pattern may look at.
struct Context<'a> {
    draft: &'a Draft,
    readers: &'a [Vec<NodeId>],
    backends: &'a Backends,
}

pub(crate) fn fuse(draft: Draft, backends: &Backends) -> Draft {
    let switches = draft.graph.params.fusion;
    let mut draft = draft;
    if switches.qkv {
        draft = apply(&draft, backends, qkv::find);
    }
    if switches.ffn {
        draft = apply(&draft, backends, ffn::find);
    }
    if switches.residual {
        draft = apply(&draft, backends, residual::find);
    }
    draft
}

/// Rewrites every match of one pattern.
fn apply(draft: &Draft, backends: &Backends, find: fn(&Context, NodeId) -> Option<Fused>) -> Draft {
    let readers = draft.graph.readers();
    let context = Context { draft, readers: &readers, backends };
    let mut matches: HashMap<NodeId, Fused> = HashMap::new();
    let mut gone = HashSet::new();
    for id in draft.graph.ids() {
        let Some(fused) = find(&context, id) else { continue };
        let covered: Vec<NodeId> = fused.inner.iter().chain(&fused.stands_for).copied().collect();
        if covered.iter().any(|node| gone.contains(node)) || !context.runs(&fused, id) {
            continue;
        }
        gone.extend(covered);
        matches.insert(id, fused);
    }
    let mut rewriter = Rewriter::new(draft);
    for id in draft.graph.ids() {
        if let Some(fused) = matches.remove(&id) {
            let mut node = fused.node;
            for input in &mut node.inputs {
                *input = rewriter.mapped(*input);
            }
            rewriter.replace(&fused.stands_for, node, draft.backend(id));
        } else if !gone.contains(&id) {
            rewriter.keep(id);
        }
    }
    rewriter.finish()
}

impl Context<'_> {
    fn node(&self, id: NodeId) -> &Node {
        self.draft.graph.node(id)
    }

    /// The node, if `reader` is the only one that takes its value.
    fn only_for(&self, id: NodeId, reader: NodeId) -> Option<&Node> {
        let is_output = self.draft.graph.outputs.contains(&id);
        (!is_output && self.readers[id.index()] == [reader]).then(|| self.node(id))
    }

    /// One backend for all, which runs the fused kernel and wants one type for all matrices.
    fn runs(&self, fused: &Fused, anchor: NodeId) -> bool {
        let backend = self.draft.backend(anchor);
        let together = fused.inner.iter().chain(&fused.stands_for).all(|&id| self.draft.backend(id) == backend);
        // Of fused products, only the sum onto the residual stream is lasting.
        let lasting = matches!(fused.node.op, Op::LinearAdd);
        together && runs(&*self.backends[backend.index()], &self.draft.graph, &fused.node, lasting)
    }
}

/// `x` and the weights of a product that has no bias.
fn plain_linear(node: &Node) -> Option<(NodeId, minfer_graph::WeightId)> {
    match (&node.op, node.weights.as_slice()) {
        (Op::Linear, [weight]) => Some((node.inputs[0], *weight)),
        _ => None,
    }
}
