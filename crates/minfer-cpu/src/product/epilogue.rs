//! What becomes of a tile of products. Takes the tile while it is in cache; gives the operation's output rows, or KV
//! cells. Here the fused operations differ; above, all products are alike.

use super::{Part, Product, ProductScratch, TILE, stride};
use crate::ops::elementwise::activate;
use crate::ops::{kv, norm, rope};
use crate::quantize::{Q8_BLOCK, Quantised};
use crate::simd::Simd;
use crate::vectors::{load_part, store_part};
use crate::work::{Check, Fault, Kv, Matrix, Value};
use minfer_backend::BackendError;
use minfer_graph::{Activation, Op, RopeStyle};
use std::ops::Range;

/// What is done with the products.
pub(crate) enum Epilogue {
    /// `+ bias`.
    Bias(Option<*const f32>),
    /// `+ residual`, which may be the output itself.
    Residual(*const f32),
    /// `act(first) · second`, quantised or not.
    Gated { activation: Activation, quantised: Option<Quantised> },
    /// Heads of q to the output, of k and v to their cells.
    Qkv(Qkv),
}

/// The fused projection's other operands.
pub(crate) struct Qkv {
    pub n_head: usize,
    pub n_kv_head: usize,
    pub head_dim: usize,
    biases: Option<[*const f32; 3]>,
    /// Epsilon, and the weights for q and k.
    norms: Option<(f32, [*const f32; 2])>,
    style: RopeStyle,
    rope_dims: usize,
    table: *const f32,
    cells: *const i32,
    kv: Kv,
}

impl Epilogue {
    pub(super) fn check(check: &Check<'_>, matrices: &[Matrix; 3], out: &Value) -> Result<Self, BackendError> {
        match check.step.kernel.op {
            Op::Linear => {
                check.equal("columns of the output", matrices[0].rows, out.cols)?;
                let has_bias = check.step.weights.len() > 1;
                Ok(Epilogue::Bias(if has_bias { Some(check.vector(1, out.cols)?) } else { None }))
            }
            Op::LinearAdd => {
                let residual = check.input(1)?;
                check.equal("columns of the output", matrices[0].rows, out.cols)?;
                check.equal("columns of the residual", out.cols, residual.cols)?;
                check.equal("rows of the residual", out.rows, residual.rows)?;
                Ok(Epilogue::Residual(residual.start.cast()))
            }
            Op::GatedLinear { activation } => {
                let quantised = Quantised::new(out.start, out.cols, out.ty);
                check.equal("columns of the output", matrices[0].rows, out.cols)?;
                check.equal("rows of the second matrix", matrices[0].rows, matrices[1].rows)?;
                if quantised.is_some() {
                    check.equal("columns beyond a multiple of 32", 0, out.cols % Q8_BLOCK)?;
                }
                Ok(Epilogue::Gated { activation, quantised })
            }
            Op::QkvStore(op) => Qkv::check(check, op, matrices, out).map(Epilogue::Qkv),
            op => Err(check.bad("operation", "a product", op)),
        }
    }
}

impl Qkv {
    fn check(
        check: &Check<'_>,
        op: minfer_graph::Qkv,
        matrices: &[Matrix; 3],
        out: &Value,
    ) -> Result<Self, BackendError> {
        let (n_head, n_kv_head, head_dim) = (op.n_head as usize, op.n_kv_head as usize, op.head_dim as usize);
        let rope_dims = op.rope_dims as usize;
        let widths = [n_head * head_dim, n_kv_head * head_dim, n_kv_head * head_dim];
        check.equal("columns of the output", widths[0], out.cols)?;
        for (matrix, width) in matrices.iter().zip(widths) {
            check.equal("rows of a projection", width, matrix.rows)?;
        }
        let table = check.input(1)?;
        check.equal("columns of the table", rope_dims, table.cols)?;
        check.equal("rows of the table", out.rows, table.rows)?;
        let mut next = 3;
        let mut biases = None;
        if op.bias {
            let bias = |index: usize| check.vector(3 + index, widths[index]);
            biases = Some([bias(0)?, bias(1)?, bias(2)?]);
            next = 6;
        }
        let mut norms = None;
        if let Some(eps) = op.head_norm_eps {
            norms = Some((eps, [check.vector(next, head_dim)?, check.vector(next + 1, head_dim)?]));
        }
        Ok(Qkv {
            n_head,
            n_kv_head,
            head_dim,
            biases,
            norms,
            style: op.rope,
            rope_dims,
            table: table.start.cast(),
            cells: check.column(2, out.rows)?,
            kv: check.kv(widths[1], head_dim, true)?,
        })
    }
}

