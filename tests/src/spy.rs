//! A backend under observation. Takes any backend and a listener; gives one that computes the same; must not judge.

use minfer_backend::{Backend, BackendError, BufRef, Capabilities, HostBytes, RegionId, Step};
use minfer_graph::BatchDims;
use std::sync::Arc;

/// What a backend was asked to do.
pub enum Call<'a> {
    /// To make a region of so many bytes, or to take over so many of the host's.
    Region(u64),
    /// To run these steps.
    Run(&'a [Step]),
}

/// Tells every [`Call`] before it is made.
pub struct Spy<F> {
    /// Who does the work.
    pub inner: Box<dyn Backend>,
    /// Who is told.
    pub tell: F,
}

impl<F: FnMut(Call<'_>) + Send> Backend for Spy<F> {
    fn capabilities(&self) -> Arc<dyn Capabilities> {
        self.inner.capabilities()
    }
    fn create_region(&mut self, id: RegionId, bytes: u64) -> Result<(), BackendError> {
        (self.tell)(Call::Region(bytes));
        self.inner.create_region(id, bytes)
    }
    fn import_region(&mut self, id: RegionId, bytes: HostBytes) -> Result<(), BackendError> {
        (self.tell)(Call::Region((*bytes).as_ref().len() as u64));
        self.inner.import_region(id, bytes)
    }
    fn drop_region(&mut self, id: RegionId) -> Result<(), BackendError> {
        self.inner.drop_region(id)
    }
    fn region_address(&self, id: RegionId) -> Option<usize> {
        self.inner.region_address(id)
    }
    fn write(&mut self, to: BufRef, bytes: &[u8]) -> Result<(), BackendError> {
        self.inner.write(to, bytes)
    }
    fn read(&self, from: BufRef, visit: &mut dyn FnMut(&[u8])) -> Result<(), BackendError> {
        self.inner.read(from, visit)
    }
    fn fill(&mut self, to: BufRef, byte: u8) -> Result<(), BackendError> {
        self.inner.fill(to, byte)
    }
    fn copy(&mut self, from: BufRef, to: BufRef) -> Result<(), BackendError> {
        self.inner.copy(from, to)
    }
    fn run(&mut self, steps: &[Step], dims: &BatchDims) -> Result<(), BackendError> {
        (self.tell)(Call::Run(steps));
        self.inner.run(steps, dims)
    }
    fn synchronize(&mut self) -> Result<(), BackendError> {
        self.inner.synchronize()
    }
}
