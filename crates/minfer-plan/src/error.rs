//! Why there is no plan. Takes nothing; gives [`PlanError`].

use crate::passes::PlanFault;
use minfer_graph::GraphError;
use minfer_memplan::PlaceError;

/// Why a graph could not be planned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The graph itself is wrong.
    #[error("the graph cannot be planned: {0}")]
    Graph(#[from] GraphError),
    /// Nobody runs an operation.
    #[error("no backend runs node {node}: {kernel}; backends: {backends}")]
    NoBackend {
        /// The node.
        node: String,
        /// What it needs.
        kernel: String,
        /// Who was asked.
        backends: String,
    },
    /// A plan without backends.
    #[error("a plan needs at least one backend")]
    NoBackends,
    /// Offsets could not be found.
    #[error("placing the values of backend {backend}: {error}")]
    Place {
        /// Whose arena.
        backend: String,
        /// Why.
        error: PlaceError,
    },
    /// One arena is larger than the device allows.
    #[error("the arena of backend {backend} needs {bytes} bytes, one region of it holds {limit}; use a smaller batch")]
    ArenaTooLarge {
        /// Whose arena.
        backend: String,
        /// Bytes needed.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The checker found a fault in the plan: a bug in minfer, never a user's mistake.
    #[error("the plan is wrong (a bug in minfer): {0}")]
    Fault(#[from] PlanFault),
}
