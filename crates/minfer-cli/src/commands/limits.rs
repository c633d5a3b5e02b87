//! What this machine can do at most, for `bench` and `doctor`. Takes a probe; gives rates per number of threads.

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
