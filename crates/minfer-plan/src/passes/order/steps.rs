//! What an order must respect, and what it costs. Takes a draft; gives its steps with the ones they must follow, and the
//! bytes that live while they run in an order.

use crate::draft::{Backends, Draft, kernel_of};
use crate::passes::lifetimes::{byte_readers, executed_nodes, in_place_inputs};
use minfer_graph::{Graph, NodeId, Op};
use std::collections::HashMap;
use std::ops::Range;

/// The steps of a draft, numbered in the order given.
pub(super) struct Steps {
    list: Vec<Step>,
    at_start: Vec<u128>,
}

struct Step {
    node: NodeId,
    backend: usize,
    /// Bytes of its value in the backend's arena.
    bytes: u128,
    workspace_bytes: u128,
    /// Whether its value lives to the end.
    is_output: bool,
    /// The steps it must follow, and those that must follow it.
    before: Vec<u32>,
    after: Vec<u32>,
    /// The steps whose values it reads, and those that read its value.
    reads: Vec<u32>,
    readers: Vec<u32>,
    /// The steps whose values it takes over if it is the last to read them.
    in_place: Vec<u32>,
}

impl Steps {
    pub fn new(draft: &Draft, backends: &Backends) -> Self {
        let graph = &draft.graph;
        let executed = executed_nodes(graph);
        let readers = byte_readers(graph, &executed);
        let mut step_of = vec![None; graph.nodes.len()];
        for (step, id) in (0u32..).zip(&executed) {
            step_of[id.index()] = Some(step);
        }
        let steps_of = |ids: &[NodeId]| -> Vec<u32> { ids.iter().filter_map(|id| step_of[id.index()]).collect() };
        // Whole units of alignment, as they are placed.
        let padded = |id: NodeId, bytes: u64| {
            u128::from(bytes).next_multiple_of(u128::from(backends[draft.backend(id).index()].alignment().max(1)))
        };
        let step = |&id: &NodeId| {
            let node = graph.node(id);
            let caps = &backends[draft.backend(id).index()];
            let workspace_bytes = caps.workspace_bytes(&kernel_of(graph, node), node.shape, &graph.params);
            let reads_bytes = |(index, of): (usize, &NodeId)| node.op.reads_bytes(index).then_some(*of);
            let mut read: Vec<NodeId> = node.inputs.iter().enumerate().filter_map(reads_bytes).collect();
            read.sort_unstable();
            read.dedup();
            let in_place: Vec<NodeId> = in_place_inputs(draft, &readers, id).map(|index| node.inputs[index]).collect();
            Step {
                node: id,
                backend: draft.backend(id).index(),
                bytes: if node.op.lives_in_kv() { 0 } else { padded(id, graph.capacity_bytes(id)) },
                workspace_bytes: padded(id, workspace_bytes),
                is_output: graph.outputs.contains(&id),
                before: Vec::new(),
                after: Vec::new(),
                reads: steps_of(&read),
                readers: steps_of(&readers[id.index()]),
                in_place: steps_of(&in_place),
            }
        };
        let mut list: Vec<Step> = executed.iter().map(step).collect();
        for (step, before) in (0u32..).zip(predecessors(graph, &executed, &step_of)) {
            for &earlier in &before {
                list[earlier as usize].after.push(step);
            }
            list[step as usize].before = before;
        }
        // Inputs that are used live from the start to the end.
        let mut at_start = vec![0; backends.len()];
        for id in graph.inputs().filter(|id| !readers[id.index()].is_empty() || graph.outputs.contains(id)) {
            at_start[draft.backend(id).index()] += padded(id, graph.capacity_bytes(id));
        }
        Self { list, at_start }
    }

    pub fn len(&self) -> u32 {
        self.list.len() as u32
    }

    pub fn node(&self, step: u32) -> NodeId {
        self.step(step).node
    }

    pub fn backend(&self, step: u32) -> usize {
        self.step(step).backend
    }

    /// The steps that must run before this one.
    pub fn before(&self, step: u32) -> &[u32] {
        &self.step(step).before
    }

    /// The steps that must run after this one.
    pub fn after(&self, step: u32) -> &[u32] {
        &self.step(step).after
    }

    /// Bytes live on each backend before the first step.
    pub fn at_start(&self) -> &[u128] {
        &self.at_start
    }

