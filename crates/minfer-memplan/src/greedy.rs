//! Greedy placement: takes an order of buffers, places one after the other into free addresses between those already
//! placed that live at the same time. Must not know where orders come from.

use crate::budget::Budget;
use crate::fixed::align_up;
use crate::lives::Lives;
use crate::{Buffer, Problem};

/// Which of the free ranges of addresses a buffer goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The lowest it fits in.
    First,
    /// The one with fewest bytes to spare, the lowest of those; above everything only if it fits in none.
    Best,
}

/// A lifetime in ranks: how many buffers begin before it begins, and before it ends. Half open; two of these meet
/// exactly if the lifetimes do, idle or not. Small, so that a scan over many stays within the cache.
type Span = [i32; 2];

/// The buffers placed so far, ascending by offset.
#[derive(Default)]
struct Blocks {
    begins: Vec<i32>,
    ends: Vec<i32>,
    addresses: Vec<Addresses>,
    buffers: Vec<u32>,
}

/// The bytes of a placed buffer: its offset and its top, half open.
type Addresses = (u64, u64);

impl Blocks {
    fn len(&self) -> usize {
        self.buffers.len()
    }

    fn clear(&mut self) {
        self.begins.clear();
        self.ends.clear();
        self.addresses.clear();
        self.buffers.clear();
    }

    fn insert(&mut self, [begin, end]: Span, addresses: Addresses, buffer: usize) {
        let at = self.addresses.partition_point(|&(offset, _)| offset < addresses.0);
        self.begins.insert(at, begin);
        self.ends.insert(at, end);
        self.addresses.insert(at, addresses);
        self.buffers.insert(at, buffer as u32);
    }

    fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let mut kept = 0;
        for k in 0..self.len() {
            if keep(self.buffers[k] as usize) {
                self.begins[kept] = self.begins[k];
                self.ends[kept] = self.ends[k];
                self.addresses[kept] = self.addresses[k];
                self.buffers[kept] = self.buffers[k];
                kept += 1;
            }
        }
        self.begins.truncate(kept);
        self.ends.truncate(kept);
        self.addresses.truncate(kept);
        self.buffers.truncate(kept);
    }

    /// Hands the buffers that meet `span` to `pass` until it returns true; gives the number looked at. The comparisons
    /// have no branch: which of them hold is as good as random, and a mispredicted branch costs more than ten of them.
    fn scan(&self, [begin, end]: Span, mut pass: impl FnMut(usize, Addresses) -> bool) -> usize {
        const LANES: usize = 32;
        let mut seen = 0;
        let spans = self.begins.chunks(LANES).zip(self.ends.chunks(LANES));
        let blocks = self.addresses.chunks(LANES).zip(self.buffers.chunks(LANES));
        for ((begins, ends), (addresses, buffers)) in spans.zip(blocks) {
            let mut meets = 0u32; // bit k: the k-th meets the span
            for (k, (&b, &e)) in begins.iter().zip(ends).enumerate() {
                meets |= u32::from((b < end) & (begin < e)) << k;
            }
            seen += buffers.len();
            while meets != 0 {
                let k = meets.trailing_zeros() as usize;
                if pass(buffers[k] as usize, addresses[k]) {
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
    pub(crate) degree: Vec<usize>, // buffer -> how many other lifetimes meet its own
    lives: Option<Lives>,          // only where some are idle
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
            degree,
            lives: buffers.iter().any(|b| !b.idle.is_empty()).then(|| Lives::new(buffers)),
            offsets,
            ends,
            blocks: Blocks::default(),
            met: Vec::new(),
        }
    }

    /// Places the free buffers in this order. `Err(position)` as soon as the buffer at that position would end above
    /// `limit`, or the work is stopped there. The offsets are those of all buffers, by index.
    pub(crate) fn place(
        &mut self,
        order: &[usize],
        fit: Fit,
        limit: u64,
        budget: &mut Budget<'_>,
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
        budget: &mut Budget<'_>,
    ) -> Result<&[u64], usize> {
        for (position, &i) in order.iter().enumerate().skip(from) {
            let offset = self.find(i, fit, budget);
            if offset + self.buffers[i].size > limit || budget.is_stopped() {
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
        self.blocks.insert(self.spans[i], (offset, offset + self.buffers[i].size), i);
    }

    /// The offset for the buffer, beside those placed that it meets.
    fn find(&mut self, i: usize, fit: Fit, budget: &mut Budget<'_>) -> u64 {
        let mut free = FreeRanges::new(&self.buffers[i], fit);
        let mut met = std::mem::take(&mut self.met);
        match &self.lives {
            None => self.neighbours(i, &mut met, budget, |_, taken| free.pass(taken)),
            // Lifetimes that meet may still share no step, if one is idle at those of the other.
            Some(lives) => {
                let mut compared = 0;
                self.neighbours(i, &mut met, budget, |j, taken| {
                    free.is_in_the_way(taken) && lives.meet(i, j, &mut compared) && free.pass(taken)
                });
                budget.pass(compared);
            }
        }
        self.met = met;
        budget.pass(self.blocks.len() / 16); // those above will make room
        free.choice()
    }

    /// Hands those placed whose lifetimes meet that of `i` to `pass`, by ascending offset, until it returns true. There are
    /// two ways: to filter all blocks, or to collect the neighbours, into `met`, and sort them.
    fn neighbours(
        &self,
        i: usize,
        met: &mut Vec<usize>,
        budget: &mut Budget<'_>,
        mut pass: impl FnMut(usize, Addresses) -> bool,
    ) {
        let n_placed = self.blocks.len();
        let expected = self.degree[i] * n_placed / self.by_lower.len();
        if 64 * expected >= n_placed || n_placed < 256 {
            let seen = self.blocks.scan(self.spans[i], pass);
            budget.spend(seen + 1);
            return;
        }
        let b = &self.buffers[i];
        let begun = self.lowers.partition_point(|&l| l < b.upper);
        met.clear();
        self.ends.above(b.lower, begun, met);
        budget.spend(8 * met.len() + 16);
        for m in &mut *met {
            *m = self.by_lower[*m];
        }
        met.sort_unstable_by_key(|&j| self.offsets[j]);
        met.iter().any(|&j| pass(j, (self.offsets[j], self.offsets[j] + self.buffers[j].size)));
    }
}

/// Walks over neighbours by ascending offset and remembers the free range of addresses to take.
struct FreeRanges {
    size: u64,
    alignment: u64,
    fit: Fit,
    cursor: u64,              // aligned; everything below is taken or too small
    best: Option<(u64, u64)>, // bytes to spare, offset
}

impl FreeRanges {
    fn new(b: &Buffer, fit: Fit) -> Self {
        Self { size: b.size, alignment: b.alignment, fit, cursor: 0, best: None }
    }

    /// Whether a neighbour at these bytes matters: it may still lie below the cursor.
    #[inline]
    fn is_in_the_way(&self, (_, top): Addresses) -> bool {
        top > self.cursor
    }

    /// Passes a neighbour at these bytes; true once no later range can be better.
    #[inline]
    fn pass(&mut self, (offset, top): Addresses) -> bool {
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
