//! A plan as plain data that survives a trip through a file. Takes a plan; gives a [`PlanRecord`], from which everything
//! that is explained or compared is read; must not know how it is printed.

use crate::plan::{AliasReason, Place, Plan};
use minfer_graph::{NodeId, Op, Rows};
use serde::{Deserialize, Serialize};

/// A plan without its graph: arenas, steps in execution order, and every value that has bytes in an arena.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlanRecord {
    /// The same plan, byte for byte, has the same one.
    pub fingerprint: String,
    /// One per backend that has values.
    pub arenas: Vec<ArenaRecord>,
    /// In execution order.
    pub steps: Vec<StepRecord>,
    /// In build order, each step's workspace after its value.
    pub values: Vec<ValueRecord>,
}

/// The arena of one backend.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ArenaRecord {
    /// Name of its backend.
    pub name: String,
    /// How values were placed.
    pub strategy: String,
    /// Its size.
    pub bytes: u64,
    /// Alignment of every value.
    pub alignment: u64,
    /// Size if every value had its own bytes.
    pub naive_bytes: u64,
    /// Size if values were recycled by size class.
    pub pool_bytes: u64,
    /// Distinct buffers of that pool.
    pub pool_buffers: usize,
    /// Size if placed offline.
    pub planned_bytes: u64,
    /// No placement can be smaller.
    pub lower_bound_bytes: u64,
    /// The same, had the steps kept the order of the graph.
    #[serde(default)]
    pub given_order_bytes: u64,
    /// Whether no order of the steps has a smaller bound.
    #[serde(default)]
    pub order_is_least: bool,
    /// Whether the placement in use is proven to be the smallest there is.
    pub optimal: bool,
    /// The first step at which most bytes are live.
    pub peak_step: u32,
}

/// One step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StepRecord {
    /// Name of its node.
    pub name: String,
    /// Name of its operation.
    pub op: String,
    /// Layer.
    pub layer: Option<u32>,
    /// Name of its backend.
    pub backend: String,
}

/// What a value is to the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// Filled by the host before the first step.
    Input,
    /// Written by one step and read by later ones.
    Intermediate,
    /// Read after the last step.
    Output,
    /// The copy of a value on another backend.
    Staging,
    /// Scratch of one step.
    Workspace,
}

/// One value in an arena.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ValueRecord {
    /// Name of its node; a workspace is called after its step.
    pub name: String,
    /// What it is to the plan.
    pub kind: ValueKind,
    /// Name of the operation that writes it.
    pub op: String,
    /// Layer.
    pub layer: Option<u32>,
    /// Rows and columns in the largest batch.
    pub shape: String,
    /// Element type.
    #[serde(rename = "type")]
    pub ty: String,
    /// Name of the arena's backend.
    pub arena: String,
    /// Bytes from the arena's start.
    pub offset: u64,
    /// Length in bytes, in the largest batch.
    pub bytes: u64,
    /// Half-open range of steps.
    pub live: (u32, u32),
    /// The value whose bytes it takes over while that one is live.
    pub in_place_of: Option<InPlace>,
}

/// An alias.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InPlace {
    /// Name of the value taken over.
    pub name: String,
    /// Why that is safe.
    pub reason: String,
}

impl AliasReason {
    /// In words: who may overwrite the value.
    pub fn words(self) -> &'static str {
        match self {
            AliasReason::SoleReader => "its sole reader",
            AliasReason::LastReader => "its last reader",
        }
    }
}

