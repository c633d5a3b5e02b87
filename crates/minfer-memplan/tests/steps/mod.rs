//! Buffers step by step: takes and gives buffers that may be idle, for tests. Must not ask the crate at which steps one is
//! live.

use minfer_memplan::Buffer;

pub fn is_live(b: &Buffer, step: u64) -> bool {
    (b.lower..b.upper).contains(&step) && !b.idle.iter().any(|period| period.contains(&step))
}

/// The buffer, idle at those steps of its lifetime whose bits are set; its last step stays if no other does.
pub fn idle_at(mut b: Buffer, bits: u64) -> Buffer {
    for step in b.lower..b.upper {
        let is_last = step + 1 == b.upper && !(b.lower..step).any(|s| is_live(&b, s));
        if bits >> ((step - b.lower) % 64) & 1 == 0 || is_last {
            continue;
        }
        match b.idle.last_mut() {
            // Periods may also touch: every other one is kept apart.
            Some(period) if period.end == step && step % 2 == 0 => period.end = step + 1,
            _ => b = b.idle_in(step..step + 1),
        }
    }
    b
}
