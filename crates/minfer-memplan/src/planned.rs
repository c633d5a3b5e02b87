//! The planned strategy: takes a valid problem and its lower bound, tries orders until one attains the bound or the node
//! budget is spent. Must not know how an order becomes offsets.

use std::cmp::Reverse;

use crate::greedy::{Budget, Fit, Greedy, rising_order};
use crate::sections::{MaxTree, Sections};
use crate::{LowerBound, Placement, Problem, naive, pool};

/// The lowest offsets found, by index. Never higher than the naive or the pool strategy's.
pub(crate) fn offsets(problem: &Problem, bound: &LowerBound, node_budget: u64) -> Vec<u64> {
    let mut best = Placement::new(problem, naive::offsets(problem));
    if let Ok(pooled) = pool::offsets(problem) {
        best.keep_lower(Placement::new(problem, pooled.offsets));
    }
    let mut search = Search { problem, bound, greedy: Greedy::new(problem), best, budget: Budget(node_budget) };
    search.portfolio();
    search.improve();
    search.best.offsets
}

impl Placement {
    fn keep_lower(&mut self, other: Placement) {
        if other.height < self.height {
            *self = other;
        }
    }
}

struct Search<'a> {
    problem: &'a Problem,
    bound: &'a LowerBound,
    greedy: Greedy<'a>,
    best: Placement,
    budget: Budget,
}

impl Search<'_> {
    fn is_done(&self) -> bool {
        self.best.height <= self.bound.bytes || self.budget.is_spent()
    }

    /// Places in this order, keeps the result if it is lower than the best.
    fn attempt(&mut self, order: &[usize], fit: Fit) {
        let placed = self.greedy.place(order, fit, self.best.height.saturating_sub(1), &mut self.budget);
        if let Ok(offsets) = placed {
            self.best = Placement::new(self.problem, offsets.to_vec());
        }
    }

    fn portfolio(&mut self) {
        let keys = keys(&self.greedy, self.bound);
        for fit in [Fit::Best, Fit::First] {
            for key in &keys {
                if self.is_done() {
                    return;
                }
                let order = by_key(&self.greedy.free, key);
                self.attempt(&order, fit);
            }
        }
        if self.problem.buffers.iter().any(|b| b.offset.is_some()) {
            return;
        }
        for key in &keys {
            if self.is_done() {
                return;
            }
            self.budget.spend(32 * self.greedy.free.len());
            let order = rising_order(&self.greedy, key);
            self.attempt(&order, Fit::First);
        }
    }

    /// Squeaky wheel: aim one byte below the best; the buffer that sticks out moves forward in the order; repeat.
    fn improve(&mut self) {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut order = self.greedy.free.clone();
        order.sort_by_key(|&i| (self.best.offsets[i], i));
        while !self.is_done() {
            match self.greedy.place(&order, Fit::First, self.best.height - 1, &mut self.budget) {
                Ok(offsets) => self.best = Placement::new(self.problem, offsets.to_vec()),
                Err(position) => {
                    let to = random.below(position + 1);
                    order[to..=position].rotate_right(1);
                }
            }
        }
    }
}

/// The free buffers by descending key, ties by index.
fn by_key(free: &[usize], key: &[u128]) -> Vec<usize> {
    let mut order = free.to_vec();
    order.sort_by_key(|&i| Reverse(key[i]));
    order
}

/// The keys of the portfolio; each gives every buffer a number, highest first.
fn keys(greedy: &Greedy<'_>, bound: &LowerBound) -> Vec<Vec<u128>> {
    let buffers = greedy.buffers;
    let sections = Sections::new(buffers.iter().filter(|b| b.size > 0));
    // The most bytes live at any step of a buffer's lifetime.
    let mut live = vec![0u64; sections.len() + 1];
    for b in buffers.iter().filter(|b| b.size > 0) {
        let (from, to) = sections.of(b);
        live[from] = live[from].wrapping_add(b.size);
        live[to] = live[to].wrapping_sub(b.size);
    }
    let mut loads = MaxTree::new(sections.len());
    let mut now = 0u64;
    for (s, &change) in live[..sections.len()].iter().enumerate() {
        now = now.wrapping_add(change);
        loads.raise((s, s + 1), now);
    }
    let load = |i: usize| {
        if buffers[i].size > 0 { loads.max(sections.of(&buffers[i])) } else { 0 }
    };
    let all = |f: &dyn Fn(usize) -> (u64, u64)| -> Vec<u128> {
        let pair = |i| {
            let (major, minor) = f(i);
            u128::from(major) << 64 | u128::from(minor)
        };
        (0..buffers.len()).map(pair).collect()
    };
    let size = |i: usize| buffers[i].size;
    let duration = |i: usize| buffers[i].duration();
    let distance = |i: usize| match &buffers[i] {
        b if bound.step < b.lower => b.lower - bound.step,
        b if bound.step >= b.upper => bound.step - b.upper + 1,
        _ => 0,
    };
    let area: Vec<u128> = buffers.iter().map(|b| u128::from(b.size) * u128::from(b.duration())).collect();
    vec![
        all(&|i| (size(i), duration(i))),
        all(&|i| (duration(i), size(i))),
        area.clone(),
        all(&|i| (load(i), size(i))), // by breadth: the fullest step first, its largest buffer first
        all(&|i| (load(i), duration(i))),
        all(&|i| (!distance(i), size(i))), // outwards in time from the fullest step
        all(&|i| (!distance(i), duration(i))),
        all(&|i| (!buffers[i].lower, size(i))), // in order of time
        all(&|i| (buffers[i].upper, size(i))),  // against it
        all(&|i| (greedy.degree[i] as u64, size(i))),
        (0..buffers.len()).map(|i| u128::from(size(i)) * (greedy.degree[i] as u128 + 1)).collect(),
    ]
}

/// A fixed sequence of numbers (xorshift64*, Vigna 2016): variety without chance.
struct Random(u64);

impl Random {
    /// A number in `[0, end)`.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        ((high * end as u64) >> 32) as usize
    }
}