/// Computes row tile `row_tile` for some tokens, and finishes it.
///
/// # Safety
/// The tokens are of the batch; the step's operands are as they were checked.
#[inline(always)]
pub(super) unsafe fn tile<S: Simd>(
    s: S,
    product: &Product,
    row_tile: usize,
    rows: usize,
    first_token: usize,
    n_tokens: usize,
    scratch: &mut ProductScratch,
) -> Result<(), Fault> {
    let ProductScratch { tile, buffers } = scratch;
    let (first, second) = tile.split_at_mut(TILE / 2);
    let part = |matrix: usize, first_row: usize, tile: &mut [f32]| {
        let matrix = product.matrices[matrix];
        let n_rows = rows.min(matrix.rows - first_row);
        let (x, tile) = (product.x, tile.as_mut_ptr());
        Part { matrix, first_row, n_rows, x, first_token, n_tokens, tile, stride: stride(rows) }
    };
    // SAFETY: parts lie within their matrix and the batch; half a tile buffer has room for `n_tokens · stride`.
    unsafe {
        if let Epilogue::Qkv(qkv) = &product.epilogue {
            let (matrix, head) = qkv.head(row_tile);
            let part = part(matrix, head * qkv.head_dim, first);
            part.compute(s, buffers);
            return qkv.finish(s, product, &part, matrix, head, first_token..first_token + n_tokens);
        }
        let one = part(0, row_tile * rows, first);
        one.compute(s, buffers);
        let mut other = one;
        if let Epilogue::Gated { .. } = product.epilogue {
            other = part(1, row_tile * rows, second);
            other.compute(s, buffers);
        }
        for t in 0..n_tokens {
            finish_row(s, product, &one, &other, t, first_token + t);
        }
    }
    Ok(())
}

/// Finishes row `t` of a tile of anything but heads, which is that of token `token`.
///
/// # Safety
/// The tiles are computed; the token is one of theirs.
#[inline(always)]
unsafe fn finish_row<S: Simd>(s: S, product: &Product, tile: &Part, second: &Part, t: usize, token: usize) {
    let n = tile.n_rows;
    let at_out = token * product.out_cols + tile.first_row;
    // SAFETY: the tile's rows are columns of the output, the token one of its rows, so that all of `n` elements from
    // `at_out` on are there; whole blocks if quantised, since tiles are multiples of 32 rows.
    unsafe {
        let (products, others) = (tile.tile.add(t * tile.stride), second.tile.add(t * second.stride));
        let out = product.out.cast::<f32>();
        match product.epilogue {
            Epilogue::Bias(None) => std::ptr::copy_nonoverlapping(products, out.add(at_out), n),
            Epilogue::Bias(Some(bias)) => add(s, products, bias.add(tile.first_row), n, out.add(at_out)),
            Epilogue::Residual(residual) => add(s, products, residual.add(at_out), n, out.add(at_out)),
            Epilogue::Gated { activation, quantised } => {
                // In place in the tile, which has whole vectors.
                for at in (0..n).step_by(S::LANES) {
                    let gated = activate(s, activation, s.load(products.add(at)));
                    s.store(products.add(at), s.mul(gated, s.load(others.add(at))));
                }
                let Some(quantised) = quantised else {
                    return std::ptr::copy_nonoverlapping(products, out.add(at_out), n);
                };
                for at in (0..n).step_by(Q8_BLOCK) {
                    quantised.write_block(s, token, (tile.first_row + at) / Q8_BLOCK, products.add(at));
                }
            }
            Epilogue::Qkv(_) => unreachable!("heads are finished elsewhere"),
        }
    }
}

/// `out = a + b` for `n` floats; `out` may be any of them.
///
/// # Safety
/// `n` floats are there on all sides.
#[inline(always)]
unsafe fn add<S: Simd>(s: S, a: *const f32, b: *const f32, n: usize, out: *mut f32) {
    for at in (0..n).step_by(S::LANES) {
        // SAFETY: `n - at` floats are there on all sides.
        unsafe {
            let sum = s.add(load_part(s, a.add(at), n - at), load_part(s, b.add(at), n - at));
            store_part(s, out.add(at), n - at, sum);
        }
    }
}

impl Qkv {
    /// The matrix and the head of a row tile: heads of q, then of k, then of v.
    fn head(&self, row_tile: usize) -> (usize, usize) {
        if row_tile < self.n_head {
            return (0, row_tile);
        }
        let head = row_tile - self.n_head;
        if head < self.n_kv_head { (1, head) } else { (2, head - self.n_kv_head) }
    }

    /// Bias, norm, rope, and out.
    ///
    /// # Safety
    /// The tile is computed and is this head's.
    #[inline(always)]
    unsafe fn finish<S: Simd>(
        &self,
        s: S,
        product: &Product,
        part: &Part,
        matrix: usize,
        head: usize,
        tokens: Range<usize>,
    ) -> Result<(), Fault> {
        let n = self.head_dim;
        for (t, token) in tokens.enumerate() {
            // SAFETY: the tile has `n` floats per token; biases are as long as their matrix has rows, norms as a head;
            // the table has a row per token; a cell number is below `n_cells`; the head lies within the cell.
            unsafe {
                let x = part.tile.add(t * part.stride);
                if let Some(biases) = self.biases {
                    add(s, x, biases[matrix].add(head * n), n, x);
                }
                if matrix < 2 {
                    if let Some((eps, weights)) = self.norms {
                        let factor = norm::inverse_rms(s, x, n, eps);
                        norm::scale(s, x, weights[matrix], factor, n, x);
                    }
                    rope::rotate(x, self.table.add(token * self.rope_dims), self.style, self.rope_dims);
                }
                if matrix == 0 {
                    let out = product.out.cast::<f32>().add(token * product.out_cols + head * n);
                    std::ptr::copy_nonoverlapping(x, out, n);
                } else {
                    let cell = Fault::index("cell", *self.cells.add(token), self.kv.n_cells)?;
                    let region = if matrix == 1 { self.kv.k } else { self.kv.v };
                    if matrix == 1 && self.kv.turns_keys() {
                        kv::turn::<1>(std::slice::from_raw_parts_mut(x.cast(), n));
                    }
                    kv::store(s, x, region, self.kv.ty, cell * self.kv.cols + head * n, n);
                }
            }
        }
        Ok(())
    }
}
