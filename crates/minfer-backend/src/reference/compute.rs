//! One step of the reference backend. Takes the operands; gives its value and the cells it stores, without touching any
//! region, so that the value may take over the bytes of an input. Fused operations are compositions of the simple ones.

use super::attention::attention;
use super::cells;
use super::operands::Operands;
use super::product::product;
use super::simple;
use crate::backend::BackendError;
use crate::step::KvPair;
use minfer_graph::{Activation, Attention, Op, Qkv, RopeStyle, ValueType};

/// What a step writes.
#[derive(Default)]
pub struct Written {
    /// The value, row by row; absent where it lives in a KV region.
    pub value: Option<Vec<f32>>,
    /// Rows for KV cells.
    pub cells: Option<StoredCells>,
}

/// Row `t` of `k` and `v` goes to cell `cells[t]`.
pub struct StoredCells {
    pub cells: Vec<usize>,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
}

/// Runs the step's formula on `threads` threads.
pub fn compute(operands: &Operands<'_>, threads: usize) -> Result<Written, BackendError> {
    let run = Run { o: operands, threads, cols: operands.out_cols() };
    let value = match operands.step.kernel.op {
        Op::Embed { scale } => run.embed(scale)?,
        Op::RopeTable { n_dims, base, freq_scale } => run.rope_table(n_dims, base, freq_scale)?,
        Op::RmsNorm { eps, group } => run.rms_norm(eps, group)?,
        Op::Linear => run.linear(0, (operands.step.weights.len() > 1).then_some(1))?,
        Op::Rope { style, head_dim, n_dims } => run.rope(style, head_dim, n_dims)?,
        Op::KvStore { head_dim, .. } => return run.kv_store(head_dim),
        Op::Attention(a) => run.attention(&a)?,
        Op::Activate(activation) => {
            let mut x = operands.floats("x", 0, run.cols)?;
            simple::activate(&mut x, activation);
            x
        }
        Op::Add => run.binary(simple::add)?,
        Op::Mul => run.binary(simple::mul)?,
        Op::SelectRows => run.select_rows()?,
        Op::GatedLinear { activation } => run.gated_linear(activation)?,
        Op::LinearAdd => {
            let mut y = run.linear(0, None)?;
            simple::add(&mut y, &operands.floats("residual", 1, run.cols)?);
            y
        }
        Op::QkvStore(qkv) => return run.qkv_store(&qkv),
        Op::Quantize => operands.floats("x", 0, run.cols)?,
        Op::Input | Op::KvView { .. } | Op::Copy => return Err(operands.bad("operation", "executed", "not")),
    };
    Ok(Written { value: Some(value), cells: None })
}

struct Run<'a> {
    o: &'a Operands<'a>,
    threads: usize,
    cols: usize,
}

