//! Verify: the independent checker. Takes a finished plan and the graph it was made from; gives the first fault; changes
//! nothing and uses no result of the passes before it but the plan itself. Plain walks over all steps and all values.

use super::PlanFault;
use crate::fingerprint::fingerprint;
use crate::plan::{AliasReason, Place, Plan, Value};
use minfer_graph::{Graph, Node, NodeId, Op};
use std::collections::BTreeMap;
use std::ops::Range;

/// Checks every promise of a plan against the graphs alone.
pub fn verify_plan(plan: &Plan, source: &Graph) -> Result<(), PlanFault> {
    let graph_print = fingerprint(source);
    if plan.source != graph_print {
        return Err(PlanFault::WrongGraph { plan: plan.source.to_string(), graph: graph_print.to_string() });
    }
    verify_promises(plan, source)
}

/// The same of a plan that was just made from this graph: that it is of no other goes without saying.
pub(crate) fn verify_promises(plan: &Plan, source: &Graph) -> Result<(), PlanFault> {
    let step_of = steps_by_node(plan)?;
    kv_order(&plan.graph, source)?;
    let checker = Checker { plan, graph: &plan.graph, step_of, reading_steps: reading_steps(plan) };
    for id in plan.graph.ids() {
        checker.lifetime(id)?;
        checker.placed(id)?;
        checker.backends(id)?;
        checker.alias(id)?;
    }
    checker.overlaps()?;
    checker.lower_bounds()
}

/// The step of each node; the steps must be the live, executed nodes in build order.
fn steps_by_node(plan: &Plan) -> Result<Vec<Option<u32>>, PlanFault> {
    let graph = &plan.graph;
    let alive = graph.live_nodes();
    let mut step_of = vec![None; graph.nodes.len()];
    let mut demanded = graph.ids().filter(|id| alive[id.index()] && graph.node(*id).op.is_executed());
    let name = |id: Option<NodeId>| id.map_or("nothing".to_string(), |id| graph.node(id).name.clone());
    for step in 0.. {
        let (expected, got) = (demanded.next(), plan.steps.get(step).map(|step| step.node));
        if expected != got {
            return Err(PlanFault::StepOrder { step, expected: name(expected), got: name(got) });
        }
        match got {
            Some(id) => step_of[id.index()] = Some(step as u32),
            None => break,
        }
    }
    Ok(step_of)
}

/// Each layer's cells are written and read in the source graph's order: whatever the passes fused or moved.
fn kv_order(planned: &Graph, source: &Graph) -> Result<(), PlanFault> {
    let (got, expected) = (kv_accesses(planned), kv_accesses(source));
    let words = |accesses: Option<&Vec<&str>>| accesses.map_or("nothing".to_string(), |words| words.join(", "));
    for &layer in got.keys().chain(expected.keys()) {
        let (got, expected) = (got.get(&layer), expected.get(&layer));
        if got != expected {
            return Err(PlanFault::KvOrder { layer, expected: words(expected), got: words(got) });
        }
    }
    Ok(())
}

fn kv_accesses(graph: &Graph) -> BTreeMap<u32, Vec<&'static str>> {
    let alive = graph.live_nodes();
    let mut accesses: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for id in graph.ids().filter(|&id| alive[id.index()] && graph.node(id).op.is_executed()) {
        let op = graph.node(id).op;
        if let Some(layer) = op.kv_layer() {
            accesses.entry(layer).or_default().push(if op.writes_kv() { "write" } else { "read" });
        }
    }
    accesses
}

/// Of each node: the steps that read its bytes, ascending.
fn reading_steps(plan: &Plan) -> Vec<Vec<u32>> {
    let mut steps = vec![Vec::new(); plan.graph.nodes.len()];
    for (at, step) in (0u32..).zip(&plan.steps) {
        let node = plan.graph.node(step.node);
        for (_, input) in node.inputs.iter().enumerate().filter(|(index, _)| node.op.reads_bytes(*index)) {
            steps[input.index()].push(at);
        }
    }
    steps.iter_mut().for_each(Vec::dedup);
    steps
}

struct Checker<'a> {
    plan: &'a Plan,
    graph: &'a Graph,
    step_of: Vec<Option<u32>>,
    reading_steps: Vec<Vec<u32>>,
}

