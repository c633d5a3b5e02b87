//! A step that has been checked. Takes steps and regions; gives [`Work`], whose pointers are known to lie in their
//! regions and whose shapes are known to fit; must not know how workers share it.
//!
//! Everything a kernel relies on is established here and in the ops' `check` functions, with one exception: numbers that
//! are data (ids, positions, cells) are checked by the kernel that uses them, which reports a [`Fault`].

use crate::ops::{attention, elementwise, embed, kv, norm, quantize, rope, select};
use crate::product::Product;
use crate::quantize::Q8_BLOCK;
use crate::region::Region;
use crate::scratch::Scratch;
use crate::simd::{Kernel, Simd, SimdLevel};
use minfer_backend::{BackendError, BufRef, Operand, Step};
use minfer_graph::{BatchDims, DType, Op, ValueType};
use std::fmt::Display;

/// Steps that are checked, then run, at a time.
pub(crate) const BATCH_STEPS: usize = 512;

/// A number in an input that points outside.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Fault {
    /// What the number is.
    pub what: &'static str,
    /// The number.
    pub got: i64,
    /// First number that does not fit.
    pub limit: u64,
}

impl Fault {
    /// The number as an index below `limit`.
    #[inline(always)]
    pub(crate) fn index(what: &'static str, got: i32, limit: usize) -> Result<usize, Fault> {
        match usize::try_from(got) {
            Ok(index) if index < limit => Ok(index),
            _ => Err(Fault { what, got: i64::from(got), limit: limit as u64 }),
        }
    }
}

/// One operation on checked operands. Phases follow each other behind a barrier; the items of one are independent.
pub(crate) trait Task {
    /// How many phases.
    fn phases(&self) -> usize {
        1
    }

    /// How many items the phase has.
    fn items(&self, phase: usize) -> usize;

    /// Readies a worker's scratch, before its first item of a phase.
    fn begin(&self, _scratch: &mut Scratch) {}

    /// Computes one item. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// The regions that the step was checked against exist and nobody else uses the bytes that it writes; items of one
    /// phase may run at the same time, each once.
    unsafe fn item<S: Simd>(&self, s: S, phase: usize, item: usize, scratch: &mut Scratch) -> Result<(), Fault>;
}

/// A checked step.
pub(crate) enum Work {
    Embed(embed::Embed),
    RopeTable(rope::RopeTable),
    RmsNorm(norm::RmsNorm),
    Product(Product),
    Rope(rope::Rope),
    KvStore(kv::KvStore),
    Attention(attention::Attention),
    Elementwise(elementwise::Elementwise),
    SelectRows(select::SelectRows),
    Quantize(quantize::Quantize),
}

struct Item<'a, T> {
    task: &'a T,
    phase: usize,
    item: usize,
    scratch: &'a mut Scratch,
}

impl<T: Task> Kernel for Item<'_, T> {
    type Out = Result<(), Fault>;

    #[inline(always)]
    fn call<S: Simd>(self, s: S) -> Self::Out {
        // SAFETY: items are made in `Work::run` only, whose caller promises what `Task::item` asks for.
        unsafe { self.task.item(s, self.phase, self.item, self.scratch) }
    }
}

/// Does the same with whatever task the work is.
macro_rules! each {
    ($work:expr, $task:ident => $do:expr) => {
        match $work {
            Work::Embed($task) => $do,
            Work::RopeTable($task) => $do,
            Work::RmsNorm($task) => $do,
            Work::Product($task) => $do,
            Work::Rope($task) => $do,
            Work::KvStore($task) => $do,
            Work::Attention($task) => $do,
            Work::Elementwise($task) => $do,
            Work::SelectRows($task) => $do,
            Work::Quantize($task) => $do,
        }
    };
}

