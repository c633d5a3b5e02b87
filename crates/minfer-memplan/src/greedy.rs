//! Greedy placement: takes an order of buffers, places one after the other into a gap between those already placed that
//! live at the same time. Must not know where orders come from.

use crate::fixed::align_up;
use crate::{Buffer, Problem};

/// Which gap a buffer goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The lowest gap it fits in.
    First,
    /// The gap with fewest bytes to spare, the lowest of those; above everything only if there is no gap.
    Best,
}

/// Work left, in nodes. Counting instead of timing keeps answers equal on all machines.
pub(crate) struct Budget(pub(crate) u64);

impl Budget {
    pub(crate) fn spend(&mut self, nodes: usize) {
        self.0 = self.0.saturating_sub(nodes as u64);
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

/// A lifetime in ranks: how many buffers begin before it begins, and before it ends. Half open; two of these meet
/// exactly if the lifetimes do, idle or not. Small, so that a scan over many stays within the cache.
type Span = [i32; 2];

/// The buffers placed so far, ascending by offset.
#[derive(Default)]
struct Blocks {
    begins: Vec<i32>,
    ends: Vec<i32>,
    buffers: Vec<u32>,
}

impl Blocks {
    fn len(&self) -> usize {
        self.buffers.len()
    }

    fn clear(&mut self) {
        self.begins.clear();
        self.ends.clear();
        self.buffers.clear();
    }

    fn insert(&mut self, at: usize, [begin, end]: Span, buffer: usize) {
        self.begins.insert(at, begin);
        self.ends.insert(at, end);
        self.buffers.insert(at, buffer as u32);
    }

    fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let mut kept = 0;
        for k in 0..self.len() {
            if keep(self.buffers[k] as usize) {
                self.begins[kept] = self.begins[k];
                self.ends[kept] = self.ends[k];
                self.buffers[kept] = self.buffers[k];
                kept += 1;
            }
        }
        self.begins.truncate(kept);
        self.ends.truncate(kept);
        self.buffers.truncate(kept);
    }

    /// Hands the buffers that meet `span` to `pass` until it returns true; gives the number looked at. The comparisons
    /// have no branch: which of them hold is as good as random, and a mispredicted branch costs more than ten of them.
    fn scan(&self, [begin, end]: Span, mut pass: impl FnMut(usize) -> bool) -> usize {
        const LANES: usize = 32;
        let mut seen = 0;
        let spans = self.begins.chunks(LANES).zip(self.ends.chunks(LANES));
        for ((begins, ends), buffers) in spans.zip(self.buffers.chunks(LANES)) {
            let mut meets = 0u32; // bit k: the k-th meets the span
            for (k, (&b, &e)) in begins.iter().zip(ends).enumerate() {
                meets |= u32::from((b < end) & (begin < e)) << k;
            }
            seen += buffers.len();
            while meets != 0 {
                if pass(buffers[meets.trailing_zeros() as usize] as usize) {
                    return seen;
                }
                meets &= meets - 1;
            }
        }
        seen
    }
}

/// The problem made ready for many placements of its free buffers with bytes.
pub(crate) struct Greedy<'a> {
    pub(crate) buffers: &'a [Buffer],
    /// The free buffers with bytes, ascending: what an order is a permutation of.
    pub(crate) free: Vec<usize>,
    fixed: Vec<usize>,
    by_lower: Vec<usize>, // fixed and free, by first step
    lowers: Vec<u64>,     // their first steps
    rank: Vec<usize>,     // buffer -> position in by_lower
    spans: Vec<Span>,
    sizes: Vec<u64>,
    pub(crate) degree: Vec<usize>, // buffer -> how many other lifetimes meet its own
    has_idle: bool,
    // State of the placement in progress.
    offsets: Vec<u64>,
    ends: MaxEnds,
    blocks: Blocks,
    met: Vec<usize>,
}

