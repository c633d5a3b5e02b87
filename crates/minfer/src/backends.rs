//! Backends by name. Takes a kind, a thread count and a SIMD level; gives what an engine is handed.

use crate::error::Error;
use minfer_backend::{Backend, Capabilities, ReferenceBackend};
use minfer_cpu::{CpuBackend, CpuCapabilities, CpuOptions, SimdLevel, default_threads};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A set of backends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BackendKind {
    /// The fast CPU backend.
    #[default]
    Cpu,
    /// Scalar f32, slow, against which all others are judged.
    Reference,
}

impl BackendKind {
    /// The name in output and in flags.
    pub fn name(self) -> &'static str {
        match self {
            BackendKind::Cpu => "cpu",
            BackendKind::Reference => "reference",
        }
    }
}

/// The backends of a kind. `threads` is by default one per physical core that the process may use; `simd` is by default
/// the fastest level of the processor, and means nothing to the reference backend.
pub fn backends(
    kind: BackendKind,
    threads: Option<NonZeroUsize>,
    simd: Option<SimdLevel>,
) -> Result<Vec<Box<dyn Backend>>, Error> {
    Ok(match kind {
        BackendKind::Cpu => vec![Box::new(CpuBackend::new(cpu_options(threads, simd))?)],
        BackendKind::Reference => vec![Box::new(reference(threads))],
    })
}

/// What the same backends would answer a planner. Starts no thread and allocates nothing.
pub fn capabilities(
    kind: BackendKind,
    threads: Option<NonZeroUsize>,
    simd: Option<SimdLevel>,
) -> Vec<Arc<dyn Capabilities>> {
    match kind {
        BackendKind::Cpu => vec![Arc::new(CpuCapabilities::new(cpu_options(threads, simd)))],
        BackendKind::Reference => vec![reference(threads).capabilities()],
    }
}

fn cpu_options(threads: Option<NonZeroUsize>, simd: Option<SimdLevel>) -> CpuOptions {
    CpuOptions { threads: threads.unwrap_or_else(default_threads), simd }
}

fn reference(threads: Option<NonZeroUsize>) -> ReferenceBackend {
    ReferenceBackend::new().with_threads(threads.unwrap_or_else(default_threads).get())
}
