//! The judge: takes a problem and an answer, says what is wrong with it. Walks once through time with those that are live
//! then; shares nothing with the solver but the types, and trusts neither the problem nor the answer.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::{Buffer, Placed, Problem, Verdict};

/// What is wrong with a placement or a certificate. Buffers are named by index.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the message names every field")]
pub enum Violation {
    /// The number of offsets is not the number of buffers.
    #[error("{got} offsets for {expected} buffers")]
    Count { expected: usize, got: usize },
    /// The buffer is impossible: an empty lifetime with bytes, alignment 0, or idle periods that are not one after the other
    /// within the lifetime or leave nothing of it.
    #[error(
        "buffer {buffer} is impossible: empty lifetime, alignment 0, or idle out of order, outside or all of its life"
    )]
    Impossible { buffer: usize },
    /// `offset + size` leaves 64 bits.
    #[error("buffer {buffer} at {offset} leaves the 64-bit address range")]
    Overflow { buffer: usize, offset: u64 },
    /// The offset is no multiple of the alignment.
    #[error("buffer {buffer}: offset {offset} is no multiple of {alignment}")]
    Misaligned { buffer: usize, offset: u64, alignment: u64 },
    /// A fixed buffer lies elsewhere.
    #[error("buffer {buffer} is fixed at {expected}, got {got}")]
    Moved { buffer: usize, expected: u64, got: u64 },
    /// The buffer ends above the capacity.
    #[error("buffer {buffer} ends at {top}, above the capacity {capacity}")]
    AboveCapacity { buffer: usize, top: u64, capacity: u64 },
    /// Two buffers share a byte while both are live.
    #[error("buffers {first} and {second} share bytes while both are live")]
    Overlap { first: usize, second: usize },
    /// A claimed height is not the height of the offsets.
    #[error("claimed height {claimed}, the offsets have {actual}")]
    Height { claimed: u64, actual: u64 },
    /// The witness names a buffer that does not exist, is named twice or out of order, or is not live at the step.
    #[error("witness: buffer {buffer} does not belong to the live set of step {step}")]
    Witness { buffer: usize, step: u64 },
    /// The sizes of the witness do not sum to the claimed bound.
    #[error("claimed lower bound {claimed}, its witness sums to {actual}")]
    WitnessSum { claimed: u64, actual: u128 },
    /// More bytes than the claimed bound are live at another step.
    #[error("claimed lower bound {claimed}, but {actual} bytes are live at step {step}")]
    BoundTooLow { claimed: u64, step: u64, actual: u128 },
    /// The height proven to be needed is below the lower bound or above the height.
    #[error("claimed {proven} bytes proven to be needed, outside of lower bound {lower_bound} to height {height}")]
    Proven { proven: u64, lower_bound: u64, height: u64 },
    /// The verdict does not follow from the heights.
    #[error("height {height}, {proven} bytes proven and lower bound {lower_bound} do not give the verdict {verdict:?}")]
    Verdict { height: u64, proven: u64, lower_bound: u64, verdict: Verdict },
}

impl Violation {
    /// The buffers that the violation names, by index, which need not exist where a witness is wrong.
    pub fn buffers(&self) -> Vec<usize> {
        match *self {
            Violation::Impossible { buffer }
            | Violation::Overflow { buffer, .. }
            | Violation::Misaligned { buffer, .. }
            | Violation::Moved { buffer, .. }
            | Violation::AboveCapacity { buffer, .. }
            | Violation::Witness { buffer, .. } => vec![buffer],
            Violation::Overlap { first, second } => vec![first, second],
            Violation::Count { .. }
            | Violation::Height { .. }
            | Violation::WitnessSum { .. }
            | Violation::BoundTooLow { .. }
            | Violation::Proven { .. }
            | Violation::Verdict { .. } => vec![],
        }
    }
}

/// Whether the buffer is live at this step.
fn is_live(b: &Buffer, step: u64) -> bool {
    b.lower <= step && step < b.upper && !b.idle.iter().any(|period| period.start <= step && step < period.end)
}

/// When a buffer that makes sense begins to be live, and when it ends to be: half open, none empty, ascending.
fn lives(b: &Buffer) -> impl Iterator<Item = (u64, u64)> + '_ {
    let begins = std::iter::once(b.lower).chain(b.idle.iter().map(|period| period.end));
    let ends = b.idle.iter().map(|period| period.start).chain(std::iter::once(b.upper));
    begins.zip(ends).filter(|(begin, end)| begin < end)
}

/// What happens in the course of time: the step, whether a buffer begins to be live or ends, and which. Ends first: a
/// step at which one ends is not among those it is live at. Buffers without bytes are left out.
fn events(buffers: &[Buffer]) -> Vec<(u64, bool, usize)> {
    let mut events = Vec::new();
    for (buffer, b) in buffers.iter().enumerate().filter(|(_, b)| b.size > 0) {
        events.extend(lives(b).flat_map(|(begin, end)| [(begin, true, buffer), (end, false, buffer)]));
    }
    events.sort_unstable();
    events
}

