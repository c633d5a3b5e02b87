//! What is to be placed: takes lifetimes, sizes, alignments and fixed offsets, gives a validated [`Problem`].
//! Must not know how anything is placed.

use std::collections::BTreeMap;
use std::iter;
use std::ops::Range;

use thiserror::Error;

/// One buffer: bytes that must exist during a lifetime, but for idle periods in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// First step at which the buffer is live.
    pub lower: u64,
    /// First step at which it is live no more: the lifetime is half open, `[lower, upper)`.
    pub upper: u64,
    /// Size in bytes. A buffer of zero bytes never conflicts with another.
    pub size: u64,
    /// The offset must be a multiple of this. Any value from 1 up, not only powers of two.
    pub alignment: u64,
    /// A placement that is given, not chosen.
    pub offset: Option<u64>,
    /// Parts of the lifetime, ascending and half open, in which the buffer is not live: its bytes may serve others then,
    /// its offset stays. Whoever reads it later writes it anew.
    pub idle: Vec<Range<u64>>,
}

impl Buffer {
    /// A buffer of `size` bytes, live in `[lower, upper)`, alignment 1, free to go anywhere.
    pub fn new(lower: u64, upper: u64, size: u64) -> Self {
        Self { lower, upper, size, alignment: 1, offset: None, idle: Vec::new() }
    }

    /// The same buffer with this alignment.
    pub fn aligned(self, alignment: u64) -> Self {
        Self { alignment, ..self }
    }

    /// The same buffer, fixed at this offset.
    pub fn fixed_at(self, offset: u64) -> Self {
        Self { offset: Some(offset), ..self }
    }

    /// The same buffer, idle during this part of its lifetime, which is after those it is idle in already.
    pub fn idle_in(mut self, period: Range<u64>) -> Self {
        self.idle.push(period);
        self
    }

    /// The steps at which the buffer is live, as ascending ranges, none empty: one for a buffer that is never idle.
    pub fn spans(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut from = self.lower;
        let ends = iter::once(self.upper..self.upper);
        let before = move |period: Range<u64>| {
            let span = from..period.start.min(self.upper);
            from = from.max(period.end);
            span
        };
        self.idle.iter().cloned().chain(ends).map(before).filter(|span| !span.is_empty())
    }

    /// The number of steps at which the buffer is live.
    pub fn duration(&self) -> u64 {
        self.spans().map(|span| span.end - span.start).sum()
    }

    /// Whether both are live at some step.
    pub fn meets(&self, other: &Buffer) -> bool {
        let lifetimes_meet = self.lower.max(other.lower) < self.upper.min(other.upper);
        if !lifetimes_meet || (self.idle.is_empty() && other.idle.is_empty()) {
            return lifetimes_meet;
        }
        let (mut ours, mut theirs) = (self.spans().peekable(), other.spans().peekable());
        while let (Some(a), Some(b)) = (ours.peek(), theirs.peek()) {
            if a.start < b.end && b.start < a.end {
                return true;
            }
            if a.end < b.end {
                ours.next()
            } else {
                theirs.next()
            };
        }
        false
    }
}

/// Buffers to be placed in one address range that starts at 0. A buffer's identity is its index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The buffers, in any order.
    pub buffers: Vec<Buffer>,
    /// Height that a placement must not exceed, in bytes; `None`: as low as possible, no limit.
    pub capacity: Option<u64>,
}

/// Why a [`Problem`] makes no sense. Buffers are named by index.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProblemError {
    /// `lower > upper`, or `lower == upper` with bytes to keep.
    #[error("buffer {buffer}: lifetime [{lower}, {upper}) is empty")]
    EmptyLifetime {
        /// The buffer.
        buffer: usize,
        /// Its first step.
        lower: u64,
        /// The step after its last.
        upper: u64,
    },
    /// An idle period with `start >= end`.
    #[error("buffer {buffer}: idle during [{}, {}), which is empty", period.start, period.end)]
    EmptyIdle {
        /// The buffer.
        buffer: usize,
        /// The period.
        period: Range<u64>,
    },
    /// An idle period that is not within the lifetime.
    #[error("buffer {buffer}: idle during [{}, {}), outside of its lifetime [{lower}, {upper})", period.start, period.end)]
    IdleOutside {
        /// The buffer.
        buffer: usize,
        /// The period.
        period: Range<u64>,
        /// The buffer's first step.
        lower: u64,
        /// The step after its last.
        upper: u64,
    },
    /// An idle period that begins before the one listed before it ends.
    #[error("buffer {buffer}: idle during [{}, {}), but until {end} it is idle already", period.start, period.end)]
    IdleOverlap {
        /// The buffer.
        buffer: usize,
        /// The later period.
        period: Range<u64>,
        /// Where the earlier one ends.
        end: u64,
    },
    /// There are bytes to keep, but idle periods fill the lifetime.
    #[error("buffer {buffer}: idle for all of its lifetime [{lower}, {upper})")]
    NeverLive {
        /// The buffer.
        buffer: usize,
        /// Its first step.
        lower: u64,
        /// The step after its last.
        upper: u64,
    },
    /// The alignment is zero.
    #[error("buffer {buffer}: alignment is 0, expected at least 1")]
    ZeroAlignment {
        /// The buffer.
        buffer: usize,
    },
    /// A fixed offset is no multiple of the alignment.
    #[error("buffer {buffer}: fixed offset {offset} is no multiple of its alignment {alignment}")]
    MisalignedOffset {
        /// The buffer.
        buffer: usize,
        /// Its fixed offset.
        offset: u64,
        /// Its alignment.
        alignment: u64,
    },
    /// A fixed buffer ends above the capacity.
    #[error("buffer {buffer}: fixed, ends at {top}, above the capacity {capacity}")]
    OffsetAboveCapacity {
        /// The buffer.
        buffer: usize,
        /// One past its last byte.
        top: u64,
        /// The problem's capacity.
        capacity: u64,
    },
    /// Two fixed buffers share a byte at some step.
    #[error("buffers {first} and {second}: fixed at bytes that overlap while both are live")]
    FixedOverlap {
        /// The lower index.
        first: usize,
        /// The higher index.
        second: usize,
    },
    /// Stacking all buffers, padding included, would leave the 64-bit address range.
    #[error("buffer {buffer}: the sum of sizes up to here exceeds 64 bits")]
    TotalOverflow {
        /// The buffer at which the sum overflowed.
        buffer: usize,
    },
}

