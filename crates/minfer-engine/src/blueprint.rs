//! What an engine will own, before it owns anything. Takes a model's specification, settings and capabilities; gives the
//! largest graph, its plan and the ledger. A pure function: the engine allocates exactly what stands here.

use crate::config::EngineConfig;
use crate::error::EngineError;
use crate::ledger::ledger;
use crate::load::Model;
use minfer_backend::Capabilities;
use minfer_graph::{Graph, GraphKind, GraphParams};
use minfer_model::build_graph;
use minfer_plan::{Ledger, Plan, PlanOptions, plan};
use std::sync::Arc;

/// What a planner may know of an engine's backends, in their order.
pub type CapabilityList = [Arc<dyn Capabilities>];

/// Figures of all arenas, for the largest batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryFigures {
    /// Every value its own bytes.
    pub naive_bytes: u64,
    /// Recycled by size class.
    pub pool_bytes: u64,
    /// Distinct buffers of those pools.
    pub pool_buffers: usize,
    /// Planned offline.
    pub planned_bytes: u64,
    /// No placement can be smaller.
    pub lower_bound_bytes: u64,
    /// What the engine's strategy takes.
    pub used_bytes: u64,
    /// Whether what it takes is proven to be the least there is.
    pub optimal: bool,
}

/// What an engine will own.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// The graph of the largest batch.
    pub graph: Graph,
    /// Its plan.
    pub plan: Plan,
    /// Every byte, by owner.
    pub ledger: Ledger,
}

impl Blueprint {
    /// Plans for the largest batch that these settings allow. Says what is needed, whatever the budget.
    pub fn new(model: &Model, config: &EngineConfig, backends: &CapabilityList) -> Result<Self, EngineError> {
        let params = graph_params(model, config, GraphKind::Prefill)?;
        let graph = build_graph(&model.spec, &params)?;
        let plan = plan(&graph, backends, PlanOptions { strategy: config.strategy })?;
        let ledger = ledger(model, config, &plan, backends);
        Ok(Self { graph, plan, ledger })
    }

    /// Sums over all arenas.
    pub fn figures(&self) -> MemoryFigures {
        let mut sum = MemoryFigures { optimal: true, ..MemoryFigures::default() };
        for arena in &self.plan.arenas {
            sum.naive_bytes += arena.figures.naive_bytes;
            sum.pool_bytes += arena.figures.pool_bytes;
            sum.pool_buffers += arena.figures.pool_buffers;
            sum.planned_bytes += arena.figures.planned_bytes;
            sum.lower_bound_bytes += arena.figures.lower_bound_bytes;
            sum.used_bytes += arena.bytes;
            sum.optimal &= arena.certificate.verdict.is_optimal();
        }
        sum
    }
}

/// The parameters of the one prefill and the one decode graph of an engine.
pub(crate) fn graph_params(model: &Model, config: &EngineConfig, kind: GraphKind) -> Result<GraphParams, EngineError> {
    let (cache_type, head_dim) = (config.cache_type, model.spec.head_dim);
    if !cache_type.fits(head_dim) {
        let got = format!("{} with heads of {head_dim} elements", cache_type.value_type());
        let expected = "f16 or f32; q8_0 needs heads of a multiple of 32 elements".to_string();
        return Err(EngineError::Setting { setting: "cache_type", expected, got });
    }
    config.graph_params(kind, model.weights_version)
}
