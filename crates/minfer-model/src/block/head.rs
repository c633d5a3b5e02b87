//! The output head. Takes the rows of the stream that are asked for; gives their logits.

use super::Build;
use minfer_graph::{GraphError, NodeId, Op};

impl Build<'_> {
    /// `W norm x`, where `W` may be the embedding.
    pub(super) fn output_head(&mut self, x: NodeId) -> Result<NodeId, GraphError> {
        let weights = &self.spec.weights;
        let h = self.norm("output_norm", x, &weights.output_norm)?; // [n_out, n_embd]
        let matrix = weights.output.as_ref().unwrap_or(&weights.embedding);
        self.push(Op::Linear, "logits", &[h], &[matrix]) // [n_out, n_vocab]
    }
}
