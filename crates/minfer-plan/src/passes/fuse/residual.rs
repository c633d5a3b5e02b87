//! `residual + x Wᵀ` becomes one product that adds onto the residual, in place where the residual ends here.

use super::{Context, Fused, plain_linear};
use minfer_graph::{Node, NodeId, Op};

pub(super) fn find(context: &Context, anchor: NodeId) -> Option<Fused> {
    let sum = context.node(anchor);
    if !matches!(sum.op, Op::Add) {
        return None;
    }
    let [a, b] = sum.inputs[..] else { return None };
    branch(context, anchor, a, b).or_else(|| branch(context, anchor, b, a))
}

fn branch(context: &Context, anchor: NodeId, linear: NodeId, residual: NodeId) -> Option<Fused> {
    let (x, weight) = plain_linear(context.only_for(linear, anchor)?)?;
    let node =
        Node { op: Op::LinearAdd, inputs: vec![x, residual], weights: vec![weight], ..context.node(anchor).clone() };
    Some(Fused { node, stands_for: vec![anchor], inner: vec![linear] })
}