impl ProblemError {
    /// The buffers that the error names, by index.
    pub fn buffers(&self) -> Vec<usize> {
        match *self {
            ProblemError::EmptyLifetime { buffer, .. }
            | ProblemError::EmptyIdle { buffer, .. }
            | ProblemError::IdleOutside { buffer, .. }
            | ProblemError::IdleOverlap { buffer, .. }
            | ProblemError::NeverLive { buffer, .. }
            | ProblemError::ZeroAlignment { buffer }
            | ProblemError::MisalignedOffset { buffer, .. }
            | ProblemError::OffsetAboveCapacity { buffer, .. }
            | ProblemError::TotalOverflow { buffer } => vec![buffer],
            ProblemError::FixedOverlap { first, second } => vec![first, second],
        }
    }
}

impl Problem {
    /// A problem without a capacity.
    pub fn new(buffers: Vec<Buffer>) -> Self {
        Self { buffers, capacity: None }
    }

    /// The same problem with a capacity in bytes.
    pub fn with_capacity_bytes(self, capacity: u64) -> Self {
        Self { capacity: Some(capacity), ..self }
    }

    /// Refuses what no placement could satisfy or what would overflow: empty lifetimes, idle periods that are not one after
    /// the other within the lifetime or leave nothing of it, zero alignments, fixed offsets that are misaligned, above the
    /// capacity or overlapping, and sums beyond 64 bits. `O(n log n)`, idle periods counted.
    pub fn validate(&self) -> Result<(), ProblemError> {
        let mut fixed_top = 0u64;
        let mut stacked = 0u64;
        for (buffer, b) in self.buffers.iter().enumerate() {
            if b.lower > b.upper || (b.lower == b.upper && b.size > 0) {
                return Err(ProblemError::EmptyLifetime { buffer, lower: b.lower, upper: b.upper });
            }
            validate_idle(buffer, b)?;
            if b.alignment == 0 {
                return Err(ProblemError::ZeroAlignment { buffer });
            }
            let overflow = ProblemError::TotalOverflow { buffer };
            if let Some(offset) = b.offset {
                if offset % b.alignment != 0 {
                    return Err(ProblemError::MisalignedOffset { buffer, offset, alignment: b.alignment });
                }
                let top = offset.checked_add(b.size).ok_or(overflow.clone())?;
                if let Some(capacity) = self.capacity.filter(|&c| top > c) {
                    return Err(ProblemError::OffsetAboveCapacity { buffer, top, capacity });
                }
                fixed_top = fixed_top.max(top);
            }
            // The padding counts once for the buffer and once for a fixed block it may have to skip.
            let padded = b.size.checked_add(b.alignment - 1).ok_or(overflow.clone())?;
            stacked = stacked.checked_add(padded).ok_or(overflow.clone())?;
            if stacked.checked_add(fixed_top).is_none() {
                return Err(overflow);
            }
        }
        self.validate_fixed_pairs()
    }

    /// Sweeps over time; the fixed buffers live at one step are kept by address, so that only neighbours can overlap.
    fn validate_fixed_pairs(&self) -> Result<(), ProblemError> {
        let mut events: Vec<(u64, bool, u64, usize)> = Vec::new(); // step, starts?, offset, index
        for (i, b) in self.buffers.iter().enumerate() {
            if let (Some(offset), true) = (b.offset, b.size > 0) {
                for span in b.spans() {
                    events.push((span.start, true, offset, i));
                    events.push((span.end, false, offset, i));
                }
            }
        }
        events.sort_unstable(); // an end sorts before a start at the same step: spans are half open
        let mut live: BTreeMap<u64, usize> = BTreeMap::new();
        for (_, starts, offset, i) in events {
            if !starts {
                live.remove(&offset);
                continue;
            }
            let top = offset + self.buffers[i].size;
            let last_below = live.range(..top).next_back();
            if let Some((&o, &j)) = last_below
                && o + self.buffers[j].size > offset
            {
                return Err(ProblemError::FixedOverlap { first: i.min(j), second: i.max(j) });
            }
            live.insert(offset, i);
        }
        Ok(())
    }
}

fn validate_idle(buffer: usize, b: &Buffer) -> Result<(), ProblemError> {
    let (lower, upper) = (b.lower, b.upper);
    let mut end = lower;
    for period in &b.idle {
        let period = period.clone();
        if period.is_empty() {
            return Err(ProblemError::EmptyIdle { buffer, period });
        }
        if period.start < lower || period.end > upper {
            return Err(ProblemError::IdleOutside { buffer, period, lower, upper });
        }
        if period.start < end {
            return Err(ProblemError::IdleOverlap { buffer, period, end });
        }
        end = period.end;
    }
    if b.size > 0 && b.duration() == 0 { Err(ProblemError::NeverLive { buffer, lower, upper }) } else { Ok(()) }
}