impl Run<'_> {
    fn embed(&self, scale: f32) -> Result<Vec<f32>, BackendError> {
        let matrix = self.o.matrix(0)?;
        self.o.equal("columns of the embedding", self.cols, matrix.cols)?;
        let ids = self.o.indices("token id", 0, self.o.out_rows(), matrix.rows as u64)?;
        let mut out = vec![0.0; ids.len() * self.cols]; // [n_tokens, n_embd]
        for (row, id) in out.chunks_exact_mut(matrix.cols).zip(ids) {
            matrix.decode(id, row).map_err(|error| self.o.failed(error))?;
            row.iter_mut().for_each(|v| *v *= scale);
        }
        Ok(out)
    }

    fn rope_table(&self, n_dims: u32, base: f32, freq_scale: f32) -> Result<Vec<f32>, BackendError> {
        let n_dims = n_dims as usize;
        self.o.equal("columns of the rope table", n_dims, self.cols)?;
        self.o.equal("rotated dims, modulo 2", 0, n_dims % 2)?;
        let positions = self.o.indices("position", 0, self.o.out_rows(), 1 << 31)?;
        let given = !self.o.step.weights.is_empty();
        let factors = if given { Some(self.o.vector(0, n_dims / 2)?) } else { None };
        let mut table = vec![0.0; positions.len() * n_dims];
        for (row, position) in table.chunks_exact_mut(n_dims.max(1)).zip(positions) {
            simple::rope_table_row(row, position as i32, base, freq_scale, factors.as_deref());
        }
        Ok(table)
    }

    fn rms_norm(&self, eps: f32, group: u32) -> Result<Vec<f32>, BackendError> {
        let weight = self.o.vector(0, group as usize)?;
        self.o.equal("columns, modulo the group", 0, self.cols % weight.len())?;
        let mut x = self.o.floats("x", 0, self.cols)?;
        simple::rms_norm(&mut x, &weight, eps);
        Ok(x)
    }

    /// `x Wᵀ + bias` with these weights of the step.
    fn linear(&self, matrix: usize, bias: Option<usize>) -> Result<Vec<f32>, BackendError> {
        let matrix = self.o.matrix(matrix)?;
        let x = self.o.floats("x", 0, matrix.cols)?;
        let mut y = product(self.threads, &matrix, &x).map_err(|error| self.o.failed(error))?;
        if let Some(bias) = bias {
            let bias = self.o.vector(bias, matrix.rows)?;
            y.chunks_exact_mut(matrix.rows.max(1)).for_each(|row| simple::add(row, &bias));
        }
        Ok(y)
    }

    fn rope(&self, style: RopeStyle, head_dim: u32, n_dims: u32) -> Result<Vec<f32>, BackendError> {
        let mut x = self.o.floats("x", 0, self.cols)?;
        self.rotate(&mut x, self.cols, style, head_dim, n_dims)?;
        Ok(x)
    }

    /// Rotates rows of `cols` elements by the rope table, which is input 1.
    fn rotate(
        &self,
        x: &mut [f32],
        cols: usize,
        style: RopeStyle,
        head_dim: u32,
        n_dims: u32,
    ) -> Result<(), BackendError> {
        if head_dim == 0
            || n_dims == 0
            || n_dims % 2 == 1
            || n_dims > head_dim
            || !cols.is_multiple_of(head_dim as usize)
        {
            return Err(self.o.bad("rotated dims", "even and at most the head size, which divides the row", n_dims));
        }
        let table = self.o.floats("rope table", 1, n_dims as usize)?;
        simple::rope(x, cols.max(1), &table, n_dims as usize, style, head_dim as usize);
        Ok(())
    }

    fn kv_store(&self, head_dim: u32) -> Result<Written, BackendError> {
        if head_dim == 0 || !self.cols.is_multiple_of(head_dim as usize) {
            return Err(self.o.bad("head size", "a divisor of the row", head_dim));
        }

        let (kv, ..) = self.o.kv(self.cols)?;
        let rows = self.o.step.inputs.first().map_or(0, |k| self.o.dims.rows(k.shape.rows) as usize);
        let mut k = self.o.all_floats("k", 0, self.cols)?;
        turn_if_quantised(kv, &mut k, head_dim);
        let v = self.o.all_floats("v", 1, self.cols)?;
        self.o.equal("elements of v", k.len(), v.len())?;
        let cells = self.o.indices("cell", 2, rows, u64::from(kv.n_cells))?;
        Ok(Written { value: None, cells: Some(StoredCells { cells, k, v }) })
    }

    fn attention(&self, a: &Attention) -> Result<Vec<f32>, BackendError> {
        if a.n_kv_head == 0 || a.head_dim == 0 || !a.n_head.is_multiple_of(a.n_kv_head) {
            return Err(self.o.bad("kv heads", "a divisor of the heads", a.n_kv_head));
        }
        self.o.equal("columns of q", a.n_head as usize * a.head_dim as usize, self.cols)?;
        let (kv, k, v) = self.o.kv(a.n_kv_head as usize * a.head_dim as usize)?;
        for (index, side) in [(1, kv.k), (2, kv.v)] {
            let view = self.o.step.inputs.get(index).map(|view| (view.buf.region, view.buf.offset));
            if view != Some((side.region, side.offset)) {
                return Err(self.o.bad("a KV view", format!("{side:?}"), format!("{view:?}")));
            }
        }
        let mut q = self.o.floats("q", 0, self.cols)?;
        turn_if_quantised(kv, &mut q, a.head_dim);
        let seen = self.o.seen_cells(a.window, kv)?;
        attention(self.threads, a, &q, &seen, k, v).map_err(|error| self.o.failed(error))
    }

    fn binary(&self, apply: fn(&mut [f32], &[f32])) -> Result<Vec<f32>, BackendError> {
        let mut a = self.o.floats("a", 0, self.cols)?;
        apply(&mut a, &self.o.floats("b", 1, self.cols)?);
        Ok(a)
    }

    fn select_rows(&self) -> Result<Vec<f32>, BackendError> {
        let x = self.o.all_floats("x", 0, self.cols)?;
        let n_rows = x.len().checked_div(self.cols).unwrap_or(0);
        let rows = self.o.indices("output row", 1, self.o.out_rows(), n_rows as u64)?;
        Ok(rows.into_iter().flat_map(|row| &x[row * self.cols..][..self.cols]).copied().collect())
    }

    fn gated_linear(&self, activation: Activation) -> Result<Vec<f32>, BackendError> {
        let mut gate = self.linear(0, None)?;
        let up = self.linear(1, None)?;
        self.o.equal("elements of the gate", up.len(), gate.len())?;
        simple::activate(&mut gate, activation);
        simple::mul(&mut gate, &up);
        Ok(gate)
    }

    fn qkv_store(&self, qkv: &Qkv) -> Result<Written, BackendError> {
        let kv_cols = qkv.n_kv_head as usize * qkv.head_dim as usize;
        self.o.equal("columns of q", qkv.n_head as usize * qkv.head_dim as usize, self.cols)?;
        let (kv, ..) = self.o.kv(kv_cols)?;
        let cells = self.o.indices("cell", 2, self.o.out_rows(), u64::from(kv.n_cells))?;
        let bias = |index: usize| qkv.bias.then_some(3 + index);
        let mut q = self.linear(0, bias(0))?;
        let mut k = self.linear(1, bias(1))?;
        let v = self.linear(2, bias(2))?;
        for (values, cols) in [(&q, self.cols), (&k, kv_cols), (&v, kv_cols)] {
            self.o.equal("elements of a projection", self.o.out_rows() * cols, values.len())?;
        }
        if let Some(eps) = qkv.head_norm_eps {
            let first = if qkv.bias { 6 } else { 3 };
            simple::rms_norm(&mut q, &self.o.vector(first, qkv.head_dim as usize)?, eps);
            simple::rms_norm(&mut k, &self.o.vector(first + 1, qkv.head_dim as usize)?, eps);
        }
        self.rotate(&mut q, self.cols, qkv.rope, qkv.head_dim, qkv.rope_dims)?;
        self.rotate(&mut k, kv_cols, qkv.rope, qkv.head_dim, qkv.rope_dims)?;
        turn_if_quantised(kv, &mut k, qkv.head_dim);
        Ok(Written { value: Some(q), cells: Some(StoredCells { cells, k, v }) })
    }
}

/// Keys in `q8_0` are stored turned, and meet turned queries.
fn turn_if_quantised(kv: &KvPair, rows: &mut [f32], head_dim: u32) {
    if kv.ty == ValueType::Q8_0 {
        cells::turn(rows, head_dim as usize);
    }
}
