//! The lower bound: takes a problem, gives the step at which most bytes are live, and who is live there.
//! Must not know how anything is placed.

use crate::Problem;

/// The largest sum of live bytes at any step, with the witness that proves it. No placement can be lower.
///
/// Alignment and fixed offsets are left out on purpose: the bound stays a plain sum that a reader can redo by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LowerBound {
    /// The bound in bytes. Saturates at `u64::MAX` for a problem that [`Problem::validate`] refuses.
    pub bytes: u64,
    /// The earliest step at which `bytes` are live; 0 if no buffer has bytes.
    pub step: u64,
    /// The buffers with bytes live at `step`, ascending. Their sizes sum to `bytes`.
    pub live: Vec<usize>,
}

/// Computes the [`LowerBound`] in `O(n log n)`, idle periods counted.
pub fn lower_bound(problem: &Problem) -> LowerBound {
    let mut events: Vec<(u64, bool, u64)> = Vec::new(); // step, starts?, bytes
    for b in problem.buffers.iter().filter(|b| b.size > 0) {
        for span in b.spans() {
            events.push((span.start, true, b.size));
            events.push((span.end, false, b.size));
        }
    }
    events.sort_unstable(); // an end sorts before a start at the same step: spans are half open
    let (mut now, mut peak, mut step) = (0u128, 0u128, 0);
    for (at, starts, bytes) in events {
        if !starts {
            now -= u128::from(bytes);
            continue;
        }
        now += u128::from(bytes);
        if now > peak {
            (peak, step) = (now, at);
        }
    }
    let live = |&i: &usize| {
        let b = &problem.buffers[i];
        peak > 0 && b.size > 0 && b.spans().any(|span| span.contains(&step))
    };
    let live = (0..problem.buffers.len()).filter(live).collect();
    LowerBound { bytes: u64::try_from(peak).unwrap_or(u64::MAX), step, live }
}