impl Work {
    /// Checks a step. Steps without work of their own are refused: the planner was told that they are not supported.
    pub(crate) fn new(check: &Check<'_>) -> Result<Work, BackendError> {
        let kernel = &check.step.kernel;
        if !crate::capabilities::supports(kernel) {
            return Err(BackendError::Unsupported {
                backend: check.backend.into(),
                step: check.step.name.clone(),
                kernel: kernel.to_string(),
            });
        }
        check.operand_types()?;
        check.no_overlaps()?;
        Ok(match kernel.op {
            Op::Embed { scale } => Work::Embed(embed::Embed::check(check, scale)?),
            Op::RopeTable { n_dims, base, freq_scale } => {
                Work::RopeTable(rope::RopeTable::check(check, n_dims, base, freq_scale)?)
            }
            Op::RmsNorm { eps, group } => Work::RmsNorm(norm::RmsNorm::check(check, eps, group)?),
            Op::Linear | Op::LinearAdd | Op::GatedLinear { .. } | Op::QkvStore(_) => {
                Work::Product(Product::check(check)?)
            }
            Op::Rope { style, head_dim, n_dims } => Work::Rope(rope::Rope::check(check, style, head_dim, n_dims)?),
            Op::KvStore { head_dim, .. } => Work::KvStore(kv::KvStore::check(check, head_dim)?),
            Op::Attention(attention) => Work::Attention(attention::Attention::check(check, attention)?),
            Op::Activate(_) | Op::Add | Op::Mul => Work::Elementwise(elementwise::Elementwise::check(check)?),
            Op::SelectRows => Work::SelectRows(select::SelectRows::check(check)?),
            Op::Quantize => Work::Quantize(quantize::Quantize::check(check)?),
            Op::Input | Op::KvView { .. } | Op::Copy => unreachable!("not supported"),
        })
    }

    /// How many phases.
    pub(crate) fn phases(&self) -> usize {
        each!(self, task => task.phases())
    }

    /// How many items the phase has.
    pub(crate) fn items(&self, phase: usize) -> usize {
        each!(self, task => task.items(phase))
    }

    /// Readies a worker's scratch, before its first item of a phase.
    pub(crate) fn begin(&self, scratch: &mut Scratch) {
        each!(self, task => task.begin(scratch))
    }

    /// Computes one item.
    ///
    /// # Safety
    /// As for [`Task::item`], for which the worker has begun.
    pub(crate) unsafe fn run(
        &self,
        level: SimdLevel,
        phase: usize,
        item: usize,
        scratch: &mut Scratch,
    ) -> Result<(), Fault> {
        each!(self, task => level.run(Item { task, phase, item, scratch }))
    }
}

/// A value whose rows of this batch lie in its region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    /// First byte; a multiple of 4.
    pub start: *mut u8,
    /// Rows of this batch.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Element type.
    pub ty: ValueType,
}

/// A weight that lies in its region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    /// First byte, at any address.
    pub start: *const u8,
    /// Block format.
    pub dtype: DType,
    /// Rows.
    pub rows: usize,
    /// Columns: whole blocks.
    pub cols: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
}

/// A layer's KV regions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kv {
    /// Keys; a multiple of 4.
    pub k: *mut u8,
    /// Values; a multiple of 4.
    pub v: *mut u8,
    /// Type of the cells: floats, half floats or `q8_0`.
    pub ty: ValueType,
    /// Columns of a cell.
    pub cols: usize,
    /// Cells.
    pub n_cells: usize,
}

impl Kv {
    /// Whether keys are stored turned (see [`minfer_graph::CacheType::Q8_0`]).
    pub(crate) fn turns_keys(&self) -> bool {
        self.ty == ValueType::Q8_0
    }
}

/// A step to be checked, and what it is checked against.
pub(crate) struct Check<'a> {
    pub backend: &'static str,
    pub regions: &'a [Option<Region>],
    pub step: &'a Step,
    pub dims: &'a BatchDims,
}

