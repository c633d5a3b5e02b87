//! The search proper: takes an instance, a capacity, an order of preference and a node budget; decides whether all
//! items fit, or stops with the budget. Must not know about restarts.

use super::Halt;
use super::instance::Instance;
use super::state::{End, Section, State};
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

pub(crate) struct Search<'a> {
    pub state: State<'a>,
    pick: Pick,
    /// Preference per item, 0 first; a permutation.
    pub rank: Vec<u32>,
    pub nodes: u64,
    budget: u64,
    saved: Vec<Section>,
}

/// How many nodes pass between two questions whether to stop, if they are small: see [`State::propagate`].
const NODES_PER_QUESTION: u64 = 256;

impl<'a> Search<'a> {
    pub fn new(instance: &'a Instance, capacity: u64, pick: Pick) -> Self {
        let rank = (0..instance.items.len() as u32).collect();
        let state = State::new(instance, capacity);
        Self { state, pick, rank, nodes: 0, budget: 0, saved: Vec::new() }
    }

    /// Whether all items fit; then their offsets are in the state. Leaves the state as it was otherwise.
    pub fn run(&mut self, budget: u64, stop: Stop<'_>) -> Result<Option<Vec<u64>>, Halt> {
        (self.nodes, self.budget) = (0, budget);
        let all: Vec<u32> = (0..self.rank.len() as u32).collect(); // ascending by first section
        let fits = self.component(&all, stop);
        let offsets = self.state.offsets.clone();
        self.state = self.state.renewed();
        self.saved.clear();
        Ok(fits?.then_some(offsets))
    }

    /// Solves the unplaced of these items, ascending by first section, one component after the other.
    fn components(&mut self, items: &[u32], stop: Stop<'_>) -> Result<bool, Halt> {
        let mut parts: Vec<Vec<u32>> = Vec::new();
        let mut end = 0;
        for &i in items {
            if self.state.is_placed(i) {
                continue;
            }
            let item = &self.state.instance.items[i as usize];
            match parts.last_mut() {
                Some(part) if item.from < end => part.push(i),
                _ => parts.push(vec![i]),
            }
            end = end.max(item.to);
        }
        parts.sort_by_key(|p| std::cmp::Reverse(p.len()));
        for part in parts {
            if !self.component(&part, stop)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Branches on one item after the other: at its rest, or not there. On failure the caller undoes.
    fn component(&mut self, items: &[u32], stop: Stop<'_>) -> Result<bool, Halt> {
        let of = |i: &u32| &self.state.instance.items[*i as usize];
        let from = items.first().map_or(0, |i| of(i).from);
        let range = (from, items.iter().map(|i| of(i).to).max().unwrap_or(from));
        loop {
            self.nodes += 1;
            if self.nodes > self.budget || self.nodes.is_multiple_of(NODES_PER_QUESTION) && stop() {
                return Err(Halt);
            }
            match self.state.propagate(stop) {
                Err(End::Dead) => return Ok(false),
                Err(End::Stopped) => return Err(Halt),
                Ok(true) => return self.components(items, stop),
                Ok(false) => {}
            }
            let Some(i) = self.choose(items, range) else {
                return Ok(true); // nothing left to place
            };
            let (mark, base) = (self.state.mark_trail(), self.saved.len());
            self.state.save(range, &mut self.saved);
            if self.state.place(i).is_ok() && self.components(items, stop)? {
                return Ok(true);
            }
            self.state.undo(mark, range, &self.saved[base..base + range.1 - range.0]);
            self.saved.truncate(base);
            // A fixed item has no other place.
            if self.state.instance.items[i as usize].fixed.is_some() || self.state.refuse(i).is_err() {
                return Ok(false);
            }
        }
    }

    fn choose(&self, items: &[u32], range: (usize, usize)) -> Option<u32> {
        let by_rank = |i: u32| self.rank[i as usize];
        if self.pick == Pick::Lowest {
            let open = items.iter().copied().filter(|&i| self.state.is_open(i));
            return open.min_by_key(|&i| (self.state.level(i), by_rank(i)));
        }
        let state = &self.state;
        // Per section how many items could be its next without wasting more than it can spare.
        let narrow = |s: usize| {
            let (floor, slack) = (state.floor(s)?, state.slack(s));
            let choices = state.instance.members[s].iter().filter(|&&i| state.level(i) <= floor + slack).count() as u64;
            Some((choices.saturating_mul(state.capacity / 8).saturating_add(floor), slack, s))
        };
        let (_, slack, s) = (range.0..range.1).filter_map(narrow).min()?;
        let limit = state.floor(s)? + slack;
        let near = |i: &u32| state.level(*i) <= limit;
        let members = self.state.instance.members[s].iter().copied().filter(near);
        let mut i = members.min_by_key(|&i| (!self.state.is_open(i), by_rank(i)))?;
        // Go down to what has to be decided first. Levels fall with every step, and the lowest is open.
        loop {
            match self.state.fits_below(i) {
                Some(below) => i = below,
                None => return Some(i),
            }
        }
    }
}
