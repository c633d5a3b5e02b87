//! The pool strategy: takes a valid problem, recycles slots of equal size class while walking through time once.
//! Must not look ahead: this is what an online allocator could do.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::budget::{Budget, Stop};
use crate::fixed::Stack;
use crate::{PlaceError, Problem};

const FLOOR: u64 = 1 << 10;
const GRAIN: u64 = 16 << 10;

/// The bytes of the slot that a buffer of `size` bytes gets: at least 1 KiB, powers of two up to 16 KiB, then multiples
/// of 16 KiB. `None` beyond 64 bits.
pub fn class_bytes(size: u64) -> Option<u64> {
    if size <= GRAIN { Some(size.next_power_of_two().max(FLOOR)) } else { size.checked_next_multiple_of(GRAIN) }
}

pub(crate) struct Pooled {
    pub(crate) offsets: Vec<u64>,
    pub(crate) n_slots: usize,
}

/// Walks the free buffers in order of `lower`, ties by index. Fixed buffers keep their bytes to themselves. Where alignments
/// differ, many free slots may have to be looked at; once `stop` is true none is, and all that follow get slots of their own.
pub(crate) fn offsets(problem: &Problem, stop: Stop<'_>) -> Result<Pooled, PlaceError> {
    let buffers = &problem.buffers;
    let mut offsets: Vec<u64> = buffers.iter().map(|b| b.offset.unwrap_or(0)).collect();
    let mut order: Vec<usize> =
        (0..buffers.len()).filter(|&i| buffers[i].offset.is_none() && buffers[i].size > 0).collect();
    order.sort_by_key(|&i| buffers[i].lower);

    let mut budget = Budget::new(u64::MAX, stop);
    let mut stack = Stack::new(problem);
    let mut n_slots = 0;
    let mut busy = BinaryHeap::new(); // Reverse((upper, class, offset))
    let mut free: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new(); // class -> offsets of free slots
    for i in order {
        let b = &buffers[i];
        while let Some(&Reverse((upper, class, offset))) = busy.peek()
            && upper <= b.lower
        {
            busy.pop();
            free.entry(class).or_default().insert(offset);
        }
        let overflow = PlaceError::SlotOverflow { buffer: i };
        let class = class_bytes(b.size).ok_or(overflow.clone())?;
        let equal = free.entry(class).or_default();
        let n_seen = if budget.is_stopped() { 0 } else { equal.len() };
        let mut seen = equal.iter().copied().take(n_seen);
        let recycled = seen.find(|o| o % b.alignment == 0);
        budget.pass(n_seen - seen.len());
        offsets[i] = match recycled {
            Some(offset) => {
                equal.remove(&offset);
                offset
            }
            None => {
                n_slots += 1;
                stack.take(class, b.alignment).ok_or(overflow)?
            }
        };
        busy.push(Reverse((b.upper, class, offsets[i])));
    }
    Ok(Pooled { offsets, n_slots })
}
