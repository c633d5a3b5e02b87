//! Exact search: takes a valid problem, decides whether it fits within a capacity; on top of that finds the least height
//! and, where nothing fits, the buffers that are to blame. Complete: only a spent budget leaves a question open.
//!
//! The rules of the search are explained in `state.rs`, its restarts in `restarts.rs`. Canonical placements, section
//! bounds, dominance and decomposition follow Moffitt, "MiniMalloc" (ASPLOS 2023); the two-way branching (at its rest,
//! or lifted by a neighbour still to come), the levels and the learnt orders are this crate's own.

mod blame;
mod instance;
mod least;
mod restarts;
mod search;
mod state;

pub(crate) use blame::blame;
pub(crate) use least::{Goal, Least, least};

use crate::Problem;
use instance::Instance;

/// Asked now and then; true ends the search. What it has found so far stands.
pub(crate) type Stop<'s> = &'s (dyn Fn() -> bool + Sync);

/// A search ended before it decided.
pub(crate) struct Halt;

/// Whether items fit within a capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// They do, at these offsets.
    Fits(Vec<u64>),
    /// They do not: every way was tried.
    Infeasible,
    /// The budget ended first.
    Unknown,
}

/// More buffers than this in one component are left to the greedy strategies: tables here grow with the pairs that meet.
const MAX_ITEMS: usize = 4096;

/// The parts of a problem that share no step: each an instance. Buffers without bytes are in none.
fn components(problem: &Problem) -> Vec<Instance> {
    let buffers = &problem.buffers;
    let mut order: Vec<usize> = (0..buffers.len()).filter(|&i| buffers[i].size > 0).collect();
    order.sort_by_key(|&i| (buffers[i].lower, i));
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut end = 0;
    for i in order {
        match parts.last_mut() {
            Some(part) if buffers[i].lower < end => part.push(i),
            _ => parts.push(vec![i]),
        }
        end = end.max(buffers[i].upper);
    }
    parts.iter().map(|part| Instance::new(buffers, part)).collect()
}

/// Whether every component is small enough to be searched, and the height leaves room to calculate.
pub(crate) fn is_searchable(problem: &Problem, height: u64) -> bool {
    if height > u64::MAX / 8 {
        return false;
    }
    let mut order: Vec<(u64, u64)> =
        problem.buffers.iter().filter(|b| b.size > 0).map(|b| (b.lower, b.upper)).collect();
    order.sort_unstable();
    let (mut end, mut n) = (0, 0);
    order.iter().all(|&(lower, upper)| {
        n = if lower < end { n + 1 } else { 1 };
        end = end.max(upper);
        n <= MAX_ITEMS
    })
}
