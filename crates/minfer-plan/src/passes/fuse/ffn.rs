//! `act(x Wgᵀ) · (x Wuᵀ)` becomes one product with two matrices that writes only the result.

use super::{Context, Fused, plain_linear};
use minfer_graph::{Node, NodeId, Op};

pub(super) fn find(context: &Context, anchor: NodeId) -> Option<Fused> {
    let product = context.node(anchor);
    if !matches!(product.op, Op::Mul) {
        return None;
    }
    let [a, b] = product.inputs[..] else { return None };
    branch(context, anchor, a, b).or_else(|| branch(context, anchor, b, a))
}

fn branch(context: &Context, anchor: NodeId, gated: NodeId, up: NodeId) -> Option<Fused> {
    let Op::Activate(activation) = context.only_for(gated, anchor)?.op else { return None };
    let gate = context.node(gated).inputs[0];
    let (x, gate_weight) = plain_linear(context.only_for(gate, gated)?)?;
    let (same_x, up_weight) = plain_linear(context.only_for(up, anchor)?)?;
    if x != same_x {
        return None;
    }
    let product = context.node(anchor);
    let node = Node {
        op: Op::GatedLinear { activation },
        inputs: vec![x],
        weights: vec![gate_weight, up_weight],
        ..product.clone()
    };
    Some(Fused { node, stands_for: vec![anchor], inner: vec![gated, gate, up] })
}
