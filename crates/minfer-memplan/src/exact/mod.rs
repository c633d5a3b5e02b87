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
use instance::{Instance, crowded_spans, unit};

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
/// So are more of the sections that buffers live in, summed over the buffers: without idle periods no component has more.
const MAX_SECTIONS: usize = MAX_ITEMS * MAX_ITEMS;

/// The buffers with bytes, divided into those whose lifetimes hang together, by first step.
fn parts(problem: &Problem) -> Vec<Vec<usize>> {
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
    parts
}

/// The parts of a problem that share no step: each an instance. Buffers without bytes are in none.
fn components(problem: &Problem) -> Vec<Instance> {
    parts(problem).iter().map(|part| Instance::new(&problem.buffers, part)).collect()
}

/// Whether every component is small enough to be searched, and the height leaves room to calculate.
pub(crate) fn is_searchable(problem: &Problem, height: u64) -> bool {
    let buffers = &problem.buffers;
    let n_sections = |part: &[usize]| -> usize {
        crowded_spans(part.iter().map(|&i| &buffers[i])).iter().flatten().map(|span| span.len()).sum()
    };
    let fits = |part: &Vec<usize>| part.len() <= MAX_ITEMS && n_sections(part) <= MAX_SECTIONS;
    height / unit(buffers.iter().filter(|b| b.size > 0)) <= u64::MAX / 8 && parts(problem).iter().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Buffer;

    #[test]
    fn neighbours_are_those_that_meet() {
        let mut x = 1u64;
        let mut below = |end: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % end
        };
        for _ in 0..200 {
            let mut buffer = |_| {
                let lower = below(20);
                let mut b = Buffer::new(lower, lower + 1 + below(20), 1);
                let mut at = lower;
                while at + 1 < b.upper && below(2) == 0 {
                    let start = at + below(3).min(b.upper - at - 2);
                    at = start + 1;
                    b = b.idle_in(start..at);
                }
                b
            };
            let problem = Problem::new((0..12).map(&mut buffer).collect());
            for instance in components(&problem) {
                for (k, met) in instance.neighbours.iter().enumerate() {
                    let of = |k: usize| &problem.buffers[instance.buffers[k]];
                    let meets = |&j: &u32| j as usize != k && of(k).meets(of(j as usize));
                    assert_eq!(*met, (0..instance.items.len() as u32).filter(meets).collect::<Vec<_>>());
                }
            }
        }
    }

    /// Tables grow with the sections, and those with the idle periods.
    #[test]
    fn too_many_idle_periods_are_not_searched() {
        let comb = |n_idle: u64| {
            let buffer =
                |k: u64| (0..n_idle).fold(Buffer::new(0, 8192, 1), |b, i| b.idle_in(4 * i + k % 4..4 * i + k % 4 + 1));
            Problem::new((0..4096).map(buffer).collect())
        };
        assert!(is_searchable(&comb(10), 4096));
        assert!(!is_searchable(&comb(2000), 4096));
        assert!(!is_searchable(&Problem::new(vec![Buffer::new(0, 1, 1); 4097]), 4097));
    }
}
