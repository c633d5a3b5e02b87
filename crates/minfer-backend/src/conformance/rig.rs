//! Runs one case on one backend. Takes the case; lays its values out in regions, with NaN in every byte that is nobody's;
//! gives the bytes of the value and of the KV regions, or what the backend did to bytes that are not its own.

use super::case::{Case, Input};
use crate::backend::{Backend, BackendError};
use crate::buffer::{BackendId, BufRef, RegionId};
use crate::step::{KvPair, Operand, Step, WeightOperand};
use minfer_graph::{CacheType, Fusion, GraphKind, GraphParams, KV_BLOCK_CELLS, KvSide, Rows, Shape, ValueType};
use std::sync::Arc;

const WEIGHTS: RegionId = RegionId(0);
const ARENA: RegionId = RegionId(1);
const K: RegionId = RegionId(2);
const V: RegionId = RegionId(3);

/// Bytes between two values that nobody may touch.
const GUARD: u64 = 64;

/// What a step left behind.
pub struct Outcome {
    /// The value's rows in this batch; empty where it lives in a KV region.
    pub value: Vec<u8>,
    pub k: Vec<u8>,
    pub v: Vec<u8>,
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// The backend's error.
    #[error("{0}")]
    Backend(#[from] BackendError),
    /// A byte outside the value and the scratch changed.
    #[error("byte {offset} of the arena changed, which is neither the value's nor scratch")]
    Strayed {
        /// The first such byte.
        offset: usize,
    },
    /// Bytes read before `synchronize` were neither refused nor final.
    #[error("a read before synchronize showed bytes that changed later")]
    ReadTooEarly,
}

/// Runs the case in fresh regions and frees them; the value takes over the bytes of input `in_place`.
pub fn run(backend: &mut dyn Backend, case: &Case, in_place: Option<usize>) -> Result<Outcome, RigError> {
    let outcome = run_in_regions(backend, case, in_place);
    let _ = backend.synchronize();
    for id in [WEIGHTS, ARENA, K, V] {
        let _ = backend.drop_region(id);
    }
    outcome
}

fn buf(region: RegionId, offset: u64, len: u64) -> BufRef {
    BufRef { backend: BackendId(0), region, offset, len }
}

/// Places values one after another.
struct Layout {
    alignment: u64,
    end: u64,
}

impl Layout {
    fn place(&mut self, len: u64) -> BufRef {
        let offset = (self.end + GUARD).next_multiple_of(self.alignment.max(1));
        self.end = offset + len;
        buf(ARENA, offset, len)
    }
}

fn run_in_regions(backend: &mut dyn Backend, case: &Case, in_place: Option<usize>) -> Result<Outcome, RigError> {
    let (mut step, layout_end) = lay_out(backend, case, in_place);
    let mut weights = Vec::new();
    for (operand, weight) in step.weights.iter_mut().zip(&case.weights) {
        weights.resize(weights.len().next_multiple_of(32), 0); // as tensors are aligned in a file
        operand.buf = buf(WEIGHTS, weights.len() as u64, weight.bytes.len() as u64);
        weights.extend(&weight.bytes);
    }
    backend.import_region(WEIGHTS, Arc::new(weights))?;
    backend.create_region(ARENA, layout_end)?;
    backend.fill(buf(ARENA, 0, layout_end), 0xFF)?;
    if let (Some(kv), Some(pair)) = (&case.kv, &step.kv) {
        backend.create_region(K, pair.k.len)?;
        backend.create_region(V, pair.v.len)?;
        backend.write(pair.k, &kv.k)?;
        backend.write(pair.v, &kv.v)?;
    }
    for (operand, input) in step.inputs.iter().zip(&case.inputs) {
        if let Input::Value { bytes, .. } = input {
            backend.write(operand.buf, bytes)?;
        }
    }
    let before = read(backend, buf(ARENA, 0, layout_end))?;
    backend.run(std::slice::from_ref(&step), &case.dims)?;
    let in_arena = step.output.buf.region == ARENA;
    let used = buf(step.output.buf.region, step.output.buf.offset, case.dims.bytes(case.output.shape, case.output.ty));
    let early = if in_arena { read(backend, used).ok() } else { None };
    backend.synchronize()?;
    let after = read(backend, buf(ARENA, 0, layout_end))?;
    let own = |offset: usize, buf: &BufRef| buf.region == ARENA && (buf.offset..buf.end()).contains(&(offset as u64));
    let strayed = (0..after.len()).find(|&offset| {
        let free = own(offset, &step.output.buf) || step.workspace.as_ref().is_some_and(|buf| own(offset, buf));
        before[offset] != after[offset] && !free
    });
    if let Some(offset) = strayed {
        return Err(RigError::Strayed { offset });
    }
    let value = if in_arena { read(backend, used)? } else { vec![] };
    if early.is_some_and(|early| early != value) {
        return Err(RigError::ReadTooEarly);
    }
    let side = |buf: Option<BufRef>| buf.map_or(Ok(vec![]), |buf| read(backend, buf));
    Ok(Outcome { value, k: side(step.kv.map(|kv| kv.k))?, v: side(step.kv.map(|kv| kv.v))? })
}

/// The step, with offsets in the arena, and the arena's size. Weights have no place yet.
fn lay_out(backend: &dyn Backend, case: &Case, in_place: Option<usize>) -> (Step, u64) {
    let capabilities = backend.capabilities();
    let kernel = case.kernel();
    let mut layout = Layout { alignment: capabilities.alignment(), end: 0 };
    let kv = case.kv.as_ref().map(|kv| {
        let side = |region| buf(region, 0, kv.k.len() as u64);
        KvPair { k: side(K), v: side(V), ty: kv.ty, cols: kv.cols as u32, n_cells: kv.n_cells as u32 }
    });
    let view = |side: KvSide| {
        let kv = kv.expect("a case with a view has KV regions");
        let shape = Shape::new(Rows::Fixed(kv.n_cells), kv.cols);
        Operand { buf: if side == KvSide::K { kv.k } else { kv.v }, shape, ty: kv.ty }
    };
    let inputs: Vec<Operand> = case
        .inputs
        .iter()
        .map(|input| match input {
            Input::Value { shape, ty, .. } => {
                Operand { buf: layout.place(case.capacity.bytes(*shape, *ty)), shape: *shape, ty: *ty }
            }
            Input::View(side) => view(*side),
        })
        .collect();
    let output = match in_place {
        _ if case.op.lives_in_kv() => view(KvSide::K),
        Some(input) => Operand { buf: inputs[input].buf, shape: case.output.shape, ty: case.output.ty },
        None => {
            let len = case.capacity.bytes(case.output.shape, case.output.ty);
            Operand { buf: layout.place(len), shape: case.output.shape, ty: case.output.ty }
        }
    };
    let scratch = capabilities.workspace_bytes(&kernel, case.output.shape, &params(case));
    let workspace = (scratch > 0).then(|| layout.place(scratch));
    let weights = case.weights.iter().map(|w| WeightOperand {
        buf: buf(WEIGHTS, 0, 0),
        dtype: w.dtype,
        rows: w.rows as u32,
        cols: w.cols as u32,
    });
    let step = Step {
        node: 0,
        name: "case".into(),
        backend: BackendId(0),
        kernel,
        inputs,
        weights: weights.collect(),
        output,
        workspace,
        kv,
    };
    (step, layout.end + GUARD)
}

/// The parameters that a graph of this case would have.
fn params(case: &Case) -> GraphParams {
    let table = case.inputs.get(5).and_then(|input| match input {
        Input::Value { shape, .. } => Some(*shape),
        Input::View(_) => None,
    });
    GraphParams {
        kind: if case.capacity.n_tokens > 1 { GraphKind::Prefill } else { GraphKind::Decode },
        token_capacity: case.capacity.n_tokens,
        batch_capacity: case.capacity.n_tokens,
        output_capacity: case.capacity.n_outputs,
        sequence_capacity: table.map_or(1, |table| case.capacity.rows(table.rows)),
        n_ctx: table.map_or(KV_BLOCK_CELLS, |table| table.cols * KV_BLOCK_CELLS),
        n_cells: case.kv.as_ref().map_or(KV_BLOCK_CELLS, |kv| kv.n_cells as u32),
        cache_type: match case.kv.as_ref().map(|kv| kv.ty) {
            Some(ValueType::F16) => CacheType::F16,
            Some(ValueType::Q8_0) => CacheType::Q8_0,
            _ => CacheType::F32,
        },
        fusion: Fusion::ALL,
        weights_version: 0,
    }
}

fn read(backend: &dyn Backend, buf: BufRef) -> Result<Vec<u8>, BackendError> {
    let mut copy = Vec::new();
    backend.read(buf, &mut |bytes| copy.extend_from_slice(bytes))?;
    Ok(copy)
}