impl PlanRecord {
    /// The record of a plan.
    pub fn new(plan: &Plan) -> Self {
        let arenas = plan.arenas.iter().map(|arena| {
            let figures = arena.figures;
            ArenaRecord {
                name: arena.name.clone(),
                strategy: arena.strategy.to_string(),
                bytes: arena.bytes,
                alignment: arena.alignment,
                naive_bytes: figures.naive_bytes,
                pool_bytes: figures.pool_bytes,
                pool_buffers: figures.pool_buffers,
                planned_bytes: figures.planned_bytes,
                lower_bound_bytes: figures.lower_bound_bytes,
                given_order_bytes: figures.given_order_bytes,
                order_is_least: figures.order_is_least,
                optimal: arena.certificate.verdict.is_optimal(),
                peak_step: u32::try_from(arena.certificate.lower_bound.step).unwrap_or(u32::MAX),
            }
        });
        let steps = plan.steps.iter().map(|step| {
            let node = plan.graph.node(step.node);
            StepRecord {
                name: node.name.clone(),
                op: node.op.name().into(),
                layer: node.layer,
                backend: backend_name(plan, step.node),
            }
        });
        Self {
            fingerprint: plan.fingerprint().to_string(),
            arenas: arenas.collect(),
            steps: steps.collect(),
            values: values(plan),
        }
    }

    /// An arena by the name of its backend.
    pub fn arena(&self, name: &str) -> Option<&ArenaRecord> {
        self.arenas.iter().find(|arena| arena.name == name)
    }
}

impl ValueRecord {
    /// Whether its bytes are taken at a step.
    pub fn is_live_at(&self, step: u32) -> bool {
        (self.live.0..self.live.1).contains(&step)
    }

    /// Bytes it occupies: whole units of alignment.
    pub fn occupied_bytes(&self, alignment: u64) -> u64 {
        // A record may come from a file, whose numbers may be any.
        self.bytes.checked_next_multiple_of(alignment.max(1)).unwrap_or(u64::MAX)
    }
}

fn values(plan: &Plan) -> Vec<ValueRecord> {
    let mut workspaces = vec![None; plan.graph.nodes.len()];
    for (at, step) in (0..).zip(&plan.steps) {
        workspaces[step.node.index()] = step.workspace.map(|place| (at, place));
    }
    let mut records = Vec::new();
    for id in plan.graph.ids() {
        let (node, value) = (plan.graph.node(id), plan.value(id));
        let arena = backend_name(plan, id);
        if let Place::Arena { offset, bytes } = value.place {
            records.push(ValueRecord {
                name: node.name.clone(),
                kind: kind(plan, id),
                op: node.op.name().into(),
                layer: node.layer,
                shape: shape(plan, id),
                ty: node.ty.to_string(),
                arena: arena.clone(),
                offset,
                bytes,
                live: (value.live.start, value.live.end),
                in_place_of: value.alias.map(|alias| InPlace {
                    name: plan.graph.node(alias.of).name.clone(),
                    reason: alias.reason.words().into(),
                }),
            });
        }
        if let Some((step, (offset, bytes))) = workspaces[id.index()] {
            records.push(ValueRecord {
                name: format!("{} workspace", node.name),
                kind: ValueKind::Workspace,
                op: node.op.name().into(),
                layer: node.layer,
                shape: format!("[{bytes}]"),
                ty: "bytes".into(),
                arena,
                offset,
                bytes,
                live: (step, step + 1),
                in_place_of: None,
            });
        }
    }
    records
}

fn kind(plan: &Plan, id: NodeId) -> ValueKind {
    match plan.graph.node(id).op {
        Op::Input => ValueKind::Input,
        _ if plan.graph.outputs.contains(&id) => ValueKind::Output,
        Op::Copy => ValueKind::Staging,
        _ => ValueKind::Intermediate,
    }
}

/// Rows and columns in the largest batch.
fn shape(plan: &Plan, id: NodeId) -> String {
    let shape = plan.graph.node(id).shape;
    let rows = match shape.rows {
        Rows::Fixed(n) => n,
        other => plan.graph.params.capacity().rows(other),
    };
    format!("[{rows}, {}]", shape.cols)
}

fn backend_name(plan: &Plan, id: NodeId) -> String {
    let backend = plan.backends[id.index()];
    plan.arena(backend).map_or_else(|| format!("backend {}", backend.0), |arena| arena.name.clone())
}
