//! The projections of q, k and v with bias, head norms, rope and KV store become one step: k and v go from the product
//! straight to their cells. The pattern is anchored at the store; q comes from the attention that reads the cells.

use super::{Context, Fused};
use minfer_graph::{Node, NodeId, Op, Qkv, RopeStyle, WeightId};

/// `linear → [head norm] → rope`, seen from its end.
struct Projection {
    x: NodeId,
    matrix: WeightId,
    bias: Option<WeightId>,
    head_norm: Option<(WeightId, f32)>,
    rope: Option<Rope>,
    nodes: Vec<NodeId>,
}

#[derive(PartialEq, Clone, Copy)]
struct Rope {
    table: NodeId,
    style: RopeStyle,
    head_dim: u32,
    n_dims: u32,
}

pub(super) fn find(context: &Context, anchor: NodeId) -> Option<Fused> {
    let store = context.node(anchor);
    let Op::KvStore { layer, .. } = store.op else { return None };
    let [k_end, v_end, cells] = store.inputs[..] else { return None };

    let views = &context.readers[anchor.index()];
    let attention_id = *context.readers[views.first()?.index()].first()?;
    let attention = context.node(attention_id);
    let Op::Attention(shape) = attention.op else { return None };
    let q_end = attention.inputs[0];
    if q_end > anchor {
        return None;
    }

    let q = projection(context, q_end, attention_id, shape.head_dim)?;
    let k = projection(context, k_end, anchor, shape.head_dim)?;
    let v = projection(context, v_end, anchor, shape.head_dim)?;
    let rope = q.rope?;
    let same_input = q.x == k.x && k.x == v.x;
    let same_rope = k.rope == Some(rope) && v.rope.is_none() && rope.head_dim == shape.head_dim;
    let bias = q.bias.is_some();
    let same_bias = k.bias.is_some() == bias && v.bias.is_some() == bias;
    let head_norm_eps = q.head_norm.map(|(_, eps)| eps);
    let same_norm = k.head_norm.map(|(_, eps)| eps) == head_norm_eps && v.head_norm.is_none();
    if !(same_input && same_rope && same_bias && same_norm) {
        return None;
    }

    let mut weights = vec![q.matrix, k.matrix, v.matrix];
    weights.extend([q.bias, k.bias, v.bias].into_iter().flatten());
    weights.extend([q.head_norm, k.head_norm].into_iter().flatten().map(|(weight, _)| weight));
    let qkv = Qkv {
        layer,
        n_head: shape.n_head,
        n_kv_head: shape.n_kv_head,
        head_dim: shape.head_dim,
        bias,
        head_norm_eps,
        rope: rope.style,
        rope_dims: rope.n_dims,
    };
    let node = Node {
        op: Op::QkvStore(qkv),
        name: store.name.replace("kv_store", "qkv_store"),
        layer: store.layer,
        inputs: vec![q.x, rope.table, cells],
        weights,
        shape: context.node(q_end).shape,
        ty: context.node(q_end).ty,
    };
    let stands_for = vec![anchor, q_end];
    let inner = q.nodes.into_iter().chain(k.nodes).chain(v.nodes).filter(|id| !stands_for.contains(id)).collect();
    Some(Fused { node, inner, stands_for })
}

/// Walks up from the end of a projection whose only reader is `reader`.
fn projection(context: &Context, end: NodeId, reader: NodeId, head_dim: u32) -> Option<Projection> {
    let mut nodes = vec![end];
    let mut node = context.only_for(end, reader)?;
    let mut rope = None;
    if let Op::Rope { style, head_dim, n_dims } = node.op {
        rope = Some(Rope { table: node.inputs[1], style, head_dim, n_dims });
        node = step_up(context, node, &mut nodes)?;
    }
    let mut head_norm = None;
    if let Op::RmsNorm { eps, group } = node.op {
        if group != head_dim {
            return None;
        }
        head_norm = Some((node.weights[0], eps));
        node = step_up(context, node, &mut nodes)?;
    }
    if !matches!(node.op, Op::Linear) {
        return None;
    }
    Some(Projection {
        x: node.inputs[0],
        matrix: node.weights[0],
        bias: node.weights.get(1).copied(),
        head_norm,
        rope,
        nodes,
    })
}

/// The producer of a node's first input, if that node is its only reader.
fn step_up<'a>(context: &'a Context, node: &Node, nodes: &mut Vec<NodeId>) -> Option<&'a Node> {
    let producer = node.inputs[0];
    let reader = *nodes.last()?;
    nodes.push(producer);
    context.only_for(producer, reader)
}
