//! Place: offsets for all values. Takes live ranges and aliases; gives the plan; the packing itself is `minfer-memplan`'s.
//!
//! Values that share bytes on purpose are one buffer with the union of their ranges. Scratch is a buffer that lives for one
//! step. Each backend has one arena, and all strategies are tried on it so that their sizes can be told side by side.

use super::{Lifetimes, Ordered};
use crate::draft::{Backends, Draft};
use crate::error::PlanError;
use crate::fingerprint::Fingerprint;
use crate::plan::{ArenaFigures, ArenaPlan, Place, Plan, Value};
use minfer_backend::BackendId;
use minfer_graph::{KvSide, NodeId, Op};
use minfer_memplan::{Buffer, Placed, Problem, Strategy};
use std::ops::Range;

pub(crate) fn place(
    draft: Draft,
    lifetimes: Lifetimes,
    ordered: &[Ordered],
    backends: &Backends,
    strategy: Strategy,
    source: Fingerprint,
) -> Result<Plan, PlanError> {
    let mut places: Vec<Place> = draft.graph.ids().map(|id| fixed_place(&draft, id)).collect();
    let mut workspaces = vec![None; lifetimes.steps.len()];
    let mut arenas = Vec::new();
    for (index, caps) in backends.iter().enumerate() {
        let backend = BackendId(index as u8);
        let collect = |in_place| Buffers::collect(&draft, backend, &lifetimes, in_place);
        let (shared, alone) = (collect(true), collect(false));
        if alone.owners.is_empty() {
            continue;
        }
        let alignment = caps.alignment();
        let failed = |error| PlanError::Place { backend: caps.name().to_string(), error };
        let solve = |strategy| minfer_memplan::place(&shared.problem(alignment), strategy).map_err(failed);
        let naive = minfer_memplan::place(&alone.problem(alignment), Strategy::Naive).map_err(failed)?;
        let (pool, planned) = (solve(Strategy::Pool)?, solve(Strategy::Planned)?);
        let figures = figures(&naive, &pool, &planned, ordered[index]);
        let (buffers, chosen) = match strategy {
            Strategy::Naive => (alone, naive),
            Strategy::Pool => (shared, pool),
            Strategy::Planned => (shared, planned),
        };
        let bytes = chosen.placement.height;
        if let Some(limit) = caps.max_region_bytes().filter(|&limit| bytes > limit) {
            return Err(PlanError::ArenaTooLarge { backend: caps.name().to_string(), bytes, limit });
        }
        for (owners, &offset) in buffers.owners.iter().zip(&chosen.placement.offsets) {
            match owners {
                Owners::Values(ids) => {
                    for id in ids {
                        places[id.index()] = Place::Arena { offset, bytes: draft.graph.capacity_bytes(*id) };
                    }
                }
                Owners::Workspace { step, bytes } => workspaces[*step] = Some((offset, *bytes)),
            }
        }
        let name = caps.name().to_string();
        let certificate = chosen.certificate;
        arenas.push(ArenaPlan { backend, name, strategy, bytes, alignment, figures, certificate });
    }
    let mut steps = lifetimes.steps;
    for (step, workspace) in steps.iter_mut().zip(workspaces) {
        step.workspace = workspace;
    }
    let values = places
        .into_iter()
        .zip(lifetimes.live)
        .zip(lifetimes.alias.into_iter().map(|alias| alias.filter(|_| strategy != Strategy::Naive)))
        .map(|((place, live), alias)| Value { live, place, alias })
        .collect();
    let Draft { graph, backends } = draft;
    Ok(Plan { graph, backends, values, steps, arenas, source })
}

/// The place of a value that is in no arena; arena places are filled in later.
fn fixed_place(draft: &Draft, id: NodeId) -> Place {
    match draft.graph.node(id).op {
        Op::KvStore { layer, .. } => Place::Kv { layer, side: KvSide::K },
        Op::KvView { layer, side } => Place::Kv { layer, side },
        _ => Place::Nowhere,
    }
}

fn figures(naive: &Placed, pool: &Placed, planned: &Placed, ordered: Ordered) -> ArenaFigures {
    ArenaFigures {
        naive_bytes: naive.placement.height,
        pool_bytes: pool.placement.height,
        pool_buffers: pool.n_slots.unwrap_or(0),
        planned_bytes: planned.placement.height,
        lower_bound_bytes: planned.certificate.lower_bound.bytes,
        given_order_bytes: ordered.given_bytes,
        order_is_least: ordered.is_least,
    }
}

/// Who shares one buffer.
enum Owners {
    Values(Vec<NodeId>),
    Workspace { step: usize, bytes: u64 },
}

/// The buffers of one backend's arena.
struct Buffers {
    owners: Vec<Owners>,
    live: Vec<Range<u32>>,
    sizes: Vec<u64>,
}

impl Buffers {
    fn collect(draft: &Draft, backend: BackendId, lifetimes: &Lifetimes, in_place: bool) -> Self {
        let mut buffers = Buffers { owners: Vec::new(), live: Vec::new(), sizes: Vec::new() };
        let mut buffer_of: Vec<Option<usize>> = vec![None; draft.graph.nodes.len()];
        for id in draft.graph.ids().filter(|&id| draft.backend(id) == backend) {
            let live = &lifetimes.live[id.index()];
            if live.is_empty() {
                continue;
            }
            let alias = lifetimes.alias[id.index()].filter(|_| in_place);
            let index = match alias.and_then(|alias| buffer_of[alias.of.index()]) {
                Some(shared) => buffers.join(shared, id, live),
                None => buffers.add(Owners::Values(vec![id]), live.clone(), draft.graph.capacity_bytes(id)),
            };
            buffer_of[id.index()] = Some(index);
        }
        for (step, (planned, &bytes)) in lifetimes.steps.iter().zip(&lifetimes.workspace_bytes).enumerate() {
            if bytes > 0 && draft.backend(planned.node) == backend {
                buffers.add(Owners::Workspace { step, bytes }, step as u32..step as u32 + 1, bytes);
            }
        }
        buffers
    }

    fn add(&mut self, owners: Owners, live: Range<u32>, bytes: u64) -> usize {
        self.owners.push(owners);
        self.live.push(live);
        self.sizes.push(bytes);
        self.owners.len() - 1
    }

    fn join(&mut self, index: usize, id: NodeId, live: &Range<u32>) -> usize {
        if let Owners::Values(ids) = &mut self.owners[index] {
            ids.push(id);
        }
        let union = &mut self.live[index];
        *union = union.start.min(live.start)..union.end.max(live.end);
        index
    }

    fn problem(&self, alignment: u64) -> Problem {
        // Whole units of alignment, so that the lower bound counts what no placement can use.
        let buffer = |(live, &size): (&Range<u32>, &u64)| {
            let size = size.next_multiple_of(alignment);
            Buffer::new(u64::from(live.start), u64::from(live.end), size).aligned(alignment)
        };
        Problem { buffers: self.live.iter().zip(&self.sizes).map(buffer).collect(), capacity: None }
    }
}
