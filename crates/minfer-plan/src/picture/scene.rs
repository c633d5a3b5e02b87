//! What there is to draw. Takes plans of one graph; gives values, steps and, per plan, offsets; must not know pixels,
//! colours or markup.

use crate::picture::PictureError;
use crate::plan::{AliasReason, Place, Plan};
use minfer_backend::BackendId;
use minfer_graph::{Node, Op};
use minfer_memplan::Strategy;
use serde::Serialize;
use std::ops::Range;

/// One graph, planned once or several times.
#[derive(Serialize)]
pub(super) struct Scene {
    /// In execution order.
    pub steps: Vec<Step>,
    /// Layers that have values or steps: `0..n_layer`.
    pub n_layer: u32,
    /// In the plan's order.
    pub arenas: Vec<Arena>,
    /// Values, then workspaces.
    pub items: Vec<Item>,
    /// One per plan.
    pub layouts: Vec<Layout>,
}

/// A step.
#[derive(PartialEq, Serialize)]
pub(super) struct Step {
    pub name: String,
    pub op: &'static str,
    pub layer: Option<u32>,
}

/// What every plan of the graph says of one arena.
#[derive(PartialEq, Serialize)]
pub(super) struct Arena {
    pub name: String,
    pub naive_bytes: u64,
    pub pool_bytes: u64,
    pub planned_bytes: u64,
    pub lower_bound_bytes: u64,
}

/// Something that owns bytes of an arena for some steps.
#[derive(PartialEq, Serialize)]
pub(super) struct Item {
    pub name: String,
    pub op: &'static str,
    /// Shape and type.
    pub shape: String,
    pub layer: Option<u32>,
    pub kind: Kind,
    /// Index into [`Scene::arenas`].
    pub arena: usize,
    /// Length of its content.
    pub bytes: u64,
    /// What it occupies: whole units of alignment.
    pub occupied_bytes: u64,
    /// First step, and the one after the last.
    pub live: (u32, u32),
}

/// Kinds of items, told apart by outline and pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Value,
    Input,
    Output,
    Staging,
    Workspace,
}

/// Where one plan puts the items.
#[derive(Serialize)]
pub(super) struct Layout {
    pub strategy: String,
    /// Height of each arena.
    pub heights: Vec<u64>,
    /// Of each item, from its arena's start.
    pub offsets: Vec<u64>,
    /// Of each item, the one whose bytes it takes over.
    pub takes_over: Vec<Option<TakeOver>>,
}

/// A value written in place.
#[derive(Serialize)]
pub(super) struct TakeOver {
    pub item: usize,
    pub why: &'static str,
}

/// A chain of items that share bytes on purpose; most have one link.
pub(super) struct Body {
    /// Item, and the steps in which the bytes are its own: until the next link takes them over.
    pub links: Vec<(usize, Range<u32>)>,
    /// From the first link's start to the last one's end.
    pub live: Range<u32>,
    pub offset: u64,
    pub bytes: u64,
}

impl Scene {
    /// A graph planned once.
    pub fn of(plan: &Plan) -> Self {
        let (items, layout) = lay_out(plan);
        Scene {
            steps: plan.steps.iter().map(|step| step_of(plan.graph.node(step.node))).collect(),
            n_layer: plan.graph.nodes.iter().filter_map(|node| node.layer).max().map_or(0, |l| l.saturating_add(1)),
            arenas: arenas(plan),
            items,
            layouts: vec![layout],
        }
    }

    /// A graph planned by several strategies.
    pub fn of_all(plans: &[&Plan]) -> Result<Self, PictureError> {
        let (first, others) = plans.split_first().ok_or(PictureError::NoPlan)?;
        let mut scene = Scene::of(first);
        for plan in others {
            let strategy = strategy_of(plan);
            let (items, layout) = lay_out(plan);
            if scene.layouts.iter().any(|earlier| earlier.strategy == layout.strategy) {
                return Err(PictureError::StrategyTwice { strategy });
            }
            if plan.source != first.source || items != scene.items || arenas(plan) != scene.arenas {
                return Err(PictureError::OtherGraph { strategy });
            }
            scene.layouts.push(layout);
        }
        Ok(scene)
    }

    /// Everything in one arena, chains joined, in the order in which they begin.
    pub fn bodies(&self, layout: &Layout, arena: usize) -> Vec<Body> {
        let mut bodies: Vec<Body> = Vec::new();
        let mut body_of: Vec<Option<usize>> = vec![None; self.items.len()];
        for (index, item) in self.items.iter().enumerate().filter(|(_, item)| item.arena == arena) {
            let live = item.live.0..item.live.1;
            let joined = layout.takes_over[index].as_ref().and_then(|take_over| body_of[take_over.item]);
            body_of[index] = Some(joined.unwrap_or(bodies.len()));
            match joined.and_then(|body| bodies.get_mut(body)) {
                Some(body) => {
                    if let Some((_, last)) = body.links.last_mut() {
                        last.end = live.start;
                    }
                    body.live.end = body.live.end.max(live.end);
                    body.links.push((index, live));
                }
                None => bodies.push(Body {
                    links: vec![(index, live.clone())],
                    live,
                    offset: layout.offsets[index],
                    bytes: item.occupied_bytes,
                }),
            }
        }
        bodies
    }

