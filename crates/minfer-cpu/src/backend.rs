//! The backend. Takes regions and steps; gives bytes back. Here alone pointers into regions are made and workers let loose
//! on them.

use crate::capabilities::{CpuCapabilities, STACK_BYTES};
use crate::options::CpuOptions;
use crate::pool::Pool;
use crate::region::Region;
use crate::scratch::Scratch;
use crate::simd::SimdLevel;
use crate::walk::{self, Failure, Taken};
use crate::work::{BATCH_STEPS, Check, Fault, Work};
use minfer_backend::{Backend, BackendError, BufRef, Capabilities, HostBytes, RegionId, Step};
use minfer_graph::BatchDims;
use std::sync::{Arc, Mutex};

const NAME: &str = "cpu";
/// Regions there may be; ids are dense.
const MAX_REGIONS: usize = 1 << 20;

/// The CPU as a [`Backend`]. `run` returns when all is done, so nothing is ever pending.
pub struct CpuBackend {
    level: SimdLevel,
    capabilities: Arc<CpuCapabilities>,
    regions: Vec<Option<Region>>,
    pool: Pool,
    /// One per worker; only ever contended if a worker panics.
    scratch: Vec<Mutex<Scratch>>,
    /// Empty between runs; kept so that running allocates nothing.
    works: Vec<Work>,
    taken: [Box<[Taken]>; 2],
}

// SAFETY: `works` is empty between runs (see `run`), everything else is `Send`.
unsafe impl Send for CpuBackend {}

/// Why there is no backend.
#[derive(Debug, thiserror::Error)]
pub enum CpuError {
    /// The processor lacks the instructions asked for.
    #[error("this processor has no {level}; it has {best}")]
    NoSimd {
        /// Asked for.
        level: SimdLevel,
        /// The best there is.
        best: SimdLevel,
    },
    /// The system starts no more threads.
    #[error("cannot start {threads} worker threads")]
    Threads {
        /// Asked for.
        threads: usize,
        /// Why.
        source: std::io::Error,
    },
    /// No memory for the workers.
    #[error("cannot allocate {bytes} bytes for the workers")]
    OutOfMemory {
        /// Asked for.
        bytes: u64,
    },
}

impl CpuBackend {
    /// Starts the workers. Errors: instructions that the processor lacks, threads or memory that the system refuses.
    pub fn new(options: CpuOptions) -> Result<Self, CpuError> {
        let best = SimdLevel::detect();
        let level = options.simd.unwrap_or(best);
        if !level.is_available() {
            return Err(CpuError::NoSimd { level, best });
        }
        let capabilities = CpuCapabilities::new(options);
        let threads = options.threads.get();
        let mut scratch = Vec::with_capacity(threads);
        for _ in 0..threads {
            let bytes = capabilities.fixed_bytes();
            scratch.push(Mutex::new(Scratch::new().ok_or(CpuError::OutOfMemory { bytes })?));
        }
        let pool = Pool::new(threads, STACK_BYTES).map_err(|source| CpuError::Threads { threads, source })?;
        Ok(Self {
            level,
            capabilities: Arc::new(capabilities),
            regions: Vec::new(),
            pool,
            scratch,
            works: Vec::with_capacity(BATCH_STEPS),
            taken: [Taken::of(threads), Taken::of(threads)],
        })
    }

    /// The instructions in use.
    pub fn simd(&self) -> SimdLevel {
        self.level
    }

    fn region(&self, id: RegionId) -> Result<&Region, BackendError> {
        let region = self.regions.get(id.index()).and_then(Option::as_ref);
        region.ok_or_else(|| BackendError::UnknownRegion { backend: NAME.into(), region: id.0 })
    }

    /// Address of a run within its region.
    fn bytes(&self, buf: BufRef, write: bool) -> Result<(*mut u8, usize), BackendError> {
        let region = self.region(buf.region)?;
        let end = buf.offset.saturating_add(buf.len);
        if end > region.len() {
            return Err(BackendError::OutOfBounds {
                backend: NAME.into(),
                region: buf.region.0,
                offset: buf.offset,
                end,
                region_bytes: region.len(),
            });
        }
        if write && region.is_read_only() {
            return Err(BackendError::ReadOnly { backend: NAME.into(), region: buf.region.0 });
        }
        // SAFETY: the offset is at most the region's length.
        Ok((unsafe { region.start().add(buf.offset as usize) }, buf.len as usize))
    }

    fn insert(&mut self, id: RegionId, region: Region) -> Result<(), BackendError> {
        if id.index() >= self.regions.len() {
            self.regions.resize_with(id.index() + 1, || None);
        }
        self.regions[id.index()] = Some(region);
        Ok(())
    }