impl Check<'_> {
    /// An operand that contradicts the kernel.
    pub(crate) fn bad(&self, what: &'static str, expected: impl Display, got: impl Display) -> BackendError {
        BackendError::BadOperand {
            backend: self.backend.into(),
            step: self.step.name.clone(),
            what,
            expected: expected.to_string(),
            got: got.to_string(),
        }
    }

    /// An error unless the two are the same.
    pub(crate) fn equal<T: PartialEq + Display>(
        &self,
        what: &'static str,
        expected: T,
        got: T,
    ) -> Result<(), BackendError> {
        if expected == got { Ok(()) } else { Err(self.bad(what, expected, got)) }
    }

    /// Address of `need` bytes at the start of a run, if the run lies in its region.
    fn bytes(&self, what: &'static str, buf: &BufRef, need: u64, write: bool) -> Result<*mut u8, BackendError> {
        let region = self.regions.get(buf.region.index()).and_then(Option::as_ref);
        let backend = || self.backend.to_string();
        let Some(region) = region else {
            return Err(BackendError::UnknownRegion { backend: backend(), region: buf.region.0 });
        };
        let end = buf.offset.saturating_add(buf.len);
        if end > region.len() {
            return Err(BackendError::OutOfBounds {
                backend: backend(),
                region: buf.region.0,
                offset: buf.offset,
                end,
                region_bytes: region.len(),
            });
        }
        if need > buf.len {
            return Err(self.bad(what, format!("at least {need} bytes"), buf.len));
        }
        if write && region.is_read_only() {
            return Err(BackendError::ReadOnly { backend: backend(), region: buf.region.0 });
        }
        // SAFETY: the offset is at most the region's length.
        Ok(unsafe { region.start().add(buf.offset as usize) })
    }

    fn value(&self, what: &'static str, operand: &Operand, write: bool) -> Result<Value, BackendError> {
        let need = self.dims.bytes(operand.shape, operand.ty);
        let start = self.bytes(what, &operand.buf, need, write)?;
        if !(start as usize).is_multiple_of(4) {
            return Err(self.bad(what, "at a multiple of 4 bytes", operand.buf.offset));
        }
        let rows = self.dims.rows(operand.shape.rows) as usize;
        Ok(Value { start, rows, cols: operand.shape.cols as usize, ty: operand.ty })
    }

    /// Input `index`, whose type is the kernel's.
    pub(crate) fn input(&self, index: usize) -> Result<Value, BackendError> {
        let operand =
            self.step.inputs.get(index).ok_or_else(|| self.bad("inputs", index + 1, self.step.inputs.len()))?;
        self.value("an input", operand, false)
    }

    /// Input `index` as a column of integers.
    pub(crate) fn column(&self, index: usize, rows: usize) -> Result<*const i32, BackendError> {
        let value = self.input(index)?;
        self.equal("columns of an index", 1, value.cols)?;
        self.equal("rows of an index", rows, value.rows)?;
        Ok(value.start.cast())
    }

    /// The output.
    pub(crate) fn output(&self) -> Result<Value, BackendError> {
        self.value("the output", &self.step.output, true)
    }

    /// Weight `index`.
    pub(crate) fn matrix(&self, index: usize) -> Result<Matrix, BackendError> {
        let weights = &self.step.weights;
        let weight = weights.get(index).ok_or_else(|| self.bad("weights", index + 1, weights.len()))?;
        let (rows, cols) = (weight.rows as usize, weight.cols as usize);
        let row_bytes = weight.dtype.row_bytes(cols);
        let row_bytes = row_bytes.ok_or_else(|| self.bad("columns of a weight", "whole blocks", cols))?;
        let need = (rows as u64).checked_mul(row_bytes as u64);
        let need = need.ok_or_else(|| self.bad("rows of a weight", "fewer", rows))?;
        let start = self.bytes("a weight", &weight.buf, need, false)?;
        Ok(Matrix { start, dtype: weight.dtype, rows, cols, row_bytes })
    }

    /// Weight `index` as a vector of floats, at any address.
    pub(crate) fn vector(&self, index: usize, cols: usize) -> Result<*const f32, BackendError> {
        let weight = self.matrix(index)?;
        self.equal("elements of a weight", cols, weight.cols * weight.rows)?;
        Ok(weight.start.cast())
    }

    /// The KV regions, whose cells have `cols` columns.
    /// `run`: elements that are read or written together, whole blocks of the cells' type.
    pub(crate) fn kv(&self, cols: usize, run: usize, write: bool) -> Result<Kv, BackendError> {
        let Some(kv) = &self.step.kv else { return Err(self.bad("kv", "a pair of regions", "none")) };
        self.equal("columns of a KV cell", cols, kv.cols as usize)?;
        if kv.ty == ValueType::Q8_0 {
            self.equal("elements beyond whole blocks of 32", 0, run % Q8_BLOCK)?;
        }
        if !matches!(kv.ty, ValueType::F32 | ValueType::F16 | ValueType::Q8_0) {
            return Err(self.bad("type of the KV cells", "f32, f16 or q8_0", kv.ty));
        }
        let need = u64::from(kv.n_cells) * kv.ty.row_bytes(kv.cols);
        let k = self.bytes("K", &kv.k, need, write)?;
        let v = self.bytes("V", &kv.v, need, write)?;
        if !(k as usize | v as usize).is_multiple_of(4) {
            return Err(self.bad("KV regions", "at multiples of 4 bytes", kv.k.offset | kv.v.offset));
        }
        Ok(Kv { k, v, ty: kv.ty, cols, n_cells: kv.n_cells as usize })
    }

    /// The workspace, if there is one of at least `need` bytes.
    pub(crate) fn workspace(&self, need: u64) -> Result<Option<*mut u8>, BackendError> {
        match &self.step.workspace {
            Some(buf) if need > 0 && buf.len >= need => {
                let start = self.bytes("the workspace", buf, need, true)?;
                Ok((start as usize).is_multiple_of(4).then_some(start))
            }
            _ => Ok(None),
        }
    }

    /// Operands have the types in the kernel, which were found to be supported.
    fn operand_types(&self) -> Result<(), BackendError> {
        let step = self.step;
        self.equal("inputs", step.kernel.inputs.len(), step.inputs.len())?;
        self.equal("weights", step.kernel.weights.len(), step.weights.len())?;
        for (expected, operand) in step.kernel.inputs.iter().zip(&step.inputs) {
            self.equal("type of an input", *expected, operand.ty)?;
        }
        for (expected, weight) in step.kernel.weights.iter().zip(&step.weights) {
            self.equal("format of a weight", *expected, weight.dtype)?;
        }
        self.equal("type of the output", step.kernel.output, step.output.ty)
    }

    /// What the step writes shares no byte with what it reads, but for an output in the place of an input of the same
    /// layout that the operation can overwrite.
    fn no_overlaps(&self) -> Result<(), BackendError> {
        let step = self.step;
        let op = step.kernel.op;
        let kv = step.kv.iter().flat_map(|kv| [kv.k, kv.v]);
        // The value of a store is the K region itself; the views of attention are the KV regions themselves.
        let output = (!op.lives_in_kv()).then_some(step.output.buf);
        let inputs = step.inputs.iter().enumerate();
        let is_view = |index: usize| matches!(op, Op::Attention(_)) && (index == 1 || index == 2);
        let inputs = inputs.filter(|(index, _)| !is_view(*index));
        let same_layout = |input: &Operand| {
            let out = &step.output;
            (input.buf.offset, input.shape, input.ty) == (out.buf.offset, out.shape, out.ty)
        };
        let writes = [output, step.workspace];
        let written_kv = kv.clone().filter(|_| op.writes_kv());
        for written in writes.into_iter().flatten().chain(written_kv) {
            let overlaps = |buf: &BufRef| overlap(&written, buf);
            for (index, input) in inputs.clone() {
                let in_place = Some(written) == output && op.in_place_inputs().contains(&index) && same_layout(input);
                if overlaps(&input.buf) && !in_place {
                    return Err(self.bad("an input", "apart from what the step writes", format!("{:?}", input.buf)));
                }
            }
            if let Some(weight) = step.weights.iter().find(|weight| overlaps(&weight.buf)) {
                return Err(self.bad("a weight", "apart from what the step writes", format!("{:?}", weight.buf)));
            }
        }
        let [Some(first), Some(second)] = writes else { return self.kv_apart(output, step.workspace) };
        if overlap(&first, &second) {
            return Err(self.bad("the workspace", "apart from the output", format!("{second:?}")));
        }
        self.kv_apart(output, step.workspace)
    }

    /// The KV regions are two, and neither output nor workspace lie in them.
    fn kv_apart(&self, output: Option<BufRef>, workspace: Option<BufRef>) -> Result<(), BackendError> {
        let Some(kv) = &self.step.kv else { return Ok(()) };
        let written = output.into_iter().chain(workspace);
        let meets = written.into_iter().any(|buf| overlap(&buf, &kv.k) || overlap(&buf, &kv.v));
        if meets || overlap(&kv.k, &kv.v) {
            return Err(self.bad("kv", "two regions apart from what else the step writes", format!("{kv:?}")));
        }
        Ok(())
    }
}

/// Whether two runs share a byte. Ends saturate: runs that wrap are refused elsewhere.
fn overlap(a: &BufRef, b: &BufRef) -> bool {
    let end = |buf: &BufRef| buf.offset.saturating_add(buf.len);
    a.region == b.region && a.offset < end(b) && b.offset < end(a)
}