impl<'a> Greedy<'a> {
    pub(crate) fn new(problem: &'a Problem) -> Self {
        let buffers = &problem.buffers[..];
        let mut by_lower: Vec<usize> = (0..buffers.len()).filter(|&i| buffers[i].size > 0).collect();
        let mut uppers: Vec<u64> = by_lower.iter().map(|&i| buffers[i].upper).collect();
        uppers.sort_unstable();
        let (fixed, free) = by_lower.iter().partition(|&&i| buffers[i].offset.is_some());
        by_lower.sort_by_key(|&i| buffers[i].lower);
        let lowers: Vec<u64> = by_lower.iter().map(|&i| buffers[i].lower).collect();
        let (mut rank, mut degree) = (vec![0; buffers.len()], vec![0; buffers.len()]);
        let mut spans = vec![[0; 2]; buffers.len()];
        for (r, &i) in by_lower.iter().enumerate() {
            rank[i] = r;
            let begun = lowers.partition_point(|&l| l < buffers[i].upper);
            let ended = uppers.partition_point(|&u| u <= buffers[i].lower);
            degree[i] = begun - ended - 1;
            let before = lowers.partition_point(|&l| l < buffers[i].lower);
            spans[i] = [before, begun].map(|n| i32::try_from(n).expect("buffers are counted in 31 bits"));
        }
        let ends = MaxEnds::new(by_lower.len());
        let offsets = buffers.iter().map(|b| b.offset.unwrap_or(0)).collect();
        Self {
            buffers,
            free,
            fixed,
            by_lower,
            lowers,
            rank,
            spans,
            sizes: buffers.iter().map(|b| b.size).collect(),
            degree,
            has_idle: buffers.iter().any(|b| !b.idle.is_empty()),
            offsets,
            ends,
            blocks: Blocks::default(),
            met: Vec::new(),
        }
    }

    /// Places the free buffers in this order. `Err(position)` as soon as the buffer at that position would end above
    /// `limit`. The offsets are those of all buffers, by index.
    pub(crate) fn place(
        &mut self,
        order: &[usize],
        fit: Fit,
        limit: u64,
        budget: &mut Budget,
    ) -> Result<&[u64], usize> {
        self.blocks.clear();
        self.ends.clear();
        for k in 0..self.fixed.len() {
            self.put(self.fixed[k], self.buffers[self.fixed[k]].offset.unwrap_or(0));
        }
        self.place_from(0, order, fit, limit, budget)
    }

    /// The same where those before position `from` are placed already.
    pub(crate) fn place_from(
        &mut self,
        from: usize,
        order: &[usize],
        fit: Fit,
        limit: u64,
        budget: &mut Budget,
    ) -> Result<&[u64], usize> {
        for (position, &i) in order.iter().enumerate().skip(from) {
            // Lifetimes that meet may still share no step, if one is idle at those of the other.
            let (buffers, b) = (self.buffers, &self.buffers[i]);
            let offset = match self.has_idle {
                false => self.find(i, fit, |_| true, budget),
                true => self.find(i, fit, |j| b.meets(&buffers[j]), budget),
            };
            if offset + self.buffers[i].size > limit {
                return Err(position);
            }
            self.put(i, offset);
        }
        Ok(&self.offsets)
    }

    /// Takes placed buffers out again.
    pub(crate) fn withdraw(&mut self, placed: &[usize]) {
        for &i in placed {
            self.ends.reset(self.rank[i]);
        }
        let ends = &self.ends;
        let rank = &self.rank;
        self.blocks.retain(|i| ends.is_set(rank[i]));
    }

    fn put(&mut self, i: usize, offset: u64) {
        self.offsets[i] = offset;
        self.ends.set(self.rank[i], self.buffers[i].upper);
        let at = self.blocks.buffers.partition_point(|&j| self.offsets[j as usize] < offset);
        self.blocks.insert(at, self.spans[i], i);
    }

