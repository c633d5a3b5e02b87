//! The plan: plain data. Takes nothing; gives the types that every reader of a plan uses; must not know how it was made.

use crate::fingerprint::{Fingerprint, Fnv, fingerprint};
use minfer_backend::{BackendId, Kernel};
use minfer_graph::{Graph, KvSide, NodeId};
use minfer_memplan::{Certificate, Strategy};
use std::ops::Range;

/// Where a value lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the arena of its backend.
    Arena {
        /// Bytes from the arena's start.
        offset: u64,
        /// Length in bytes, in the largest batch.
        bytes: u64,
    },
    /// In a KV region of its backend.
    Kv {
        /// Layer.
        layer: u32,
        /// Which of the two.
        side: KvSide,
    },
    /// Nowhere: nobody reads it (a dead node).
    Nowhere,
}

/// Why a value may share the bytes of another that is live at the same step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alias {
    /// The value whose bytes it takes over.
    pub of: NodeId,
    /// Which input of the operation that value is.
    pub input: usize,
    /// The step that overwrites it: its last reader.
    pub step: u32,
    /// Why that is safe.
    pub reason: AliasReason,
}

/// Why a value may be overwritten in the step that reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AliasReason {
    /// Nobody else reads it.
    SoleReader,
    /// It is added onto, and all its other readers have run before.
    LastReader,
}

/// What the plan knows of a node's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// From the step that writes it to after the last that reads it, in execution order. Empty for dead values.
    pub live: Range<u32>,
    /// Where.
    pub place: Place,
    /// Set when it is written in place.
    pub alias: Option<Alias>,
}

/// One step: which node, how, with which scratch.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedStep {
    /// The node.
    pub node: NodeId,
    /// How.
    pub kernel: Kernel,
    /// Scratch in the arena: offset and length in bytes.
    pub workspace: Option<(u64, u64)>,
}

/// Bytes of one arena under each strategy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArenaFigures {
    /// Every value its own bytes, nothing in place.
    pub naive_bytes: u64,
    /// Recycled by size class, online.
    pub pool_bytes: u64,
    /// Distinct buffers the pool makes.
    pub pool_buffers: usize,
    /// Planned offline.
    pub planned_bytes: u64,
    /// No placement can be smaller.
    pub lower_bound_bytes: u64,
    /// The same, had the steps kept the order of the graph.
    pub given_order_bytes: u64,
    /// Whether no order of the steps has a smaller bound, where no arena may have a larger one than in the graph's order.
    pub order_is_least: bool,
}

/// The arena of one backend.
#[derive(Clone, PartialEq, Debug)]
pub struct ArenaPlan {
    /// Whose.
    pub backend: BackendId,
    /// Its name.
    pub name: String,
    /// How it was placed.
    pub strategy: Strategy,
    /// Its size under that strategy.
    pub bytes: u64,
    /// Alignment of every value.
    pub alignment: u64,
    /// All strategies side by side.
    pub figures: ArenaFigures,
    /// Lower bound, witness and verdict of the placement in use.
    pub certificate: Certificate,
}

/// How, where, at which offset, in which order.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The graph after all rewriting; its ids are the ones below.
    pub graph: Graph,
    /// Backend of each node.
    pub backends: Vec<BackendId>,
    /// Value of each node.
    pub values: Vec<Value>,
    /// In execution order.
    pub steps: Vec<PlannedStep>,
    /// One per backend that has values, in backend order.
    pub arenas: Vec<ArenaPlan>,
    /// The graph this plan was made from.
    pub source: Fingerprint,
}

impl Plan {
    /// Hash of the final graph with backends, sizes, live ranges, places and aliases: the same plan, byte for byte.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hash = Fnv::default();
        hash.text(&fingerprint(&self.graph).to_string());
        for (value, backend) in self.values.iter().zip(&self.backends) {
            hash.text(&format!("{value:?} {backend:?}"));
        }
        for step in &self.steps {
            hash.text(&format!("{step:?}"));
        }
        hash.finish()
    }

    /// The value of a node.
    pub fn value(&self, id: NodeId) -> &Value {
        &self.values[id.index()]
    }

    /// The arena of a backend, if it has values there.
    pub fn arena(&self, backend: BackendId) -> Option<&ArenaPlan> {
        self.arenas.iter().find(|arena| arena.backend == backend)
    }

    /// The backend that computes this layer's attention and so holds its KV regions.
    pub fn kv_backend(&self, layer: u32) -> Option<BackendId> {
        let node = self.graph.ids().find(|&id| self.graph.node(id).op.kv_layer() == Some(layer))?;
        Some(self.backends[node.index()])
    }
}
