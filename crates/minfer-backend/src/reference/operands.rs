//! The operands of a step as plain numbers. Takes a step and the regions; gives vectors, matrices and cells, or the error
//! of the contract; writes nothing.

use super::attention::Cells;
use super::parallel::Failed;
use super::product::Matrix;
use super::q8;
use crate::backend::BackendError;
use crate::buffer::BufRef;
use crate::host::{HostRegions, numbers};
use crate::step::{KvPair, Operand, Step};
use minfer_graph::{BatchDims, KV_BLOCK_CELLS, ValueType};
use std::fmt::Display;

/// A step, seen with the regions its operands lie in.
pub struct Operands<'a> {
    pub backend: &'a str,
    pub regions: &'a HostRegions,
    pub step: &'a Step,
    pub dims: &'a BatchDims,
}

impl<'a> Operands<'a> {
    /// Rows of the step's value in this batch.
    pub fn out_rows(&self) -> usize {
        self.dims.rows(self.step.output.shape.rows) as usize
    }

    /// Columns of the step's value.
    pub fn out_cols(&self) -> usize {
        self.step.output.shape.cols as usize
    }

    /// The bytes of an operand's rows in this batch.
    pub fn bytes(&self, what: &'static str, operand: &Operand) -> Result<&'a [u8], BackendError> {
        self.run(what, operand.buf, self.dims.bytes(operand.shape, operand.ty))
    }

    /// The first `needed` bytes of a run.
    fn run(&self, what: &'static str, buf: BufRef, needed: u64) -> Result<&'a [u8], BackendError> {
        self.at_least(what, needed, buf.len)?;
        self.regions.bytes(BufRef { len: needed, ..buf })
    }

    /// Input `index`, of type `ty`.
    fn input(&self, what: &'static str, index: usize, types: &[ValueType]) -> Result<&'a Operand, BackendError> {
        let missing = || self.bad(what, "an input", "none");
        let input = self.step.inputs.get(index).ok_or_else(missing)?;
        if !types.contains(&input.ty) {
            return Err(self.bad(what, types[0], input.ty));
        }
        Ok(input)
    }

    /// Input `index` as rows of `cols` floats, as many as the value has; quantised ones are dequantised.
    pub fn floats(&self, what: &'static str, index: usize, cols: usize) -> Result<Vec<f32>, BackendError> {
        let input = self.input(what, index, &[ValueType::F32, ValueType::Q8, ValueType::Q8x2])?;
        self.equal(what, self.out_rows(), self.dims.rows(input.shape.rows) as usize)?;
        self.rows_of(what, input, cols)
    }

    /// Input `index` as rows of `cols` floats, as many as it has.
    pub fn all_floats(&self, what: &'static str, index: usize, cols: usize) -> Result<Vec<f32>, BackendError> {
        let input = self.input(what, index, &[ValueType::F32])?;
        self.rows_of(what, input, cols)
    }

    fn rows_of(&self, what: &'static str, input: &Operand, cols: usize) -> Result<Vec<f32>, BackendError> {
        self.equal(what, cols, input.shape.cols as usize)?;
        let bytes = self.bytes(what, input)?;
        if input.ty == ValueType::F32 {
            return Ok(numbers::<f32>(bytes).into_owned());
        }
        self.multiple_of_32(what, cols)?;
        let mut values = vec![0.0; self.dims.rows(input.shape.rows) as usize * cols];
        let row_bytes = input.ty.row_bytes(input.shape.cols).max(1) as usize;
        for (values, row) in values.chunks_exact_mut(cols.max(1)).zip(bytes.chunks_exact(row_bytes)) {
            q8::dequantize(input.ty, row, values);
        }
        Ok(values)
    }

    /// Input `index` as one integer for each row of the value.
    pub fn integers(&self, what: &'static str, index: usize, rows: usize) -> Result<Vec<i32>, BackendError> {
        let input = self.input(what, index, &[ValueType::I32])?;
        self.equal(what, 1, input.shape.cols as usize)?;
        self.equal(what, rows, self.dims.rows(input.shape.rows) as usize)?;
        Ok(numbers::<i32>(self.bytes(what, input)?).into_owned())
    }

    /// Input `index` as one integer for each row of the value, each in `0..limit`.
    pub fn indices(
        &self,
        what: &'static str,
        index: usize,
        rows: usize,
        limit: u64,
    ) -> Result<Vec<usize>, BackendError> {
        let integers = self.integers(what, index, rows)?;
        integers.into_iter().map(|got| self.in_range(what, got, limit)).collect()
    }

    /// Weight `index` as a matrix.
    pub fn matrix(&self, index: usize) -> Result<Matrix<'a>, BackendError> {
        let what = "a weight";
        let weight = self.step.weights.get(index).ok_or_else(|| self.bad(what, "given", "missing"))?;
        let (rows, cols) = (weight.rows as usize, weight.cols as usize);
        let blocks = || self.bad("columns of a weight", format!("whole blocks of {}", weight.dtype), cols);
        let row_bytes = weight.dtype.row_bytes(cols).filter(|&bytes| bytes > 0).ok_or_else(blocks)?;
        let bytes = self.run(what, weight.buf, (row_bytes as u64).saturating_mul(rows as u64))?;
        Ok(Matrix { bytes, dtype: weight.dtype, rows, cols, row_bytes })
    }

    /// Weight `index` as one row of `cols` floats.
    pub fn vector(&self, index: usize, cols: usize) -> Result<Vec<f32>, BackendError> {
        let matrix = self.matrix(index)?;
        self.equal("elements of a vector", cols, matrix.cols)?;
        self.equal("rows of a vector", 1, matrix.rows)?;
        let mut values = vec![0.0; cols];
        matrix.decode(0, &mut values).map_err(|error| self.failed(error))?;
        Ok(values)
    }

    /// The layer's KV regions, whose cells must have `cols` columns.
    pub fn kv(&self, cols: usize) -> Result<(&'a KvPair, Cells<'a>, Cells<'a>), BackendError> {
        let kv = self.step.kv.as_ref().ok_or_else(|| self.bad("KV regions", "given", "missing"))?;
        self.equal("columns of a KV cell", cols, kv.cols as usize)?;
        if !matches!(kv.ty, ValueType::F32 | ValueType::F16) {
            return Err(self.bad("type of the KV cells", "f32 or f16", kv.ty));
        }
        let needed = kv.ty.row_bytes(kv.cols).saturating_mul(u64::from(kv.n_cells));
        let cells = |what, buf| -> Result<Cells<'a>, BackendError> {
            Ok(Cells { bytes: self.run(what, buf, needed)?, ty: kv.ty, cols })
        };
        Ok((kv, cells("K region", kv.k)?, cells("V region", kv.v)?))
    }

    /// Per token, the cells that its window shows, in order of position.
    pub fn seen_cells(&self, window: Option<u32>, kv: &KvPair) -> Result<Vec<Vec<usize>>, BackendError> {
        let rows = self.out_rows();
        let table = self.input("block table", 5, &[ValueType::I32])?;
        let (sequences, blocks) = (self.dims.rows(table.shape.rows), table.shape.cols as usize);
        let entries = numbers::<i32>(self.bytes("block table", table)?); // [sequences, blocks]
        let block_cells = KV_BLOCK_CELLS as usize;
        let positions = self.indices("position", 3, rows, (blocks * block_cells) as u64)?;
        let sequences = self.indices("sequence row", 4, rows, u64::from(sequences))?;
        if window == Some(0) {
            return Err(self.bad("window", "positive", 0));
        }
        let cells_of = |(&position, &sequence): (&usize, &usize)| {
            let first = window.map_or(0, |window| (position + 1).saturating_sub(window as usize));
            let cell_of = |i: usize| {
                let block = entries[sequence * blocks + i / block_cells];
                let cell = i64::from(block) * i64::from(KV_BLOCK_CELLS) + (i % block_cells) as i64;
                self.cell(cell, u64::from(kv.n_cells))
            };
            (first..=position).map(cell_of).collect()
        };
        positions.iter().zip(&sequences).map(cells_of).collect()
    }

    fn cell(&self, got: i64, limit: u64) -> Result<usize, BackendError> {
        match usize::try_from(got) {
            Ok(cell) if (cell as u64) < limit => Ok(cell),
            _ => Err(self.out_of_range("cell", got, limit)),
        }
    }

    fn in_range(&self, what: &'static str, got: i32, limit: u64) -> Result<usize, BackendError> {
        match usize::try_from(got) {
            Ok(index) if (index as u64) < limit => Ok(index),
            _ => Err(self.out_of_range(what, i64::from(got), limit)),
        }
    }

    /// An error unless `expected == got`.
    pub fn equal(&self, what: &'static str, expected: usize, got: usize) -> Result<(), BackendError> {
        if expected == got { Ok(()) } else { Err(self.bad(what, expected, got)) }
    }

    /// An error unless a row of `cols` elements can be quantised.
    pub fn multiple_of_32(&self, what: &'static str, cols: usize) -> Result<(), BackendError> {
        if cols.is_multiple_of(q8::BLOCK) { Ok(()) } else { Err(self.bad(what, "a multiple of 32 columns", cols)) }
    }

    /// An error unless a run of `got` bytes holds `needed`.
    pub fn at_least(&self, what: &'static str, needed: u64, got: u64) -> Result<(), BackendError> {
        if got >= needed { Ok(()) } else { Err(self.bad(what, format!("at least {needed} bytes"), got)) }
    }

    /// Operands that contradict the kernel.
    pub fn bad(&self, what: &'static str, expected: impl Display, got: impl Display) -> BackendError {
        BackendError::BadOperand {
            backend: self.backend.to_string(),
            step: self.step.name.clone(),
            what,
            expected: expected.to_string(),
            got: got.to_string(),
        }
    }

    /// A number in an input that points outside.
    pub fn out_of_range(&self, what: &'static str, got: i64, limit: u64) -> BackendError {
        BackendError::OutOfRange { backend: self.backend.to_string(), step: self.step.name.clone(), what, got, limit }
    }

    /// What went wrong in a part of the work.
    pub fn failed(&self, failed: Failed) -> BackendError {
        match failed {
            Failed::Decode(error) => self.bad("bytes of a weight", "whole blocks", error),
            Failed::Panic => {
                BackendError::WorkerPanic { backend: self.backend.to_string(), step: self.step.name.clone() }
            }
        }
    }
}
