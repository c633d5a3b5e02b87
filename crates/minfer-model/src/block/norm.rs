//! Norms. Takes a value and a weight; gives the value normalised over the row or over each head.

use super::Build;
use minfer_graph::{GraphError, NodeId, Op, Weight};

impl Build<'_> {
    /// Root mean square norm over as many elements as the weight has.
    pub(super) fn norm(&mut self, name: &str, x: NodeId, weight: &Weight) -> Result<NodeId, GraphError> {
        self.push(Op::RmsNorm { eps: self.spec.norm_eps, group: weight.cols }, name, &[x], &[weight])
    }
}
