//! The feed-forward half of a layer. Takes the residual stream; gives the stream with the block's result added.

use super::{Build, Layer};
use minfer_graph::{GraphError, NodeId, Op};

impl Build<'_> {
    /// `x + [norm] Wdown (act(Wgate h) · Wup h)` with `h = norm x` (Shazeer 2020).
    pub(super) fn feed_forward_block(&mut self, layer: Layer<'_>, x: NodeId) -> Result<NodeId, GraphError> {
        let weights = layer.weights;
        let h = self.norm("ffn_norm", x, &weights.ffn_norm)?; // [rows, n_embd]
        let gate = self.push(Op::Linear, "gate", &[h], &[&weights.gate])?; // [rows, n_ff]
        let up = self.push(Op::Linear, "up", &[h], &[&weights.up])?; // [rows, n_ff]
        let act = self.push(Op::Activate(self.spec.options.activation), "act", &[gate], &[])?;
        let gated = self.push(Op::Mul, "gated", &[act, up], &[])?;
        let mut out = self.push(Op::Linear, "down", &[gated], &[&weights.down])?; // [rows, n_embd]
        if let Some([_, post_ffn]) = &weights.post_norms {
            out = self.norm("post_ffn_norm", out, post_ffn)?;
        }
        self.push(Op::Add, "ffn_residual", &[out, x], &[])
    }
}
