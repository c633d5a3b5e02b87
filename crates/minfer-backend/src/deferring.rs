//! A backend that only queues until it is synchronised, with its memory poisoned until then: what a device does, made
//! visible. Takes any backend and steps; gives the same values after `synchronize`, and an error to whoever reads
//! before. Must not know operations beyond which bytes they write.

use crate::backend::{Backend, BackendError, HostBytes};
use crate::buffer::{BufRef, RegionId};
use crate::capabilities::Capabilities;
use crate::kernel::Kernel;
use crate::reference::ReferenceBackend;
use crate::step::Step;
use minfer_graph::{BatchDims, DType, GraphParams, Shape, ValueType};
use std::sync::Arc;

/// What fills the bytes of a queued value: a NaN as f32, f16 or scale of 8-bit levels, -1 as an integer.
const POISON: u8 = 0xFF;

/// One thing to do, in order.
enum Queued {
    Step(Box<Step>, BatchDims),
    Write(BufRef, Vec<u8>),
    Fill(BufRef, u8),
    Copy(BufRef, BufRef),
}

impl Queued {
    /// The bytes it writes.
    fn writes(&self) -> impl Iterator<Item = BufRef> + '_ {
        let (output, kv) = match self {
            Queued::Step(step, _) => (step.output.buf, step.kv.filter(|_| step.kernel.op.writes_kv())),
            Queued::Write(to, _) | Queued::Fill(to, _) | Queued::Copy(_, to) => (*to, None),
        };
        std::iter::once(output).chain(kv.into_iter().flat_map(|kv| [kv.k, kv.v]))
    }

    /// The bytes it reads.
    fn reads(&self) -> Vec<BufRef> {
        match self {
            Queued::Step(step, _) => {
                let weights = step.weights.iter().map(|weight| weight.buf);
                let kv = step.kv.into_iter().flat_map(|kv| [kv.k, kv.v]);
                step.inputs.iter().map(|input| input.buf).chain(weights).chain(kv).collect()
            }
            Queued::Copy(from, _) => vec![*from],
            Queued::Write(..) | Queued::Fill(..) => vec![],
        }
    }

    fn touches(&self, buf: BufRef) -> bool {
        self.writes().any(|other| share_bytes(buf, other)) || self.reads().iter().any(|other| share_bytes(buf, *other))
    }
}

/// Whether two runs of one backend share a byte; like [`BufRef::overlaps`], but blind to the backend's id.
fn share_bytes(a: BufRef, b: BufRef) -> bool {
    a.region == b.region && a.offset < b.end() && b.offset < a.end()
}

/// Queues what another backend would run.
///
/// Host writes to bytes that no queued step touches happen at once; others are queued behind it. Errors of a step are
/// those of `synchronize`, which then forgets the rest of the queue.
pub struct DeferringBackend<B> {
    inner: B,
    capabilities: Arc<DeferringCapabilities>,
    queue: Vec<Queued>,
}

impl DeferringBackend<ReferenceBackend> {
    /// Around the reference backend.
    pub fn reference() -> Self {
        Self::new(ReferenceBackend::new())
    }
}

impl<B: Backend> DeferringBackend<B> {
    /// Around any backend; named `deferring`, with the inner backend's priority.
    pub fn new(inner: B) -> Self {
        let answers = inner.capabilities();
        let (name, priority) = ("deferring".to_string(), answers.priority());
        let capabilities = DeferringCapabilities { name, priority, filter: |_| true, inner: answers };
        Self { inner, capabilities: Arc::new(capabilities), queue: Vec::new() }
    }

    /// With this name.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.capabilities).name = name.into();
        self
    }

    /// With this priority.
    pub fn with_priority(mut self, priority: i32) -> Self {
        Arc::make_mut(&mut self.capabilities).priority = priority;
        self
    }

    /// Supporting only the inner backend's kernels that pass `filter`.
    pub fn with_filter(mut self, filter: fn(&Kernel) -> bool) -> Self {
        Arc::make_mut(&mut self.capabilities).filter = filter;
        self
    }

    /// Steps and writes that wait for `synchronize`.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    fn pending(&self) -> BackendError {
        BackendError::Pending { backend: self.capabilities.name.clone() }
    }

    fn is_touched(&self, buf: BufRef) -> bool {
        self.queue.iter().any(|queued| queued.touches(buf))
    }

    /// Poisons the step's value, unless a queued step (this one included) still reads those bytes, or the value lives in
    /// a KV region, most of whose cells keep what they hold.
    fn poison(&mut self, step: &Step) -> Result<(), BackendError> {
        let output = step.output.buf;
        let is_read = self.queue.iter().any(|queued| queued.reads().iter().any(|read| share_bytes(*read, output)));
        if is_read || step.kernel.op.lives_in_kv() {
            return Ok(());
        }
        self.inner.fill(output, POISON)
    }
}