    /// The offset for the buffer, beside those neighbours in lifetime that it `meets`.
    fn find(&mut self, i: usize, fit: Fit, meets: impl Fn(usize) -> bool, budget: &mut Budget) -> u64 {
        let b = &self.buffers[i];
        let mut gaps = Gaps::new(b, fit);
        let (offsets, sizes) = (&self.offsets, &self.sizes);
        let mut pass = |j: usize| meets(j) && gaps.pass(offsets[j], offsets[j] + sizes[j]);
        // Two ways to meet the neighbours by address: filter all placed blocks, or collect and sort the neighbours.
        let n_placed = self.blocks.len();
        let expected = self.degree[i] * n_placed / self.by_lower.len();
        if 64 * expected >= n_placed || n_placed < 256 {
            let seen = self.blocks.scan(self.spans[i], pass);
            budget.spend(seen + 1);
        } else {
            let begun = self.lowers.partition_point(|&l| l < b.upper);
            self.met.clear();
            self.ends.above(b.lower, begun, &mut self.met);
            budget.spend(8 * self.met.len() + 16);
            for m in &mut self.met {
                *m = self.by_lower[*m];
            }
            self.met.sort_unstable_by_key(|&j| offsets[j]);
            self.met.iter().any(|&j| pass(j));
        }
        gaps.choice()
    }
}

/// Walks over neighbours by ascending offset and remembers the gap to take.
struct Gaps {
    size: u64,
    alignment: u64,
    fit: Fit,
    cursor: u64,              // aligned; everything below is taken or too small
    best: Option<(u64, u64)>, // bytes to spare, offset
}

impl Gaps {
    fn new(b: &Buffer, fit: Fit) -> Self {
        Self { size: b.size, alignment: b.alignment, fit, cursor: 0, best: None }
    }

    /// Passes a neighbour; true once no later gap can be better.
    #[inline]
    fn pass(&mut self, offset: u64, top: u64) -> bool {
        if offset >= self.cursor + self.size {
            let spare = offset - self.cursor - self.size;
            if self.best.is_none_or(|(least, _)| spare < least) {
                self.best = Some((spare, self.cursor));
            }
            if spare == 0 || self.fit == Fit::First {
                return true;
            }
        }
        if top > self.cursor {
            self.cursor = align_up(top, self.alignment).expect("a valid problem stacks within 64 bits");
        }
        false
    }

    fn choice(&self) -> u64 {
        self.best.map_or(self.cursor, |(_, offset)| offset)
    }
}

/// The last steps of the placed buffers, over positions by first step: finds those that end after a step.
struct MaxEnds {
    len: usize,
    max: Vec<u64>,
}

impl MaxEnds {
    fn new(len: usize) -> Self {
        let len = len.next_power_of_two();
        Self { len, max: vec![0; 2 * len] }
    }

    fn clear(&mut self) {
        self.max.fill(0);
    }

    fn set(&mut self, position: usize, upper: u64) {
        let mut node = position + self.len;
        while node > 0 && self.max[node] < upper {
            self.max[node] = upper;
            node >>= 1;
        }
    }

    fn reset(&mut self, position: usize) {
        let mut node = position + self.len;
        self.max[node] = 0;
        while node > 1 {
            node >>= 1;
            self.max[node] = self.max[2 * node].max(self.max[2 * node + 1]);
        }
    }

    /// Whether the position holds a step; no lifetime with bytes ends at 0.
    fn is_set(&self, position: usize) -> bool {
        self.max[position + self.len] > 0
    }

    /// Collects the positions in `[0, end)` whose value is above `lower`.
    fn above(&self, lower: u64, end: usize, into: &mut Vec<usize>) {
        self.descend(1, 0, self.len, lower, end, into);
    }

    fn descend(&self, node: usize, from: usize, len: usize, lower: u64, end: usize, into: &mut Vec<usize>) {
        if from >= end || self.max[node] <= lower {
            return;
        }
        if len == 1 {
            into.push(from);
            return;
        }
        let half = len / 2;
        self.descend(2 * node, from, half, lower, end, into);
        self.descend(2 * node + 1, from + half, half, lower, end, into);
    }
}
