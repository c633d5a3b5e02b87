//! Stacking around fixed buffers: takes sizes one by one, gives ever higher offsets that meet no fixed buffer, whatever
//! its lifetime. Must not know who asks.

use crate::Problem;

/// A cursor that rises past what is asked for and past every fixed buffer in its way.
pub(crate) struct Stack {
    fixed: Vec<(u64, u64)>, // [offset, top), ascending by offset
    next: usize,
    cursor: u64,
}

impl Stack {
    pub(crate) fn new(problem: &Problem) -> Self {
        let fixed = problem.buffers.iter().filter(|b| b.size > 0);
        let mut fixed: Vec<_> = fixed.filter_map(|b| b.offset.map(|o| (o, o + b.size))).collect();
        fixed.sort_unstable();
        Self { fixed, next: 0, cursor: 0 }
    }

    /// Takes `size` bytes at a multiple of `alignment`; `None` if they leave the 64-bit range.
    pub(crate) fn take(&mut self, size: u64, alignment: u64) -> Option<u64> {
        let mut at = align_up(self.cursor, alignment)?;
        while let Some(&(offset, top)) = self.fixed.get(self.next) {
            if at.checked_add(size)? <= offset {
                break;
            }
            at = align_up(at.max(top), alignment)?;
            self.next += 1;
        }
        self.cursor = at.checked_add(size)?;
        Some(at)
    }
}

/// The smallest multiple of `alignment` not below `at`; `None` beyond 64 bits.
pub(crate) fn align_up(at: u64, alignment: u64) -> Option<u64> {
    if alignment == 1 { Some(at) } else { at.checked_next_multiple_of(alignment) }
}
