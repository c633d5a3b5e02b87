//! The attention half of a layer. Takes the residual stream; gives the stream with attention added, in the last layer
//! only its rows that are asked for.

use super::{Build, Layer};
use crate::spec::Rope;
use minfer_graph::{Attention, GraphError, KvSide, NodeId, Op, Weight};

impl Build<'_> {
    /// `x + [norm] Wo attention(norm x)`.
    pub(super) fn attention_block(&mut self, layer: Layer<'_>, x: NodeId) -> Result<NodeId, GraphError> {
        let weights = layer.weights;
        let h = self.norm("attn_norm", x, &weights.attn_norm)?; // [n_tokens, n_embd]
        let mut heads = self.attention(layer, h)?; // [n_tokens, n_head * head_dim]
        let mut residual = x;
        if layer.index + 1 == self.spec.n_layer {
            let rows = self.inputs.output_rows;
            heads = self.push(Op::SelectRows, "attn_rows", &[heads, rows], &[])?; // [n_out, n_head * head_dim]
            residual = self.push(Op::SelectRows, "residual_rows", &[residual, rows], &[])?; // [n_out, n_embd]
        }
        let mut out = self.push(Op::Linear, "attn_out", &[heads], &[&weights.attn_out])?;
        if let Some([post_attn, _]) = &weights.post_norms {
            out = self.norm("post_attn_norm", out, post_attn)?;
        }
        self.push(Op::Add, "attn_residual", &[out, residual], &[])
    }

    /// Projections, head norms, rope, KV store, attention over the cache.
    fn attention(&mut self, layer: Layer<'_>, h: NodeId) -> Result<NodeId, GraphError> {
        let Layer { index: layer, weights, tables, kv } = layer;
        let spec = self.spec;
        let window = spec.window_of(layer);
        let [bias_q, bias_k, bias_v] = weights.qkv_bias.as_ref().map_or([None; 3], |b| b.each_ref().map(Some));
        let mut q = self.projection("q", h, &weights.q, bias_q)?; // [n_tokens, n_head * head_dim]
        let mut k = self.projection("k", h, &weights.k, bias_k)?; // [n_tokens, n_kv_head * head_dim]
        let v = self.projection("v", h, &weights.v, bias_v)?; // [n_tokens, n_kv_head * head_dim]
        if let Some([norm_q, norm_k]) = &weights.head_norms {
            q = self.norm("q_norm", q, norm_q)?;
            k = self.norm("k_norm", k, norm_k)?;
        }
        let rope = window.and_then(|window| window.rope).unwrap_or(spec.rope);
        let table = if window.is_some() { tables.local } else { tables.global };
        q = self.rope("q_rope", q, table, rope)?;
        k = self.rope("k_rope", k, table, rope)?;

        let store = self.push(Op::KvStore { layer, head_dim: spec.head_dim }, "kv_store", &[k, v, kv.cells], &[])?;
        let kv_k = self.push(Op::KvView { layer, side: KvSide::K }, "kv_k", &[store], &[])?;
        let kv_v = self.push(Op::KvView { layer, side: KvSide::V }, "kv_v", &[store], &[])?;
        let attention = Attention {
            layer,
            n_head: spec.n_head,
            n_kv_head: spec.n_kv_head_of(layer),
            head_dim: spec.head_dim,
            scale: spec.options.attention_scale,
            window: window.map(|window| window.n_tokens),
        };
        let inputs = [q, kv_k, kv_v, self.inputs.positions, self.inputs.sequence_rows, kv.block_table];
        self.push(Op::Attention(attention), "attn", &inputs, &[])
    }

    fn projection(
        &mut self,
        name: &str,
        x: NodeId,
        matrix: &Weight,
        bias: Option<&Weight>,
    ) -> Result<NodeId, GraphError> {
        let weights: Vec<&Weight> = [matrix].into_iter().chain(bias).collect();
        self.push(Op::Linear, name, &[x], &weights)
    }

    fn rope(&mut self, name: &str, x: NodeId, table: NodeId, rope: Rope) -> Result<NodeId, GraphError> {
        let op = Op::Rope { style: rope.style, head_dim: self.spec.head_dim, n_dims: rope.n_dims };
        self.push(op, name, &[x, table], &[])
    }
}
