//! A backend that computes nothing. Takes regions and steps; gives real memory, checked bytes and a count of the steps
//! launched: for planner and scheduler tests, and to measure what launching costs. Must not know any operation.

use crate::backend::{Backend, BackendError, HostBytes};
use crate::buffer::{BufRef, RegionId};
use crate::capabilities::Capabilities;
use crate::host::HostRegions;
use crate::kernel::Kernel;
use crate::step::Step;
use minfer_graph::{BatchDims, DType, GraphParams, Shape, ValueType};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Answers that a test chooses; by default every executed kernel is supported.
#[derive(Clone, Debug)]
pub struct NullCapabilities {
    /// Short name.
    pub name: String,
    /// Where several backends support a kernel, the highest wins.
    pub priority: i32,
    /// Which of the executed kernels are supported.
    pub filter: fn(&Kernel) -> bool,
    /// What products want, whatever the weight.
    pub activation_type: ValueType,
    /// Scratch of every step, in bytes.
    pub workspace_bytes: u64,
    /// Alignment of values, in bytes.
    pub alignment: u64,
    /// Most bytes in one region; a larger one is out of memory.
    pub max_region_bytes: Option<u64>,
    /// Bytes beside regions.
    pub fixed_bytes: u64,
}

impl Default for NullCapabilities {
    fn default() -> Self {
        Self {
            name: "null".into(),
            priority: 0,
            filter: |_| true,
            activation_type: ValueType::F32,
            workspace_bytes: 0,
            alignment: 64,
            max_region_bytes: None,
            fixed_bytes: 0,
        }
    }
}

impl Capabilities for NullCapabilities {
    fn name(&self) -> &str {
        &self.name
    }

    fn priority(&self) -> i32 {
        self.priority
    }

    fn supports(&self, kernel: &Kernel) -> bool {
        kernel.op.is_executed() && (self.filter)(kernel)
    }

    fn activation_type(&self, _weight: DType, _lasting: bool) -> ValueType {
        self.activation_type
    }

    fn workspace_bytes(&self, _kernel: &Kernel, _output: Shape, _params: &GraphParams) -> u64 {
        self.workspace_bytes
    }

    fn alignment(&self) -> u64 {
        self.alignment
    }

    fn fixed_bytes(&self) -> u64 {
        self.fixed_bytes
    }

    fn max_region_bytes(&self) -> Option<u64> {
        self.max_region_bytes
    }
}

/// Allocates and launches, computes nothing.
pub struct NullBackend {
    capabilities: Arc<NullCapabilities>,
    regions: HostRegions,
    steps_run: Arc<AtomicU64>,
}

impl NullBackend {
    /// With these answers.
    pub fn new(capabilities: NullCapabilities) -> Self {
        let regions = HostRegions::new(capabilities.name.clone());
        Self { capabilities: Arc::new(capabilities), regions, steps_run: Arc::default() }
    }

    /// Counts the steps launched; lives on when the backend is handed over.
    pub fn steps_run(&self) -> Arc<AtomicU64> {
        self.steps_run.clone()
    }
}

impl Default for NullBackend {
    fn default() -> Self {
        Self::new(NullCapabilities::default())
    }
}

impl Backend for NullBackend {
    fn capabilities(&self) -> Arc<dyn Capabilities> {
        self.capabilities.clone()
    }

    fn create_region(&mut self, id: RegionId, bytes: u64) -> Result<(), BackendError> {
        if self.capabilities.max_region_bytes.is_some_and(|most| bytes > most) {
            return Err(BackendError::OutOfMemory { backend: self.capabilities.name.clone(), bytes });
        }
        self.regions.create(id, bytes)
    }

    fn import_region(&mut self, id: RegionId, bytes: HostBytes) -> Result<(), BackendError> {
        self.regions.import(id, bytes)
    }

    fn drop_region(&mut self, id: RegionId) -> Result<(), BackendError> {
        self.regions.drop_region(id)
    }

    fn region_address(&self, id: RegionId) -> Option<usize> {
        self.regions.address(id)
    }

    fn write(&mut self, to: BufRef, bytes: &[u8]) -> Result<(), BackendError> {
        self.regions.write(to, bytes)
    }

    fn read(&self, from: BufRef, visit: &mut dyn FnMut(&[u8])) -> Result<(), BackendError> {
        visit(self.regions.bytes(from)?);
        Ok(())
    }

    fn fill(&mut self, to: BufRef, byte: u8) -> Result<(), BackendError> {
        self.regions.fill(to, byte)
    }

    fn copy(&mut self, from: BufRef, to: BufRef) -> Result<(), BackendError> {
        self.regions.copy(from, to)
    }

    fn run(&mut self, steps: &[Step], _dims: &BatchDims) -> Result<(), BackendError> {
        for step in steps {
            if !self.capabilities.supports(&step.kernel) {
                return Err(BackendError::Unsupported {
                    backend: self.capabilities.name.clone(),
                    step: step.name.clone(),
                    kernel: step.kernel.to_string(),
                });
            }
            self.steps_run.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), BackendError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_counted_and_large_regions_refused() {
        let answers = NullCapabilities { name: "small".into(), max_region_bytes: Some(1000), ..Default::default() };
        let mut backend = NullBackend::new(answers);
        let error = backend.create_region(RegionId(0), 1001).unwrap_err();
        assert_eq!(error, BackendError::OutOfMemory { backend: "small".into(), bytes: 1001 });
        backend.create_region(RegionId(0), 1000).unwrap();
        let counter = backend.steps_run();
        let steps = vec![crate::deferring::tests::add_step(0, 64, 128); 3];
        backend.run(&steps, &BatchDims { n_tokens: 1, n_outputs: 1 }).unwrap();
        assert_eq!(counter.load(Ordering::Relaxed), 3);
    }
}
