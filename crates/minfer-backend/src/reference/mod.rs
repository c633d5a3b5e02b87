//! The reference backend: every operation in plain scalar loops, to be checked against the formulas in `op.rs` by
//! reading. Takes steps on host memory; gives the values against which every other backend is judged. Must not know
//! SIMD or any trick: sums of norms and softmax, rope angles and gate functions are taken in f64, dots nearly so.

mod attention;
mod capabilities;
mod compute;
mod operands;
mod parallel;
mod product;
pub mod q8;
mod simple;
#[cfg(test)]
mod tests;

use crate::backend::{Backend, BackendError, HostBytes};
use crate::buffer::{BufRef, RegionId};
use crate::capabilities::Capabilities;
use crate::host::HostRegions;
use crate::step::{KvPair, Operand, Step};
use capabilities::ReferenceCapabilities;
use compute::{StoredCells, Written, compute};
use minfer_graph::{BatchDims, Op, ValueType};
use operands::Operands;
use std::sync::Arc;

/// Scalar f32 on host memory; correct, and fast enough to run a small model.
///
/// A step's value is computed beside the regions and then written, so it may share bytes with any input. A step that
/// fails writes nothing.
pub struct ReferenceBackend {
    capabilities: Arc<ReferenceCapabilities>,
    regions: HostRegions,
    threads: usize,
}

impl ReferenceBackend {
    /// Named `reference`, with a priority below every other backend, on as many threads as the machine offers.
    pub fn new() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let name = "reference".to_string();
        let capabilities = ReferenceCapabilities { name: name.clone(), priority: -100 };
        Self { capabilities: Arc::new(capabilities), regions: HostRegions::new(name), threads }
    }

    /// On this many threads (at least one); results do not depend on it.
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    fn run_step(&mut self, step: &Step, dims: &BatchDims) -> Result<(), BackendError> {
        if !self.capabilities.supports(&step.kernel) {
            return Err(self.unsupported(step));
        }
        if step.kernel.op == Op::Copy {
            return self.run_copy(step, dims);
        }
        let operands = Operands { backend: &self.capabilities.name, regions: &self.regions, step, dims };
        for (what, typed) in [("number of inputs", step.inputs.len()), ("number of weights", step.weights.len())] {
            let stated = if what.ends_with("inputs") { step.kernel.inputs.len() } else { step.kernel.weights.len() };
            operands.equal(what, stated, typed)?;
        }
        if step.output.ty != step.kernel.output {
            return Err(operands.bad("type of the value", step.kernel.output, step.output.ty));
        }
        let written = compute(&operands, self.threads)?;
        if let Some(value) = &written.value {
            operands.equal("elements of the value", operands.out_rows() * operands.out_cols(), value.len())?;
            operands.at_least("the value", dims.bytes(step.output.shape, step.output.ty), step.output.buf.len)?;
            if step.output.ty.is_quantised() {
                operands.multiple_of_32("the value", operands.out_cols())?;
            }
        }
        self.commit(step, written, dims)
    }

    /// A copy on this backend.
    fn run_copy(&mut self, step: &Step, dims: &BatchDims) -> Result<(), BackendError> {
        let from = step.inputs.first().filter(|from| from.buf.backend == step.output.buf.backend);
        let Some(from) = from else { return Err(self.unsupported(step)) };
        let len = dims.bytes(step.output.shape, step.output.ty);
        let operands = Operands { backend: &self.capabilities.name, regions: &self.regions, step, dims };
        operands.at_least("the source", len, from.buf.len)?;
        operands.at_least("the copy", len, step.output.buf.len)?;
        self.regions.copy(BufRef { len, ..from.buf }, BufRef { len, ..step.output.buf })
    }

    /// Writes what a step computed.
    fn commit(&mut self, step: &Step, written: Written, dims: &BatchDims) -> Result<(), BackendError> {
        if let (Some(stored), Some(kv)) = (&written.cells, &step.kv) {
            // Both regions are looked at before either changes.
            self.regions.bytes_mut(kv.k)?;
            self.regions.bytes_mut(kv.v)?;
            self.store(kv, kv.k, stored, &stored.k)?;
            self.store(kv, kv.v, stored, &stored.v)?;
        }
        let Some(value) = written.value else { return Ok(()) };
        let Operand { buf, shape, ty } = step.output;
        let bytes = self.regions.bytes_mut(BufRef { len: dims.bytes(shape, ty), ..buf })?;
        let cols = shape.cols.max(1) as usize;
        match ty {
            ValueType::Q8 | ValueType::Q8x2 => {
                let rows = bytes.chunks_exact_mut(ty.row_bytes(shape.cols).max(1) as usize);
                rows.zip(value.chunks_exact(cols)).for_each(|(row, values)| q8::quantize(ty, values, row));
            }
            _ => bytes.copy_from_slice(bytemuck::cast_slice(&value)),
        }
        Ok(())
    }

    /// Writes rows of floats to their cells in one region, rounded to its type.
    fn store(&mut self, kv: &KvPair, side: BufRef, stored: &StoredCells, rows: &[f32]) -> Result<(), BackendError> {
        let row_bytes = kv.ty.row_bytes(kv.cols) as usize;
        let bytes = self.regions.bytes_mut(side)?;
        for (&cell, row) in stored.cells.iter().zip(rows.chunks_exact(kv.cols.max(1) as usize)) {
            let target = &mut bytes[cell * row_bytes..][..row_bytes];
            match kv.ty {
                ValueType::F16 => {
                    let rounded: Vec<half::f16> = row.iter().map(|&v| half::f16::from_f32(v)).collect();
                    target.copy_from_slice(bytemuck::cast_slice(&rounded));
                }
                _ => target.copy_from_slice(bytemuck::cast_slice(row)),
            }
        }
        Ok(())
    }

    fn unsupported(&self, step: &Step) -> BackendError {
        BackendError::Unsupported {
            backend: self.capabilities.name.clone(),
            step: step.name.clone(),
            kernel: step.kernel.to_string(),
        }
    }
}

impl Default for ReferenceBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl Backend for ReferenceBackend {
    fn capabilities(&self) -> Arc<dyn Capabilities> {
        self.capabilities.clone()
    }

    fn create_region(&mut self, id: RegionId, bytes: u64) -> Result<(), BackendError> {
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

    fn run(&mut self, steps: &[Step], dims: &BatchDims) -> Result<(), BackendError> {
        steps.iter().try_for_each(|step| self.run_step(step, dims))
    }

    fn synchronize(&mut self) -> Result<(), BackendError> {
        Ok(())
    }
}