/// Whether the buffer makes no sense.
fn is_impossible(b: &Buffer) -> bool {
    let mut end = b.lower;
    for period in &b.idle {
        if period.start < end || period.start >= period.end || period.end > b.upper {
            return true;
        }
        end = period.end;
    }
    b.alignment == 0 || b.lower > b.upper || (b.size != 0 && lives(b).next().is_none())
}

/// Checks count, range, alignment, fixed offsets, capacity, and that no two share a byte while both are live. Returns the
/// height in bytes, or the first [`Violation`]: of one buffer the lowest index, of two the earliest step. `O(n log n)`,
/// idle periods counted.
pub fn check(problem: &Problem, offsets: &[u64]) -> Result<u64, Violation> {
    let buffers = &problem.buffers;
    if offsets.len() != buffers.len() {
        return Err(Violation::Count { expected: buffers.len(), got: offsets.len() });
    }
    let mut height = 0;
    for (buffer, (b, &offset)) in buffers.iter().zip(offsets).enumerate() {
        if is_impossible(b) {
            return Err(Violation::Impossible { buffer });
        }
        let Some(top) = offset.checked_add(b.size) else {
            return Err(Violation::Overflow { buffer, offset });
        };
        if offset % b.alignment != 0 {
            return Err(Violation::Misaligned { buffer, offset, alignment: b.alignment });
        }
        match b.offset {
            Some(expected) if expected != offset => {
                return Err(Violation::Moved { buffer, expected, got: offset });
            }
            _ => {}
        }
        match problem.capacity {
            Some(capacity) if top > capacity => {
                return Err(Violation::AboveCapacity { buffer, top, capacity });
            }
            _ => {}
        }
        height = height.max(top);
    }
    // Those that are live, by offset. They share no byte, so of those that begin below a top the highest ends last.
    let mut live: BTreeMap<u64, usize> = BTreeMap::new();
    for (_, begins, buffer) in events(buffers) {
        let offset = offsets[buffer];
        if !begins {
            live.remove(&offset);
            continue;
        }
        if let Some((&below, &other)) = live.range(..offset + buffers[buffer].size).next_back()
            && below + buffers[other].size > offset
        {
            return Err(Violation::Overlap { first: buffer.min(other), second: buffer.max(other) });
        }
        live.insert(offset, buffer);
    }
    Ok(height)
}

/// Checks the placement, the claimed heights, the witness, that no step has more live bytes than the bound, and that the
/// verdict follows. What exact search ruled out has no witness: only another search could check that. The first
/// [`Violation`] is the answer; `O(n log n)`, idle periods counted.
pub fn check_certificate(problem: &Problem, placed: &Placed) -> Result<(), Violation> {
    let actual = check(problem, &placed.placement.offsets)?;
    let certificate = &placed.certificate;
    for claimed in [placed.placement.height, certificate.height] {
        if claimed != actual {
            return Err(Violation::Height { claimed, actual });
        }
    }

    let bound = &certificate.lower_bound;
    let (step, claimed) = (bound.step, bound.bytes);
    let mut sum = 0u128;
    let mut previous = None;
    for &buffer in &bound.live {
        let live = problem.buffers.get(buffer).filter(|b| is_live(b, step));
        match live {
            Some(b) if previous.is_none_or(|p| p < buffer) => sum += u128::from(b.size),
            _ => return Err(Violation::Witness { buffer, step }),
        }
        previous = Some(buffer);
    }
    if sum != u128::from(claimed) {
        return Err(Violation::WitnessSum { claimed, actual: sum });
    }
    let (mut live_bytes, mut most) = (0u128, (0u128, 0));
    for (step, begins, buffer) in events(&problem.buffers) {
        let size = u128::from(problem.buffers[buffer].size);
        live_bytes = if begins { live_bytes + size } else { live_bytes - size };
        if live_bytes > most.0 {
            most = (live_bytes, step);
        }
    }
    if most.0 > u128::from(claimed) {
        return Err(Violation::BoundTooLow { claimed, step: most.1, actual: most.0 });
    }

    let proven = certificate.proven_bytes;
    if proven < claimed || proven > actual {
        return Err(Violation::Proven { proven, lower_bound: claimed, height: actual });
    }
    let follows = match certificate.verdict {
        Verdict::Optimal => actual == claimed,
        Verdict::OptimalBySearch => actual == proven && proven > claimed,
        Verdict::Gap { bytes } => bytes > 0 && proven.checked_add(bytes) == Some(actual),
    };
    if follows {
        Ok(())
    } else {
        Err(Violation::Verdict { height: actual, proven, lower_bound: claimed, verdict: certificate.verdict })
    }
}
