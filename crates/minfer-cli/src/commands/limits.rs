//! What this machine can do at most, for `bench` and `doctor`. Takes a probe; gives rates per number of threads.

use crate::memory::Memory;
use anyhow::Result;
use minfer_cpu::Probe;
use std::num::NonZeroUsize;
use std::time::Duration;

/// How long each rate is measured.
const TIME: Duration = Duration::from_millis(200);

/// The two limits with one number of threads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    pub threads: NonZeroUsize,
    pub read_bytes_per_s: f64,
    /// Multiplications and additions of 8-bit numbers.
    pub int8_ops_per_s: f64,
}

impl Limits {
    /// Measures them.
    pub fn measure(probe: &Probe, threads: NonZeroUsize) -> Result<Self> {
        let read_bytes_per_s = probe.read_bytes_per_s(threads, TIME).map_err(minfer::Error::from)?;
        let int8_ops_per_s = probe.int8_ops_per_s(threads, TIME).map_err(minfer::Error::from)?;
        Ok(Self { threads, read_bytes_per_s, int8_ops_per_s })
    }
}

/// Bytes to read over and over in place of a model of this size.
pub fn working_set(model_bytes: u64) -> u64 {
    model_bytes.clamp(16 << 20, 1 << 30)
}

/// Of so many bytes those that measuring may take: never more than a quarter of what is free, or of what this process may
/// have.
pub fn probe_bytes(wanted: u64, memory: Option<Memory>) -> u64 {
    let Some(memory) = memory else { return wanted };
    let limits = [Some(memory.available_bytes), memory.address_budget_bytes(), memory.data_limit_bytes];
    limits.into_iter().flatten().map(|bytes| bytes / 4).fold(wanted, u64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::NO_LIMITS;

    #[test]
    fn measuring_leaves_room_for_others() {
        let memory = Memory { total_bytes: 8000, available_bytes: 4000, ..NO_LIMITS };
        let probe = |memory| probe_bytes(2000, Some(memory));
        assert_eq!(probe_bytes(2000, None), 2000);
        assert_eq!(probe(memory), 1000);
        assert_eq!(probe(Memory { data_limit_bytes: Some(400), ..memory }), 100);
        assert_eq!(probe(Memory { address_limit_bytes: Some(400), empty_address_bytes: 200, ..memory }), 50);
    }
}