    fn check_free(&self, id: RegionId) -> Result<(), BackendError> {
        if id.index() >= MAX_REGIONS {
            return Err(BackendError::UnknownRegion { backend: NAME.into(), region: id.0 });
        }
        match self.region(id) {
            Ok(_) => Err(BackendError::RegionExists { backend: NAME.into(), region: id.0 }),
            Err(_) => Ok(()),
        }
    }

    /// Runs the checked works, which are those of `steps`.
    fn run_works(&mut self, steps: &[Step]) -> Result<(), BackendError> {
        let result = walk::run(&mut self.pool, self.level, &self.works, &self.scratch, &mut self.taken);
        let Err((index, failure)) = result else { return Ok(()) };
        let (backend, step) = (NAME.to_string(), steps[index].name.clone());
        Err(match failure {
            Failure::Fault(Fault { what, got, limit }) => BackendError::OutOfRange { backend, step, what, got, limit },
            Failure::Panic => BackendError::WorkerPanic { backend, step },
        })
    }
}

impl Backend for CpuBackend {
    fn capabilities(&self) -> Arc<dyn Capabilities> {
        self.capabilities.clone()
    }

    fn create_region(&mut self, id: RegionId, bytes: u64) -> Result<(), BackendError> {
        self.check_free(id)?;
        let region = Region::zeroed(bytes);
        let region = region.ok_or_else(|| BackendError::OutOfMemory { backend: NAME.into(), bytes })?;
        self.insert(id, region)
    }

    fn import_region(&mut self, id: RegionId, bytes: HostBytes) -> Result<(), BackendError> {
        self.check_free(id)?;
        self.insert(id, Region::imported(bytes))
    }

    fn drop_region(&mut self, id: RegionId) -> Result<(), BackendError> {
        self.region(id)?;
        self.regions[id.index()] = None;
        Ok(())
    }

    fn region_address(&self, id: RegionId) -> Option<usize> {
        self.region(id).ok().map(|region| region.start() as usize)
    }

    fn write(&mut self, to: BufRef, bytes: &[u8]) -> Result<(), BackendError> {
        let (start, len) = self.bytes(to, true)?;
        if bytes.len() > len {
            return Err(BackendError::OutOfBounds {
                backend: NAME.into(),
                region: to.region.0,
                offset: to.offset,
                end: to.offset + bytes.len() as u64,
                region_bytes: to.end(),
            });
        }
        // SAFETY: the run has at least so many bytes, and `bytes`, a shared slice, cannot be of a region that we write.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
        Ok(())
    }

    fn read(&self, from: BufRef, visit: &mut dyn FnMut(&[u8])) -> Result<(), BackendError> {
        let (start, len) = self.bytes(from, false)?;
        // SAFETY: the run lies in its region, and nobody writes while `self` is borrowed.
        visit(unsafe { std::slice::from_raw_parts(start, len) });
        Ok(())
    }

    fn fill(&mut self, to: BufRef, byte: u8) -> Result<(), BackendError> {
        let (start, len) = self.bytes(to, true)?;
        // SAFETY: the run lies in its region, which is ours to write.
        unsafe { std::ptr::write_bytes(start, byte, len) };
        Ok(())
    }

    fn copy(&mut self, from: BufRef, to: BufRef) -> Result<(), BackendError> {
        let ((source, len), (target, room)) = (self.bytes(from, false)?, self.bytes(to, true)?);
        if len != room {
            return Err(BackendError::BadOperand {
                backend: NAME.into(),
                step: "copy".into(),
                what: "length of the target",
                expected: len.to_string(),
                got: room.to_string(),
            });
        }
        // SAFETY: both runs lie in their regions and have `len` bytes; overlap is allowed here.
        unsafe { std::ptr::copy(source, target, len) };
        Ok(())
    }

    fn run(&mut self, steps: &[Step], dims: &BatchDims) -> Result<(), BackendError> {
        // All steps are checked before any is run. Mostly one batch holds them all.
        for step in steps.get(BATCH_STEPS..).unwrap_or_default() {
            Work::new(&Check { backend: NAME, regions: &self.regions, step, dims })?;
        }
        for batch in steps.chunks(BATCH_STEPS) {
            self.works.clear();
            for step in batch {
                let work = Work::new(&Check { backend: NAME, regions: &self.regions, step, dims });
                match work {
                    Ok(work) => self.works.push(work),
                    Err(error) => {
                        self.works.clear();
                        return Err(error);
                    }
                }
            }
            let result = self.run_works(batch);
            self.works.clear();
            result?;
        }
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), BackendError> {
        Ok(())
    }
}
