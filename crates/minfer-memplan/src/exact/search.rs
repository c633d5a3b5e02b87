//! The search proper: takes an instance, a capacity, an order of preference and a node budget; decides whether all
//! items fit, or stops with the budget. Must not know about restarts.
//!
//! It goes deep, so it keeps little: a task for every decision that can still be taken otherwise and for every part that
//! is still to be solved, and the state's trail, which holds what changed since and has a limit.

use std::cmp::Reverse;
use std::ops::Range;

use super::Halt;
use super::state::{End, Mark, State};
use crate::budget::Stop;

/// Which item is branched on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pick {
    /// The lowest level, ties by rank.
    Lowest,
    /// In a section where few items can be next, preferably low down: the preferred of these, or what has to come before
    /// it. Measured on the MiniMalloc suite this finds placements several times as often as the least room to waste.
    Narrowest,
}

/// Items that hang together in time: the unplaced of a range, and the sections from their first to their last.
#[derive(Clone)]
struct Part {
    items: Range<u32>,
    sections: Range<usize>,
    n_unplaced: usize,
}

/// What is left to do.
enum Task {
    /// The part is still to be solved.
    Solve(Part),
    /// The item was placed. If what follows fails, it is refused and the part solved without that placement.
    Refuse { item: u32, part: Part, before: Mark },
}

pub(crate) struct Search<'a> {
    pub state: State<'a>,
    pick: Pick,
    rank: Vec<u32>,
    pub nodes: u64,
    tasks: Vec<Task>,
}

/// How many nodes pass between two questions whether to stop, if they are small: see [`State::propagate`].
const NODES_PER_QUESTION: u64 = 256;

impl<'a> Search<'a> {
    /// `rank` is the preference per item, 0 first; a permutation. Nothing is placed in the state.
    pub fn new(state: State<'a>, pick: Pick, rank: Vec<u32>) -> Self {
        Self { state, pick, rank, nodes: 0, tasks: Vec::new() }
    }

    /// Whether all items fit; then their offsets are in the state. Branches on one item after the other: at its rest, or
    /// not there.
    pub fn run(&mut self, budget: u64, stop: Stop<'_>) -> Result<bool, Halt> {
        let n_items = self.rank.len();
        let sections = 0..self.state.instance.members.len();
        let mut part = Part { items: 0..n_items as u32, sections, n_unplaced: n_items };
        loop {
            self.nodes += 1;
            if self.nodes > budget || self.nodes.is_multiple_of(NODES_PER_QUESTION) && stop() {
                return Err(Halt);
            }
            let is_alive = match self.state.propagate(stop) {
                Err(End::Dead) => false,
                Err(End::Halted) => return Err(Halt),
                Ok(true) => {
                    self.divide(&part);
                    true
                }
                Ok(false) => match self.choose(&part) {
                    Some(item) => self.branch(item, &part),
                    None => true, // nothing left to place
                },
            };
            let next = if is_alive { self.next_part() } else { self.other_branch() };
            match next {
                Some(next) => part = next,
                None => return Ok(is_alive),
            }
        }
    }

    /// Places the item, and divides what is left of the part. False if it cannot lie there.
    fn branch(&mut self, item: u32, part: &Part) -> bool {
        self.tasks.push(Task::Refuse { item, part: part.clone(), before: self.state.mark() });
        let is_placed = self.state.place(item).is_ok();
        if is_placed {
            self.divide(part);
        }
        is_placed
    }

    /// Divides what is unplaced into parts that share no section, to be solved one after the other, the largest first.
    fn divide(&mut self, whole: &Part) {
        let mut parts: Vec<Part> = Vec::new();
        for i in whole.items.clone().filter(|&i| !self.state.is_placed(i)) {
            let item = &self.state.instance.items[i as usize];
            match parts.last_mut() {
                Some(part) if item.from < part.sections.end => {
                    part.items.end = i + 1;
                    part.sections.end = part.sections.end.max(item.to);
                    part.n_unplaced += 1;
                }
                _ => parts.push(Part { items: i..i + 1, sections: item.from..item.to, n_unplaced: 1 }),
            }
        }
        parts.sort_by_key(|part| Reverse(part.n_unplaced));
        self.tasks.extend(parts.into_iter().rev().map(Task::Solve));
    }

    /// The part to solve after one that is: whatever was decided within that stands. `None` if all are.
    fn next_part(&mut self) -> Option<Part> {
        while let Some(task) = self.tasks.pop() {
            if let Task::Solve(part) = task {
                return Some(part);
            }
        }
        None
    }

    /// Back to the last decision that can be taken otherwise, and takes it so. `None` if there is none.
    fn other_branch(&mut self) -> Option<Part> {
        while let Some(task) = self.tasks.pop() {
            let Task::Refuse { item, part, before } = task else { continue };
            self.state.undo(before);
            // A fixed item has no other place.
            if self.state.instance.items[item as usize].fixed.is_none() && self.state.refuse(item).is_ok() {
                return Some(part);
            }
        }
        None
    }

    fn choose(&self, part: &Part) -> Option<u32> {
        let by_rank = |i: u32| self.rank[i as usize];
        let state = &self.state;
        if self.pick == Pick::Lowest {
            let open = part.items.clone().filter(|&i| state.is_open(i));
            return open.min_by_key(|&i| (state.level(i), by_rank(i)));
        }
        // Per section how many items could be its next without wasting more than it can spare.
        let narrow = |s: usize| {
            let (floor, slack) = (state.floor(s)?, state.slack(s));
            let choices = state.instance.members[s].iter().filter(|&&i| state.level(i) <= floor + slack).count() as u64;
            Some((choices.saturating_mul(state.capacity / 8).saturating_add(floor), slack, s))
        };
        let (_, slack, s) = part.sections.clone().filter_map(narrow).min()?;
        let limit = state.floor(s)? + slack;
        let near = |i: &u32| state.level(*i) <= limit;
        let members = state.instance.members[s].iter().copied().filter(near);
        let mut i = members.min_by_key(|&i| (!state.is_open(i), by_rank(i)))?;
        // Go down to what has to be decided first. Levels fall with every step, and the lowest is open.
        loop {
            match state.fits_below(i) {
                Some(below) => i = below,
                None => return Some(i),
            }
        }
    }
}