    /// Most bytes live at once on each backend.
    pub fn peaks(&self, order: &[u32]) -> Vec<u128> {
        let mut peaks = self.at_start.clone();
        let mut walk = self.walk();
        for &step in order {
            let peak = &mut peaks[self.backend(step)];
            *peak = walk.run(step).max(*peak);
        }
        peaks
    }

    /// A walk through an order, from its start.
    pub fn walk(&self) -> Walk<'_> {
        Walk { steps: self, done: vec![false; self.list.len()], bytes: self.at_start.clone() }
    }

    /// Runs a step: bytes live on its backend meanwhile, and in `bytes` on each backend afterwards. On other backends no
    /// more live meanwhile than before.
    pub fn run(&self, step: u32, bytes: &mut [u128], is_done: impl Fn(u32) -> bool) -> u128 {
        let this = self.step(step);
        // From the end, where most readers that still wait are.
        let ends = |of: u32| self.step(of).readers.iter().rev().all(|&reader| reader == step || is_done(reader));
        let in_place = this.in_place.iter().any(|&of| ends(of));
        let during = bytes[this.backend] + this.workspace_bytes + if in_place { 0 } else { this.bytes };
        if this.is_output || !this.readers.is_empty() {
            bytes[this.backend] += this.bytes;
        }
        for read in this.reads.iter().map(|&of| (of, self.step(of))).filter(|(_, read)| !read.is_output) {
            if ends(read.0) {
                bytes[read.1.backend] -= read.1.bytes;
            }
        }
        during
    }

    /// Ranges of steps that hold the same places in every order. A step has its own place if each before it has a
    /// successor no later than it, and each after it a predecessor no earlier.
    pub fn regions(&self) -> Vec<Range<u32>> {
        let n = self.len();
        let mut is_fixed = vec![true; self.list.len()];
        let mut latest = 0;
        for (at, step) in (0..n).zip(&self.list) {
            is_fixed[at as usize] &= latest <= at;
            latest = latest.max(step.after.iter().copied().min().unwrap_or(n));
        }
        let mut earliest = n;
        for (at, step) in (0..n).zip(&self.list).rev() {
            is_fixed[at as usize] &= earliest > at;
            // One more than the predecessor, so that 0 says that there is none.
            earliest = earliest.min(step.before.iter().max().map_or(0, |&last| last + 1));
        }
        let mut regions: Vec<Range<u32>> = Vec::new();
        for (at, &fixed) in (0..n).zip(&is_fixed) {
            match regions.last_mut() {
                Some(last) if !fixed && !is_fixed[last.start as usize] => last.end = at + 1,
                _ => regions.push(at..at + 1),
            }
        }
        regions
    }

    fn step(&self, step: u32) -> &Step {
        &self.list[step as usize]
    }
}

/// What lives after some steps.
pub(super) struct Walk<'a> {
    steps: &'a Steps,
    done: Vec<bool>,
    /// On each backend.
    pub bytes: Vec<u128>,
}

impl Walk<'_> {
    /// Runs the next step; gives the bytes live on its backend meanwhile.
    pub fn run(&mut self, step: u32) -> u128 {
        let done = &mut self.done;
        done[step as usize] = true;
        self.steps.run(step, &mut self.bytes, |reader| done[reader as usize])
    }
}

/// The steps that each step must follow: those whose values it takes, also by a view, and the one that used the same KV
/// regions before it.
fn predecessors(graph: &Graph, executed: &[NodeId], step_of: &[Option<u32>]) -> Vec<Vec<u32>> {
    // Of nodes that are no steps: the steps behind them.
    let mut behind: Vec<Vec<u32>> = vec![Vec::new(); graph.nodes.len()];
    let taken = |id: NodeId, behind: &[Vec<u32>]| -> Vec<u32> {
        let of = |input: &NodeId| match step_of[input.index()] {
            Some(step) => vec![step],
            None => behind[input.index()].clone(),
        };
        graph.node(id).inputs.iter().flat_map(of).collect()
    };
    for id in graph.ids().filter(|&id| matches!(graph.node(id).op, Op::KvView { .. })) {
        behind[id.index()] = taken(id, &behind);
    }
    let mut last_use: HashMap<u32, u32> = HashMap::new();
    let of_step = |(step, &id): (u32, &NodeId)| {
        let mut before = taken(id, &behind);
        before.extend(graph.node(id).op.kv_layer().and_then(|layer| last_use.insert(layer, step)));
        before.sort_unstable();
        before.dedup();
        before
    };
    (0u32..).zip(executed).map(of_step).collect()
}