    /// At every step, the sum of the bytes that must be kept.
    pub fn live_bytes(&self, bodies: &[Body]) -> Vec<u64> {
        let (mut begun, mut ended) = (vec![0; self.steps.len() + 1], vec![0; self.steps.len() + 1]);
        for body in bodies {
            begun[self.bounded(body.live.start)] += body.bytes;
            ended[self.bounded(body.live.end)] += body.bytes;
        }
        let mut now = 0u64;
        let sum = |(begun, ended): (u64, u64)| {
            now = now + begun - ended;
            now
        };
        let mut sums: Vec<u64> = begun.into_iter().zip(ended).map(sum).collect();
        sums.truncate(self.steps.len());
        sums
    }

    fn bounded(&self, step: u32) -> usize {
        (step as usize).min(self.steps.len())
    }
}

/// The first step at which a sum is largest.
pub(super) fn peak(live_bytes: &[u64]) -> Option<(usize, u64)> {
    let largest = *live_bytes.iter().max()?;
    Some((live_bytes.iter().position(|&bytes| bytes == largest)?, largest))
}

fn strategy_of(plan: &Plan) -> Strategy {
    plan.arenas.first().map_or(Strategy::Planned, |arena| arena.strategy)
}

fn step_of(node: &Node) -> Step {
    Step { name: node.name.clone(), op: node.op.name(), layer: node.layer }
}

fn arenas(plan: &Plan) -> Vec<Arena> {
    let arena = |arena: &crate::plan::ArenaPlan| Arena {
        name: arena.name.clone(),
        naive_bytes: arena.figures.naive_bytes,
        pool_bytes: arena.figures.pool_bytes,
        planned_bytes: arena.figures.planned_bytes,
        lower_bound_bytes: arena.figures.lower_bound_bytes,
    };
    plan.arenas.iter().map(arena).collect()
}

fn lay_out(plan: &Plan) -> (Vec<Item>, Layout) {
    let (mut items, mut offsets, mut takes_over) = (Vec::new(), Vec::new(), Vec::new());
    let arena_of = |backend: BackendId| plan.arenas.iter().position(|arena| arena.backend == backend);
    let occupied = |arena: usize, bytes: u64| bytes.next_multiple_of(plan.arenas[arena].alignment.max(1));
    let mut item_of = vec![None; plan.values.len()];
    for id in plan.graph.ids() {
        let (value, node) = (plan.value(id), plan.graph.node(id));
        let Place::Arena { offset, bytes } = value.place else { continue };
        let Some(arena) = arena_of(plan.backends[id.index()]) else { continue };
        let kind = match node.op {
            Op::Input => Kind::Input,
            Op::Copy => Kind::Staging,
            _ if plan.graph.outputs.contains(&id) => Kind::Output,
            _ => Kind::Value,
        };
        item_of[id.index()] = Some(items.len());
        items.push(Item {
            name: node.name.clone(),
            op: node.op.name(),
            shape: format!("{} {}", node.shape, node.ty),
            layer: node.layer,
            kind,
            arena,
            bytes,
            occupied_bytes: occupied(arena, bytes),
            live: (value.live.start, value.live.end),
        });
        offsets.push(offset);
        takes_over.push(value.alias.and_then(|alias| {
            let why = match alias.reason {
                AliasReason::SoleReader => "nobody else reads it",
                AliasReason::LastReader => "all its other readers have run",
            };
            Some(TakeOver { item: item_of[alias.of.index()]?, why })
        }));
    }
    for (step, planned) in (0u32..).zip(&plan.steps) {
        let Some((offset, bytes)) = planned.workspace else { continue };
        let Some(arena) = arena_of(plan.backends[planned.node.index()]) else { continue };
        let node = plan.graph.node(planned.node);
        items.push(Item {
            name: format!("workspace of {}", node.name),
            op: node.op.name(),
            shape: "scratch".to_string(),
            layer: node.layer,
            kind: Kind::Workspace,
            arena,
            bytes,
            occupied_bytes: occupied(arena, bytes),
            live: (step, step + 1),
        });
        offsets.push(offset);
        takes_over.push(None);
    }
    let heights = plan.arenas.iter().map(|arena| arena.bytes).collect();
    (items, Layout { strategy: strategy_of(plan).to_string(), heights, offsets, takes_over })
}
