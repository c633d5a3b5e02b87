//! What is to be placed: takes lifetimes, sizes, alignments and fixed offsets, gives a validated [`Problem`].
//! Must not know how anything is placed.

use std::collections::BTreeMap;

use thiserror::Error;

/// One buffer: bytes that must exist during a lifetime.
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
}

impl Buffer {
    /// A buffer of `size` bytes, live in `[lower, upper)`, alignment 1, free to go anywhere.
    pub fn new(lower: u64, upper: u64, size: u64) -> Self {
        Self { lower, upper, size, alignment: 1, offset: None }
    }

    /// The same buffer with this alignment.
    pub fn aligned(self, alignment: u64) -> Self {
        Self { alignment, ..self }
    }

    /// The same buffer, fixed at this offset.
    pub fn fixed_at(self, offset: u64) -> Self {
        Self { offset: Some(offset), ..self }
    }

    /// Length of the lifetime in steps.
    pub fn duration(&self) -> u64 {
        self.upper.saturating_sub(self.lower)
    }

    /// Whether the two lifetimes share a step.
    pub fn meets(&self, other: &Buffer) -> bool {
        self.lower < other.upper && other.lower < self.upper
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

impl Problem {
    /// A problem without a capacity.
    pub fn new(buffers: Vec<Buffer>) -> Self {
        Self { buffers, capacity: None }
    }

    /// The same problem with a capacity in bytes.
    pub fn with_capacity_bytes(self, capacity: u64) -> Self {
        Self { capacity: Some(capacity), ..self }
    }

    /// Refuses what no placement could satisfy or what would overflow: empty lifetimes, zero alignments, fixed offsets
    /// that are misaligned, above the capacity or overlapping, and sums beyond 64 bits. `O(n log n)`.
    pub fn validate(&self) -> Result<(), ProblemError> {
        let mut fixed_top = 0u64;
        let mut stacked = 0u64;
        for (buffer, b) in self.buffers.iter().enumerate() {
            if b.lower > b.upper || (b.lower == b.upper && b.size > 0) {
                return Err(ProblemError::EmptyLifetime { buffer, lower: b.lower, upper: b.upper });
            }
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
                events.push((b.lower, true, offset, i));
                events.push((b.upper, false, offset, i));
            }
        }
        events.sort_unstable(); // an end sorts before a start at the same step: lifetimes are half open
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
