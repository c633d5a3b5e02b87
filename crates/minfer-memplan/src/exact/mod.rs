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
use least::MAX_QUESTIONS;
use restarts::{question_bytes, run_bytes};

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
/// So are problems with more pairs than so many buffers can form, and with more sections that buffers live in, summed over
/// the buffers: idle periods make sections.
const MAX_PAIRS: usize = MAX_ITEMS * MAX_ITEMS;

/// Buffers with bytes whose lifetimes hang together.
struct Part {
    /// By first step.
    buffers: Vec<usize>,
    /// How often the lifetime of one meets that of another, counted from both sides.
    n_pairs: usize,
}

/// The buffers with bytes, divided into those whose lifetimes hang together, by first step.
fn parts(problem: &Problem) -> Vec<Part> {
    let buffers = &problem.buffers;
    let mut order: Vec<usize> = (0..buffers.len()).filter(|&i| buffers[i].size > 0).collect();
    order.sort_by_key(|&i| (buffers[i].lower, i));
    let mut parts: Vec<Part> = Vec::new();
    let mut end = 0;
    for i in order {
        match parts.last_mut() {
            Some(part) if buffers[i].lower < end => part.buffers.push(i),
            _ => parts.push(Part { buffers: vec![i], n_pairs: 0 }),
        }
        end = end.max(buffers[i].upper);
    }
    for part in &mut parts {
        let lowers: Vec<u64> = part.buffers.iter().map(|&i| buffers[i].lower).collect();
        let begun_with = |(k, &i): (usize, &usize)| lowers.partition_point(|&l| l < buffers[i].upper) - k - 1;
        part.n_pairs = 2 * part.buffers.iter().enumerate().map(begun_with).sum::<usize>();
    }
    parts
}

/// The parts of a problem that share no step: each an instance. Buffers without bytes are in none.
fn components(problem: &Problem) -> Vec<Instance> {
    parts(problem).iter().map(|part| Instance::new(&problem.buffers, &part.buffers, part.n_pairs)).collect()
}

/// How large the tables of all parts are.
#[derive(Default)]
struct Tables {
    n_buffers: usize,
    /// Ranges of crowded sections, over all buffers, and the sections in these.
    n_spans: usize,
    n_live: usize,
    n_pairs: usize,
    /// The most buffers and the most sections of one part.
    most_buffers: usize,
    most_sections: usize,
}

impl Tables {
    /// `None` if they are too large to be built.
    fn of(problem: &Problem) -> Option<Self> {
        let mut tables = Self::default();
        for part in parts(problem) {
            if part.buffers.len() > MAX_ITEMS || tables.n_pairs + part.n_pairs > MAX_PAIRS {
                return None;
            }
            tables.n_buffers += part.buffers.len();
            tables.n_pairs += part.n_pairs;
            tables.most_buffers = tables.most_buffers.max(part.buffers.len());
            for span in crowded_spans(part.buffers.iter().map(|&i| &problem.buffers[i])).iter().flatten() {
                tables.n_spans += 1;
                tables.n_live += span.len();
                tables.most_sections = tables.most_sections.max(span.end);
            }
        }
        (tables.n_live <= MAX_PAIRS).then_some(tables)
    }

    /// The most bytes that the parts take as instances, and on the way there.
    fn bytes(&self) -> usize {
        4 * (self.n_live + self.n_pairs) + 1024 * self.n_buffers + 128 * self.n_spans
    }
}

/// Whether the tables are small enough, and the height leaves room to calculate.
pub(crate) fn is_searchable(problem: &Problem, height: u64) -> bool {
    height / unit(problem.buffers.iter().filter(|b| b.size > 0)) <= u64::MAX / 8 && Tables::of(problem).is_some()
}

/// The most bytes that exact search takes for a valid problem, beside what placing it without takes, counted generously:
/// what a search may keep is limited. 0 for a problem too large to be searched, see [`Options`](crate::Options).
pub fn search_bytes(problem: &Problem, parallel: bool) -> u64 {
    let Some(tables) = Tables::of(problem) else { return 0 };
    let (n_items, n_sections) = (tables.most_buffers, tables.most_sections);
    let n_runs = if parallel { 2 } else { 1 };
    // A list that grows is there twice for a moment.
    let runs = 2 * n_runs * run_bytes(n_items, n_sections);
    (tables.bytes() + MAX_QUESTIONS * question_bytes(n_sections) + runs) as u64
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
                for k in 0..instance.items.len() {
                    let of = |k: usize| &problem.buffers[instance.buffers[k]];
                    let meets = |&j: &u32| j as usize != k && of(k).meets(of(j as usize));
                    let met = (0..instance.items.len() as u32).filter(meets).collect::<Vec<_>>();
                    assert_eq!(instance.neighbours[k], met);
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
