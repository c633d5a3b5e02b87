//! How the backend is to run. Takes wishes, or the machine's answers; gives [`CpuOptions`]; reads no environment.

use crate::machine::Processors;
use crate::simd::SimdLevel;
use std::num::NonZeroUsize;

/// Threads and instructions of a [`crate::CpuBackend`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuOptions {
    /// Threads that compute, the caller's included.
    pub threads: NonZeroUsize,
    /// Instructions to use; the best of the processor when absent.
    pub simd: Option<SimdLevel>,
}

impl Default for CpuOptions {
    fn default() -> Self {
        Self { threads: default_threads(), simd: None }
    }
}

/// Physical cores that this process may use: see [`Processors::default_threads`].
pub fn default_threads() -> NonZeroUsize {
    Processors::read().default_threads()
}
