//! The planned strategy: takes a valid problem and a height to aim for, tries orders until one attains it, the node
//! budget is spent or it is stopped. Must not know how an order becomes offsets.

use std::cmp::Reverse;
use std::ops::Range;

use crate::budget::{Budget, Stop};
use crate::greedy::{Fit, Greedy};
use crate::rising::Rising;
use crate::sections::{MaxTree, Sections};
use crate::{LowerBound, Placement, Problem, naive, pool};

/// The lowest offsets found, by index. Never higher than the naive or the pool strategy's.
pub(crate) fn offsets(problem: &Problem, bound: &LowerBound, aim: u64, node_budget: u64, stop: Stop<'_>) -> Vec<u64> {
    let mut best = Placement::new(problem, naive::offsets(problem));
    if let Ok(pooled) = pool::offsets(problem, stop) {
        best.keep_lower(Placement::new(problem, pooled.offsets));
    }
    if best.height <= aim {
        return best.offsets;
    }
    let greedy = Greedy::new(problem);
    let has_fixed = problem.buffers.iter().any(|b| b.offset.is_some());
    let rising = (!has_fixed).then(|| Rising::new(&problem.buffers, &greedy.free));
    let keys = keys(&greedy, bound);
    let mut search = Search { problem, bound, aim, greedy, rising, best, budget: Budget::new(node_budget, stop) };
    search.portfolio(&keys);
    search.adjust_handicaps(&keys);
    search.move_forward();
    search.best.offsets
}

impl Placement {
    fn keep_lower(&mut self, other: Placement) {
        if other.height < self.height {
            *self = other;
        }
    }
}

struct Search<'a, 's> {
    problem: &'a Problem,
    bound: &'a LowerBound,
    aim: u64,
    greedy: Greedy<'a>,
    rising: Option<Rising<'a>>, // only without fixed buffers
    best: Placement,
    budget: Budget<'s>,
}

impl Search<'_, '_> {
    fn is_done(&self) -> bool {
        self.best.height <= self.aim || self.budget.is_spent()
    }

    /// Every key as a plain order with either fit and as an order on rising ground.
    fn portfolio(&mut self, keys: &[Vec<u128>]) {
        let level = vec![0; self.problem.buffers.len()];
        for fit in [Fit::Best, Fit::First] {
            for key in keys {
                let mut order = self.greedy.free.clone();
                order.sort_by_key(|&i| Reverse(key[i]));
                self.attempt(&order, fit);
                if self.is_done() {
                    return;
                }
                if let (Some(rising), Fit::Best) = (&self.rising, fit)
                    && let Some(order) = rising.order(key, &level, &mut self.budget)
                {
                    self.attempt(&order, Fit::First);
                }
                if self.is_done() {
                    return;
                }
            }
        }
    }

    /// Places in this order and keeps the result if it is lower than the best.
    fn attempt(&mut self, order: &[usize], fit: Fit) {
        let limit = self.best.height.saturating_sub(1);
        if let Ok(offsets) = self.greedy.place(order, fit, limit, &mut self.budget) {
            self.best = Placement::new(self.problem, offsets.to_vec());
        }
    }

    /// Handicaps on rising ground, until half of the budget is spent: buffers that end above the best height lose a
    /// little of theirs and so come earlier next time; the others slowly get theirs back.
    fn adjust_handicaps(&mut self, keys: &[Vec<u128>]) {
        let Some(rising) = &self.rising else { return };
        let mut random = Random::new();
        let full = self.bound.bytes.min(u64::MAX / 4);
        let step = usize::try_from(full / 256 + 1).unwrap_or(usize::MAX);
        let mut handicaps = vec![vec![full; self.problem.buffers.len()]; keys.len()];
        let reserve = self.budget.left() / 2;
        for round in 0.. {
            if self.is_done() || self.budget.left() < reserve {
                return;
            }
            let handicap = &mut handicaps[round % keys.len()];
            let Some(order) = rising.order(&keys[round % keys.len()], handicap, &mut self.budget) else {
                return;
            };
            let Ok(offsets) = self.greedy.place(&order, Fit::First, u64::MAX, &mut self.budget) else {
                return;
            };
            let placement = Placement::new(self.problem, offsets.to_vec());
            for &i in &order {
                let top = placement.offsets[i] + self.problem.buffers[i].size;
                if top >= self.best.height {
                    handicap[i] = handicap[i].saturating_sub(random.below(step) as u64);
                } else {
                    handicap[i] += (full - handicap[i]) / 64;
                }
            }
            self.best.keep_lower(placement);
        }
    }

    /// Squeaky wheel, until the budget is spent: aim one byte below the best; the buffer that sticks out moves to just
    /// before one of those in its way, preferably a late one, and placement resumes from there.
    fn move_forward(&mut self) {
        if self.greedy.free.is_empty() {
            return;
        }
        let buffers = &self.problem.buffers;
        let mut random = Random::new();
        let mut order = self.greedy.free.clone();
        order.sort_by_key(|&i| (self.best.offsets[i], i));
        let mut resume = None; // the position up to which everything is placed
        while !self.is_done() {
            let limit = self.best.height - 1;
            let placed = match resume {
                None => self.greedy.place(&order, Fit::First, limit, &mut self.budget),
                Some(from) => self.greedy.place_from(from, &order, Fit::First, limit, &mut self.budget),
            };
            match placed {
                Ok(offsets) => {
                    self.best = Placement::new(self.problem, offsets.to_vec());
                    resume = None;
                }
                // Nothing free is in the way of the first: only fixed buffers are, and no order helps against those.
                Err(0) => return,
                Err(position) => {
                    let sticks_out = &buffers[order[position]];
                    let mut in_the_way = || {
                        let mut draw = || random.below(position);
                        let found = (0..64).map(|_| draw()).find(|&p| buffers[order[p]].meets(sticks_out));
                        found.unwrap_or_else(draw)
                    };
                    let to = in_the_way().max(in_the_way());
                    self.greedy.withdraw(&order[to..position]);
                    self.budget.spend(order.len());
                    order[to..=position].rotate_right(1);
                    resume = Some(to);
                }
            }
        }
    }
}

/// The keys of the portfolio; each gives every buffer a number, highest first.
fn keys(greedy: &Greedy<'_>, bound: &LowerBound) -> Vec<Vec<u128>> {
    let buffers = greedy.buffers;
    let sections = Sections::new(buffers.iter().filter(|b| b.size > 0));
    // The most bytes live at any step of a buffer's lifetime.
    let mut live = vec![0u64; sections.len() + 1];
    for b in buffers.iter().filter(|b| b.size > 0) {
        for span in sections.of(b) {
            live[span.start] = live[span.start].wrapping_add(b.size);
            live[span.end] = live[span.end].wrapping_sub(b.size);
        }
    }
    let mut loads = MaxTree::new(sections.len());
    let mut now = 0u64;
    for (s, &change) in live[..sections.len()].iter().enumerate() {
        now = now.wrapping_add(change);
        loads.raise(&(s..s + 1), now);
    }
    let load = |i: usize| match &buffers[i] {
        b if b.size > 0 => sections.of(b).map(|span| loads.max(&span)).max().unwrap_or(0),
        _ => 0,
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
    let distance = |i: usize| {
        let from = |s: Range<u64>| s.start.saturating_sub(bound.step).max((bound.step + 1).saturating_sub(s.end));
        buffers[i].spans().map(from).min().unwrap_or(0)
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
    fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    /// A number in `[0, end)`.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        ((u128::from(high) * end as u128) >> 32) as usize
    }
}
