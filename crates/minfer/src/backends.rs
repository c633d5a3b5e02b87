//! Backends by name. Takes a kind, a thread count and a SIMD level; gives what an engine is handed.

use crate::error::Error;
use minfer_backend::{Backend, ReferenceBackend};
use minfer_cpu::{CpuBackend, SimdLevel};
use std::num::NonZeroUsize;

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
    let threads = threads.map_or_else(minfer_cpu::default_threads, NonZeroUsize::get);
    if let Some(level) = simd.filter(|level| !level.is_available()) {
        return Err(Error::NoSuchSimd { asked: level.name(), fastest: SimdLevel::detect().name() });
    }
    Ok(match kind {
        BackendKind::Cpu => vec![cpu(threads, simd)?],
        BackendKind::Reference => vec![Box::new(ReferenceBackend::new().with_threads(threads))],
    })
}

fn cpu(threads: usize, _simd: Option<SimdLevel>) -> Result<Box<dyn Backend>, Error> {
    Ok(Box::new(CpuBackend::new().with_threads(threads)))
}
