//! What the checker may find. Takes nothing; gives [`PlanFault`]; must not know how it is found.

use std::ops::Range;

/// What is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanFault {
    /// The plan is another graph's.
    #[error("the plan was made from graph {plan}, not from {graph}")]
    WrongGraph {
        /// Fingerprint in the plan.
        plan: String,
        /// Fingerprint of the graph.
        graph: String,
    },
    /// Steps that are not exactly the nodes to run, in build order.
    #[error("step {step} runs {got}, execution order demands {expected}")]
    StepOrder {
        /// Step.
        step: usize,
        /// Node demanded.
        expected: String,
        /// Node found.
        got: String,
    },
    /// A live range that is too short or too long.
    #[error("{node} is planned live for {got:?}, execution needs {expected:?}")]
    Live {
        /// Node.
        node: String,
        /// By the checker's count.
        expected: Range<u32>,
        /// In the plan.
        got: Range<u32>,
    },
    /// A value without bytes, or in the wrong kind of place.
    #[error("{node} lives at {got}, its operation demands {expected}")]
    Place {
        /// Node.
        node: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        got: String,
    },
    /// Bytes outside the arena, or not aligned.
    #[error("{node}: bytes {offset}+{bytes} do not fit an arena of {arena_bytes} bytes aligned to {alignment}")]
    Bounds {
        /// Node or workspace.
        node: String,
        /// Offset.
        offset: u64,
        /// Length.
        bytes: u64,
        /// Size of the arena.
        arena_bytes: u64,
        /// Alignment.
        alignment: u64,
    },
    /// Two values that live at once share bytes without a valid alias.
    #[error("{a} and {b} share bytes while both live")]
    Overlap {
        /// One.
        a: String,
        /// The other.
        b: String,
    },
    /// An alias that the graph does not allow.
    #[error("{node} may not be written in place of {of}: {reason}")]
    Alias {
        /// The value written.
        node: String,
        /// The value overwritten.
        of: String,
        /// Why not.
        reason: &'static str,
    },
    /// Cells of a layer's KV regions are written and read in another order than the source graph's.
    #[error("layer {layer}: the plan writes and reads KV cells in the order {got}, the graph in the order {expected}")]
    KvOrder {
        /// Layer.
        layer: u32,
        /// In the source graph, such as `write, read`.
        expected: String,
        /// In the plan.
        got: String,
    },
    /// A node reads a value of another backend without a copy.
    #[error("{node} reads {input}, which is on another backend")]
    CrossBackend {
        /// The reader.
        node: String,
        /// The value.
        input: String,
    },
    /// The stated lower bound is not the sum of live bytes at its step.
    #[error("arena {arena}: stated lower bound {stated} at step {step}, counted {counted}")]
    LowerBound {
        /// Arena.
        arena: String,
        /// In the certificate.
        stated: u64,
        /// Its step.
        step: u64,
        /// By the checker.
        counted: u64,
    },
}