impl<B: Backend> Backend for DeferringBackend<B> {
    fn capabilities(&self) -> Arc<dyn Capabilities> {
        self.capabilities.clone()
    }

    fn create_region(&mut self, id: RegionId, bytes: u64) -> Result<(), BackendError> {
        self.inner.create_region(id, bytes)
    }

    fn import_region(&mut self, id: RegionId, bytes: HostBytes) -> Result<(), BackendError> {
        self.inner.import_region(id, bytes)
    }

    fn drop_region(&mut self, id: RegionId) -> Result<(), BackendError> {
        let (backend, offset, len) = (crate::BackendId(0), 0, u64::MAX);
        if self.is_touched(BufRef { backend, region: id, offset, len }) {
            return Err(self.pending());
        }
        self.inner.drop_region(id)
    }

    fn region_address(&self, id: RegionId) -> Option<usize> {
        self.inner.region_address(id)
    }

    fn write(&mut self, to: BufRef, bytes: &[u8]) -> Result<(), BackendError> {
        if !self.is_touched(to) || bytes.len() as u64 > to.len {
            return self.inner.write(to, bytes);
        }
        self.inner.read(to, &mut |_| ())?;
        self.queue.push(Queued::Write(to, bytes.to_vec()));
        Ok(())
    }

    fn read(&self, from: BufRef, visit: &mut dyn FnMut(&[u8])) -> Result<(), BackendError> {
        if self.queue.iter().any(|queued| queued.writes().any(|written| share_bytes(written, from))) {
            return Err(self.pending());
        }
        self.inner.read(from, visit)
    }

    fn fill(&mut self, to: BufRef, byte: u8) -> Result<(), BackendError> {
        if !self.is_touched(to) {
            return self.inner.fill(to, byte);
        }
        self.inner.read(to, &mut |_| ())?;
        self.queue.push(Queued::Fill(to, byte));
        Ok(())
    }

    fn copy(&mut self, from: BufRef, to: BufRef) -> Result<(), BackendError> {
        if !self.is_touched(from) && !self.is_touched(to) {
            return self.inner.copy(from, to);
        }
        self.inner.read(from, &mut |_| ())?;
        self.inner.read(to, &mut |_| ())?;
        self.queue.push(Queued::Copy(from, to));
        Ok(())
    }

    fn run(&mut self, steps: &[Step], dims: &BatchDims) -> Result<(), BackendError> {
        for step in steps {
            if !self.capabilities.supports(&step.kernel) {
                return Err(BackendError::Unsupported {
                    backend: self.capabilities.name.clone(),
                    step: step.name.clone(),
                    kernel: step.kernel.to_string(),
                });
            }
            self.queue.push(Queued::Step(Box::new(step.clone()), *dims));
            if let Err(error) = self.poison(step) {
                self.queue.pop();
                return Err(error);
            }
        }
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), BackendError> {
        for queued in std::mem::take(&mut self.queue) {
            match queued {
                Queued::Step(step, dims) => self.inner.run(std::slice::from_ref(&*step), &dims)?,
                Queued::Write(to, bytes) => self.inner.write(to, &bytes)?,
                Queued::Fill(to, byte) => self.inner.fill(to, byte)?,
                Queued::Copy(from, to) => self.inner.copy(from, to)?,
            }
        }
        self.inner.synchronize()
    }
}

/// The inner backend's answers under another name, for fewer kernels.
#[derive(Clone)]
struct DeferringCapabilities {
    name: String,
    priority: i32,
    filter: fn(&Kernel) -> bool,
    inner: Arc<dyn Capabilities>,
}

impl Capabilities for DeferringCapabilities {
    fn name(&self) -> &str {
        &self.name
    }

    fn priority(&self) -> i32 {
        self.priority
    }

    fn supports(&self, kernel: &Kernel) -> bool {
        self.inner.supports(kernel) && (self.filter)(kernel)
    }

    fn activation_type(&self, weight: DType, lasting: bool) -> ValueType {
        self.inner.activation_type(weight, lasting)
    }

    fn workspace_bytes(&self, kernel: &Kernel, output: Shape, params: &GraphParams) -> u64 {
        self.inner.workspace_bytes(kernel, output, params)
    }

    fn alignment(&self) -> u64 {
        self.inner.alignment()
    }

    fn fixed_bytes(&self) -> u64 {
        self.inner.fixed_bytes()
    }

    fn max_region_bytes(&self) -> Option<u64> {
        self.inner.max_region_bytes()
    }
}

#[cfg(test)]
#[path = "deferring_tests.rs"]
pub(crate) mod tests;
