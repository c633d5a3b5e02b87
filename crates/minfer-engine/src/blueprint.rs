//! What an engine will own, before it owns anything. Takes a model's specification, settings and capabilities; gives the
//! largest graph, its plan and the ledger. A pure function: the engine allocates exactly what stands here.

use crate::config::EngineConfig;
use crate::error::EngineError;
use crate::load::Model;
use minfer_backend::Capabilities;
use minfer_graph::{Graph, GraphKind, GraphParams};
use minfer_model::build_graph;
use minfer_plan::{Ledger, Owner, Plan, PlanOptions, plan};
use std::sync::Arc;

/// Bytes of all arenas under each strategy, for the largest batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryFigures {
    /// Every value its own bytes.
    pub naive_bytes: u64,
    /// Recycled by size class.
    pub pool_bytes: u64,
    /// Planned offline.
    pub planned_bytes: u64,
    /// No placement can be smaller.
    pub lower_bound_bytes: u64,
    /// What the engine's strategy takes.
    pub used_bytes: u64,
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
    /// Plans for the largest batch that these settings allow.
    pub fn new(model: &Model, config: &EngineConfig, backends: &[Arc<dyn Capabilities>]) -> Result<Self, EngineError> {
        let params = graph_params(model, config, GraphKind::Prefill)?;
        let graph = build_graph(&model.spec, &params)?;
        let plan = plan(&graph, backends, PlanOptions { strategy: config.strategy })?;
        let ledger = ledger(model, &plan, backends);
        Ok(Self { graph, plan, ledger })
    }

    /// Sums over all arenas.
    pub fn figures(&self) -> MemoryFigures {
        let mut sum = MemoryFigures::default();
        for arena in &self.plan.arenas {
            sum.naive_bytes += arena.figures.naive_bytes;
            sum.pool_bytes += arena.figures.pool_bytes;
            sum.planned_bytes += arena.figures.planned_bytes;
            sum.lower_bound_bytes += arena.figures.lower_bound_bytes;
            sum.used_bytes += arena.bytes;
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

fn ledger(model: &Model, plan: &Plan, backends: &[Arc<dyn Capabilities>]) -> Ledger {
    let mut ledger = Ledger::default();
    for (index, part) in model.file.parts().iter().enumerate() {
        ledger.add(
            Owner::Weights,
            format!("weights, part {index} (mapped)"),
            part.bytes().as_ref().as_ref().len() as u64,
        );
    }
    let params = &plan.graph.params;
    for (layer, &cols) in plan.graph.kv_cols.iter().enumerate() {
        let bytes = kv_region_bytes(params, cols);
        ledger.add(Owner::Kv, format!("kv.{layer}.k"), bytes);
        ledger.add(Owner::Kv, format!("kv.{layer}.v"), bytes);
    }
    for arena in &plan.arenas {
        ledger.add(Owner::Arena, format!("arena {}", arena.name), arena.bytes);
    }
    ledger.add(Owner::Tokenizer, "tokenizer", model.tokenizer.heap_bytes() as u64);
    for caps in backends {
        ledger.add(Owner::Threads, format!("threads {}", caps.name()), caps.fixed_bytes());
    }
    let logits = u64::from(params.output_capacity) * u64::from(model.spec.n_vocab) * 4;
    ledger.add(Owner::Host, "logits", logits);
    ledger
}

/// Bytes of one of a layer's two KV regions.
pub(crate) fn kv_region_bytes(params: &GraphParams, cols: u32) -> u64 {
    u64::from(params.n_cells) * params.cache_type.value_type().row_bytes(cols)
}
