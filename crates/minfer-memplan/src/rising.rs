//! Orders by rising ground: takes the free buffers, gives an order in which each lies as low as possible on top of all
//! that came before. Must not know about free ranges below: ground that is covered is lost, greedy placement wins it back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::Buffer;
use crate::budget::Budget;
use crate::fixed::align_up;
use crate::sections::{MaxTree, Sections};

/// What a look at the ground costs, beside a look at a placed buffer.
const NODES_PER_LOOK: usize = 32;

/// The ground of a problem without fixed buffers.
pub(crate) struct Rising<'a> {
    buffers: &'a [Buffer],
    free: Vec<usize>,
    spans: Vec<Vec<Range<usize>>>, // the sections of each free buffer
    n_sections: usize,
}

impl<'a> Rising<'a> {
    pub(crate) fn new(buffers: &'a [Buffer], free: &[usize]) -> Self {
        let sections = Sections::new(free.iter().map(|&i| &buffers[i]));
        let spans = free.iter().map(|&i| sections.of(&buffers[i]).collect()).collect();
        Self { buffers, free: free.to_vec(), spans, n_sections: sections.len() }
    }

    /// Time after time takes the buffer whose offset on the ground plus `handicap` is lowest, ties by `key`, highest
    /// first, then by index. Both are indexed by buffer. `None` if the budget is spent on the way.
    pub(crate) fn order(&self, key: &[u128], handicap: &[u64], budget: &mut Budget<'_>) -> Option<Vec<usize>> {
        let mut ground = MaxTree::new(self.n_sections);
        let first = |(k, &i): (usize, &usize)| Reverse((handicap[i], Reverse(key[i]), k));
        let mut heap: BinaryHeap<_> = self.free.iter().enumerate().map(first).collect();
        let mut order = Vec::with_capacity(self.free.len());
        while let Some(Reverse((claimed, rank, k))) = heap.pop() {
            budget.spend(NODES_PER_LOOK);
            budget.pass(NODES_PER_LOOK * (self.spans[k].len() - 1));
            if budget.is_spent() {
                return None;
            }
            let i = self.free[k];
            let under = self.spans[k].iter().map(|span| ground.max(span)).max().unwrap_or(0);
            let offset = align_up(under, self.buffers[i].alignment).expect("a valid problem stacks within 64 bits");
            let now = offset.saturating_add(handicap[i]);
            // The ground only rises, so an entry that still holds when it comes up is the lowest.
            if now > claimed {
                heap.push(Reverse((now, rank, k)));
                continue;
            }
            self.spans[k].iter().for_each(|span| ground.raise(span, offset + self.buffers[i].size));
            order.push(i);
        }
        Some(order)
    }
}