impl Checker<'_> {
    fn node(&self, id: NodeId) -> &Node {
        self.graph.node(id)
    }

    fn name(&self, id: NodeId) -> String {
        self.node(id).name.clone()
    }

    fn value(&self, id: NodeId) -> &Value {
        self.plan.value(id)
    }

    fn lifetime(&self, id: NodeId) -> Result<(), PlanFault> {
        let reading = &self.reading_steps[id.index()];
        let n_steps = self.plan.steps.len() as u32;
        let is_output = self.graph.outputs.contains(&id);
        let op = &self.node(id).op;
        let start = if matches!(op, Op::Input) { Some(0) } else { self.step_of[id.index()] };
        let end = match reading.last() {
            _ if is_output || (matches!(op, Op::Input) && !reading.is_empty()) => n_steps,
            Some(last) => last + 1,
            None => start.map_or(0, |start| if matches!(op, Op::Input) { start } else { start + 1 }),
        };
        let expected = match start {
            Some(start) if !op.lives_in_kv() => start..end,
            _ => 0..0,
        };
        let got = self.value(id).live.clone();
        if got == expected || (got.is_empty() && expected.is_empty()) {
            return Ok(());
        }
        Err(PlanFault::Live { node: self.name(id), expected, got })
    }

    fn placed(&self, id: NodeId) -> Result<(), PlanFault> {
        let value = self.value(id);
        let expected = match (self.node(id).op.lives_in_kv(), value.live.is_empty()) {
            (true, _) => "its layer's KV region",
            (false, true) => "nowhere",
            (false, false) => "the arena",
        };
        let fits = match (value.place, expected) {
            (Place::Kv { layer, .. }, "its layer's KV region") => self.node(id).op.kv_layer() == Some(layer),
            (Place::Nowhere, "nowhere") => true,
            (Place::Arena { bytes, .. }, "the arena") => bytes == self.graph.capacity_bytes(id),
            _ => false,
        };
        if !fits {
            return Err(PlanFault::Place { node: self.name(id), expected, got: format!("{:?}", value.place) });
        }
        Ok(())
    }

    fn backends(&self, id: NodeId) -> Result<(), PlanFault> {
        let node = self.node(id);
        let mine = self.plan.backends[id.index()];
        let elsewhere = node.inputs.iter().find(|input| self.plan.backends[input.index()] != mine);
        match elsewhere {
            Some(input) if !matches!(node.op, Op::Copy) => {
                Err(PlanFault::CrossBackend { node: self.name(id), input: self.name(*input) })
            }
            _ => Ok(()),
        }
    }

    /// The alias must follow from the graph alone: property of the operation, sole reader (or, for a
    /// sum, last reader), same size, same backend.
    fn alias(&self, id: NodeId) -> Result<(), PlanFault> {
        let Some(alias) = self.value(id).alias else { return Ok(()) };
        let (node, of) = (self.node(id), alias.of);
        let source = self.node(of);
        let reading = &self.reading_steps[of.index()];
        let expected = if reading.len() == 1 { AliasReason::SoleReader } else { AliasReason::LastReader };
        let positions: Vec<usize> = (0..node.inputs.len()).filter(|&n| node.inputs[n] == of).collect();
        let allowed = node.op.in_place_inputs();
        let reason = if !positions.contains(&alias.input) {
            "it is not the input named"
        } else if !positions.iter().all(|position| allowed.contains(position)) {
            "the operation does not work in place on that input"
        } else if self.step_of[id.index()] != Some(alias.step) {
            "another step writes it"
        } else if reading.last() != Some(&alias.step) {
            "the overwritten value is read later"
        } else if reading.len() > 1 && !node.op.accumulates() {
            "the overwritten value has another reader"
        } else if alias.reason != expected {
            "the reason stated is not the true one"
        } else if matches!(source.op, Op::Input) || self.graph.outputs.contains(&of) {
            "the overwritten value is pinned"
        } else if (source.shape, source.ty) != (node.shape, node.ty) {
            "shape or type differ"
        } else if self.plan.backends[of.index()] != self.plan.backends[id.index()] {
            "the backends differ"
        } else if self.value(of).place != self.value(id).place {
            "the places differ"
        } else {
            return Ok(());
        };
        Err(PlanFault::Alias { node: self.name(id), of: self.name(of), reason })
    }

    /// Every run of bytes in arenas, in whole units of the arena's alignment, in the order in which they begin to live.
    fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        for id in self.graph.ids() {
            if let Place::Arena { offset, bytes } = self.value(id).place {
                let (live, backend) = (self.value(id).live.clone(), self.plan.backends[id.index()].0);
                let bytes = self.padded(backend, bytes);
                runs.push(Run { backend, live, offset, bytes, node: id, is_workspace: false });
            }
        }
        for (at, step) in (0u32..).zip(&self.plan.steps) {
            if let Some((offset, bytes)) = step.workspace {
                let backend = self.plan.backends[step.node.index()].0;
                let bytes = self.padded(backend, bytes);
                runs.push(Run { backend, live: at..at + 1, offset, bytes, node: step.node, is_workspace: true });
            }
        }
        runs.sort_by_key(|run| run.live.start);
        runs
    }

    fn run_name(&self, run: &Run) -> String {
        let name = self.name(run.node);
        if run.is_workspace { format!("workspace of {name}") } else { name }
    }

    fn padded(&self, backend: u8, bytes: u64) -> u64 {
        let arena = self.plan.arenas.iter().find(|arena| arena.backend.0 == backend);
        arena.map_or(bytes, |arena| bytes.next_multiple_of(arena.alignment))
    }

    /// A walk through time: each run against those that still live when it begins.
    fn overlaps(&self) -> Result<(), PlanFault> {
        let runs = self.runs();
        let mut living: Vec<&Run> = Vec::new();
        for run in &runs {
            let arena = self.plan.arenas.iter().find(|arena| arena.backend.0 == run.backend);
            let (arena_bytes, alignment) = arena.map_or((0, 1), |arena| (arena.bytes, arena.alignment));
            let inside = run.offset.checked_add(run.bytes).is_some_and(|end| end <= arena_bytes);
            if !inside || !run.offset.is_multiple_of(alignment) {
                let (node, offset, bytes) = (self.run_name(run), run.offset, run.bytes);
                return Err(PlanFault::Bounds { node, offset, bytes, arena_bytes, alignment });
            }
            living.retain(|other| run.live.start < other.live.end);
            if let Some(other) = living.iter().find(|other| run.clashes(other) && !self.handed_over(run, other)) {
                return Err(PlanFault::Overlap { a: self.run_name(other), b: self.run_name(run) });
            }
            living.push(run);
        }
        Ok(())
    }

    /// Whether two clashing runs are a value and the one written in its place: they meet in that one step.
    fn handed_over(&self, a: &Run, b: &Run) -> bool {
        let takes_over = |new: &Run, old: &Run| {
            let alias = self.value(new.node).alias.filter(|_| !new.is_workspace && !old.is_workspace);
            alias.is_some_and(|alias| {
                alias.of == old.node && new.live.start == alias.step && old.live.end == alias.step + 1
            })
        };
        takes_over(a, b) || takes_over(b, a)
    }

    /// The bound of each arena, counted anew: bytes of distinct places live at the witness step.
    fn lower_bounds(&self) -> Result<(), PlanFault> {
        let runs = self.runs();
        for arena in &self.plan.arenas {
            let stated = &arena.certificate.lower_bound;
            let mut counted = 0;
            let live_then: Vec<&Run> = runs
                .iter()
                .filter(|run| run.backend == arena.backend.0 && run.live.contains(&(stated.step as u32)))
                .collect();
            for (index, run) in live_then.iter().enumerate() {
                let shared = live_then[..index].iter().any(|other| self.handed_over(run, other));
                counted += if shared { 0 } else { run.bytes };
            }
            if counted != stated.bytes || arena.bytes < counted {
                let (arena, stated, step) = (arena.name.clone(), stated.bytes, stated.step);
                return Err(PlanFault::LowerBound { arena, stated, step, counted });
            }
        }
        Ok(())
    }
}

struct Run {
    backend: u8,
    live: Range<u32>,
    offset: u64,
    bytes: u64,
    /// The node whose value or workspace it is.
    node: NodeId,
    is_workspace: bool,
}

impl Run {
    fn clashes(&self, other: &Run) -> bool {
        self.backend == other.backend
            && self.live.start < other.live.end
            && other.live.start < self.live.end
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }
}
