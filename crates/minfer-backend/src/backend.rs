//! The trait every backend implements. Takes regions and steps; gives bytes back; must not know plans.

use crate::buffer::{BufRef, RegionId};
use crate::capabilities::Capabilities;
use crate::step::Step;
use minfer_graph::BatchDims;
use std::sync::Arc;

/// Bytes in host memory that a backend may keep and read in place, such as a mapped file.
pub type HostBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A machine that owns regions and runs steps on them.
///
/// `run` may only queue: until `synchronize` returns, the bytes that the queued steps write must not be read, and
/// `read` refuses to.
pub trait Backend: Send {
    /// What it can do.
    fn capabilities(&self) -> Arc<dyn Capabilities>;

    /// Allocates a region of `bytes` bytes, all zero. Ids are small and dense; an id in use is refused.
    fn create_region(&mut self, id: RegionId, bytes: u64) -> Result<(), BackendError>;

    /// Makes host bytes a read-only region, in place where the backend can read host memory.
    fn import_region(&mut self, id: RegionId, bytes: HostBytes) -> Result<(), BackendError>;

    /// Frees a region that no plan uses any more.
    fn drop_region(&mut self, id: RegionId) -> Result<(), BackendError>;

    /// The address of a region, for tests that regions never move. Only its identity means something.
    fn region_address(&self, id: RegionId) -> Option<usize>;

    /// Writes bytes from the host at the start of a run of bytes.
    fn write(&mut self, to: BufRef, bytes: &[u8]) -> Result<(), BackendError>;

    /// Shows the bytes to `visit`. An error while steps that write them are queued.
    fn read(&self, from: BufRef, visit: &mut dyn FnMut(&[u8])) -> Result<(), BackendError>;

    /// Sets every byte of a run.
    fn fill(&mut self, to: BufRef, byte: u8) -> Result<(), BackendError>;

    /// Copies bytes between two runs of the same length on this backend, which may lie in one region but not overlap.
    fn copy(&mut self, from: BufRef, to: BufRef) -> Result<(), BackendError>;

    /// Runs (or queues) the steps in order. Nothing is allocated or looked up by name. Steps are never of
    /// [`minfer_graph::Op::Copy`] from another backend: the scheduler does those.
    fn run(&mut self, steps: &[Step], dims: &BatchDims) -> Result<(), BackendError>;

    /// Returns once everything queued has run.
    fn synchronize(&mut self) -> Result<(), BackendError>;
}

/// What can go wrong in a backend.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BackendError {
    /// The machine has not that much memory.
    #[error("{backend}: cannot allocate a region of {bytes} bytes; use a smaller context or batch")]
    OutOfMemory {
        /// Backend.
        backend: String,
        /// Bytes asked for.
        bytes: u64,
    },
    /// No such region.
    #[error("{backend}: there is no region {region}")]
    UnknownRegion {
        /// Backend.
        backend: String,
        /// Region.
        region: u32,
    },
    /// The id is in use.
    #[error("{backend}: region {region} exists already")]
    RegionExists {
        /// Backend.
        backend: String,
        /// Region.
        region: u32,
    },
    /// Bytes beyond a region's end.
    #[error("{backend}: bytes {offset}..{end} are outside region {region} of {region_bytes} bytes")]
    OutOfBounds {
        /// Backend.
        backend: String,
        /// Region.
        region: u32,
        /// First byte.
        offset: u64,
        /// First byte after.
        end: u64,
        /// Size of the region.
        region_bytes: u64,
    },
    /// A write to an imported region.
    #[error("{backend}: region {region} is read-only")]
    ReadOnly {
        /// Backend.
        backend: String,
        /// Region.
        region: u32,
    },
    /// A read of bytes whose steps are only queued.
    #[error("{backend}: the bytes are not computed yet; synchronise before reading")]
    Pending {
        /// Backend.
        backend: String,
    },
    /// A kernel the backend does not run.
    #[error("{backend}: step {step} needs the kernel {kernel}, which this backend does not have")]
    Unsupported {
        /// Backend.
        backend: String,
        /// Step.
        step: String,
        /// Kernel.
        kernel: String,
    },
    /// Operands that contradict the kernel: a fault of the plan.
    #[error("{backend}: step {step}: {what} is {got}, expected {expected}")]
    BadOperand {
        /// Backend.
        backend: String,
        /// Step.
        step: String,
        /// Which operand.
        what: &'static str,
        /// What fits.
        expected: String,
        /// What came.
        got: String,
    },
    /// A number in an input that points outside: a token id beyond the vocabulary, a cell beyond the KV region, an
    /// output row beyond the batch.
    #[error("{backend}: step {step}: {what} {got} is outside 0..{limit}")]
    OutOfRange {
        /// Backend.
        backend: String,
        /// Step.
        step: String,
        /// What the number is.
        what: &'static str,
        /// The number.
        got: i64,
        /// First number that does not fit.
        limit: u64,
    },
    /// A worker died.
    #[error("{backend}: a worker thread panicked in step {step}; this is a bug in minfer")]
    WorkerPanic {
        /// Backend.
        backend: String,
        /// Step.
        step: String,
    },
}
