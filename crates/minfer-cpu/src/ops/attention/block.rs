//! Some queries and one block of the KV cache. Takes rows of queries and 32 cells; changes the rows' softmax states; must
//! not know tokens, sequences or the block table.
//!
//! The block's keys and values are brought to floats once for all rows, keys turned so that lanes are cells. Scores and
//! weighted sums are then small matrix products.

use super::{BLOCK, MAX_HEAD_DIM, MAX_ROWS};
use crate::ops::kv;
use crate::product::micro;
use crate::simd::{Kernel, Simd, math};
use crate::work::Kv;
use std::ops::Range;

/// What a worker keeps for attention.
#[repr(C, align(64))]
pub(crate) struct AttentionScratch {
    /// Keys by cell, then by element.
    k: [f32; BLOCK * MAX_HEAD_DIM],
    k_turned: [f32; BLOCK * MAX_HEAD_DIM],
    v: [f32; BLOCK * MAX_HEAD_DIM],
    /// Scores, then weights, of each row.
    weights: [[f32; BLOCK]; MAX_ROWS],
    /// What each row's sum is multiplied with before the block is added.
    factors: [f32; MAX_ROWS],
    /// Of the run at hand.
    pub partial: State,
    /// Of the runs before.
    pub total: State,
}

/// Softmax states of rows: the greatest score `m`, `l = Σ e^(score - m)`, and `o = Σ e^(score - m) v`.
#[repr(C, align(64))]
pub(crate) struct State {
    o: [[f32; MAX_HEAD_DIM]; MAX_ROWS],
    m: [f32; MAX_ROWS],
    l: [f32; MAX_ROWS],
}

impl State {
    /// Of nothing, for the first `n_rows` rows.
    pub(crate) fn clear(&mut self, n_rows: usize) {
        self.m[..n_rows].fill(f32::NEG_INFINITY);
        self.l[..n_rows].fill(0.0);
        self.o[..n_rows].as_flattened_mut().fill(0.0);
    }

    /// `m`, `l` and `o` of a row.
    pub(crate) fn row(&mut self, row: usize) -> (&mut f32, &mut f32, &mut [f32; MAX_HEAD_DIM]) {
        (&mut self.m[row], &mut self.l[row], &mut self.o[row])
    }

    /// Adds the states of other positions.
    #[inline(always)]
    pub(crate) fn merge<S: Simd>(&mut self, s: S, other: &mut State, n_rows: usize, head_dim: usize) {
        for row in 0..n_rows {
            if other.m[row] == f32::NEG_INFINITY {
                continue;
            }
            let m = self.m[row].max(other.m[row]);
            let (a, b) = (exp(s, self.m[row] - m), exp(s, other.m[row] - m));
            self.m[row] = m;
            self.l[row] = self.l[row] * a + other.l[row] * b;
            for (x, y) in self.o[row][..head_dim].iter_mut().zip(&other.o[row]) {
                *x = *x * a + *y * b;
            }
        }
    }
}

/// `e^x` of one number.
#[inline(always)]
fn exp<S: Simd>(s: S, x: f32) -> f32 {
    s.max_lane(math::exp(s, s.splat(x)))
}

/// A query and the positions that it sees.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub q: *const f32,
    pub first: usize,
    pub end: usize,
}

impl Row {
    /// Sees nothing.
    pub(crate) const NONE: Row = Row { q: std::ptr::null(), first: 0, end: 0 };
}

/// Queries that share a KV head.
pub(crate) struct Tile<'a> {
    pub rows: &'a [Row],
    pub head_dim: usize,
    pub scale: f32,
    pub kv: Kv,
    pub kv_head: usize,
}

/// A block of the cache.
pub(crate) struct Block {
    pub first_cell: usize,
    pub first_position: usize,
    /// Those that any row sees; not empty.
    pub positions: Range<usize>,
}

/// Adds a block to the partial states.
pub(crate) struct Attend<'a> {
    pub tile: &'a Tile<'a>,
    pub block: Block,
    pub scratch: &'a mut AttentionScratch,
}

impl Kernel for Attend<'_> {
    type Out = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let Self { tile, block, scratch } = self;
        let cells = block.positions.start - block.first_position..block.positions.end - block.first_position;
        let n = tile.head_dim;
        // Whole panels of columns on every level.
        let stride = n.next_multiple_of(32);
        // SAFETY: made in `Attention::run` only: the block's cells lie in the regions, there are at most `MAX_ROWS` rows
        // and each has `head_dim <= MAX_HEAD_DIM` elements.
        unsafe {
            for cell in cells.clone() {
                let at = (block.first_cell + cell) * tile.kv.cols + tile.kv_head * n;
                kv::load(s, tile.kv.k, tile.kv.half, at, n, scratch.k.as_mut_ptr().add(cell * stride));
                kv::load(s, tile.kv.v, tile.kv.half, at, n, scratch.v.as_mut_ptr().add(cell * stride));
            }
            // Cells that no row sees keep whatever was there: their scores are replaced, their values never read. The
            // same goes for columns beyond the head.
            for col in (0..n).step_by(S::LANES) {
                for cell in (0..BLOCK).step_by(S::LANES) {
                    let from = scratch.k.as_ptr().add(cell * stride + col).cast();
                    let to = scratch.k_turned.as_mut_ptr().add(col * BLOCK + cell).cast();
                    s.transpose(from, stride * 4, to, BLOCK * 4);
                }
            }
            let mut q = [std::ptr::null(); MAX_ROWS];
            for (q, row) in q.iter_mut().zip(tile.rows) {
                *q = row.q;
            }
            let q = &q[..tile.rows.len()];
            let weights = scratch.weights.as_mut_ptr().cast::<f32>();
            for cell in (0..BLOCK).step_by(2 * S::LANES) {
                let k = scratch.k_turned.as_ptr().add(cell);
                multiply(s, q, k, BLOCK, n, None, weights.add(cell), BLOCK);
            }
            for (row, seen) in tile.rows.iter().enumerate() {
                soften(s, seen, row, &block, tile.scale, scratch);
            }
            let mut w = [std::ptr::null(); MAX_ROWS];
            for (row, w) in w.iter_mut().enumerate() {
                *w = scratch.weights[row].as_ptr().add(cells.start);
            }
            let w = &w[..tile.rows.len()];
            let o = scratch.partial.o.as_mut_ptr().cast::<f32>();
            for col in (0..n).step_by(2 * S::LANES) {
                let v = scratch.v.as_ptr().add(cells.start * stride + col);
                let factors = Some(scratch.factors.as_ptr());
                multiply(s, w, v, stride, cells.len(), factors, o.add(col), MAX_HEAD_DIM);
            }
        }
    }
}

/// Turns a row's scores into weights relative to the greatest so far, and says how the sums so far must shrink.
#[inline(always)]
fn soften<S: Simd>(s: S, seen: &Row, row: usize, block: &Block, scale: f32, scratch: &mut AttentionScratch) {
    let first = seen.first.saturating_sub(block.first_position);
    let end = seen.end.saturating_sub(block.first_position).min(BLOCK);
    let weights = &mut scratch.weights[row];
    if first >= end {
        weights.fill(0.0);
        scratch.factors[row] = 1.0;
        return;
    }
    // What the row does not see weighs nothing: e^-∞ is exactly 0.
    for (cell, weight) in weights.iter_mut().enumerate() {
        *weight = if (first..end).contains(&cell) { *weight * scale } else { f32::NEG_INFINITY };
    }
    let before = scratch.partial.m[row];
    let mut greatest = s.splat(before);
    for cell in (0..BLOCK).step_by(S::LANES) {
        // SAFETY: `BLOCK` is a multiple of `LANES`.
        greatest = s.max(unsafe { s.load(weights.as_ptr().add(cell)) }, greatest);
    }
    let greatest = s.max_lane(greatest);
    let mut sum = s.splat(0.0);
    for cell in (0..BLOCK).step_by(S::LANES) {
        // SAFETY: `BLOCK` is a multiple of `LANES`.
        unsafe {
            let at = weights.as_mut_ptr().add(cell);
            let weight = math::exp(s, s.sub(s.load(at), s.splat(greatest)));
            s.store(at, weight);
            sum = s.add(sum, weight);
        }
    }
    let factor = exp(s, before - greatest);
    scratch.factors[row] = factor;
    scratch.partial.m[row] = greatest;
    scratch.partial.l[row] = scratch.partial.l[row] * factor + s.sum(sum);
}

/// `out[row] = out[row] · factors[row] + x[row] · panel` (without factors: the product alone) for two vectors of columns.
///
/// # Safety
/// `n` floats per row of `x`; `n` rows of two vectors in the panel, `panel_stride` floats apart; two vectors per row of
/// `out`, `out_stride` floats apart; a factor per row.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn multiply<S: Simd>(
    s: S,
    x: &[*const f32],
    panel: *const f32,
    panel_stride: usize,
    n: usize,
    factors: Option<*const f32>,
    out: *mut f32,
    out_stride: usize,
) {
    let job = |row| Rows { x, panel, panel_stride, n, factors, out, out_stride, row };
    let mut row = 0;
    // SAFETY: as promised by the caller.
    unsafe {
        while row + 4 <= x.len() {
            rows::<S, 4>(s, job(row));
            row += 4;
        }
        match x.len() - row {
            1 => rows::<S, 1>(s, job(row)),
            2 => rows::<S, 2>(s, job(row)),
            3 => rows::<S, 3>(s, job(row)),
            _ => {}
        }
    }
}

struct Rows<'a> {
    x: &'a [*const f32],
    panel: *const f32,
    panel_stride: usize,
    n: usize,
    factors: Option<*const f32>,
    out: *mut f32,
    out_stride: usize,
    row: usize,
}

/// `T` rows of [`multiply`].
///
/// # Safety
/// As for [`multiply`]; there are `T` rows from `job.row` on.
#[inline(always)]
unsafe fn rows<S: Simd, const T: usize>(s: S, job: Rows<'_>) {
    let mut x = [std::ptr::null(); T];
    let mut acc = [[s.splat(0.0); 2]; T];
    // SAFETY: as promised by the caller.
    unsafe {
        for t in 0..T {
            x[t] = job.x[job.row + t];
            if let Some(factors) = job.factors {
                let factor = s.splat(*factors.add(job.row + t));
                for r in 0..2 {
                    acc[t][r] = s.mul(s.load(job.out.add((job.row + t) * job.out_stride + r * S::LANES)), factor);
                }
            }
        }
        micro::floats::<S, 2, T>(s, job.panel, job.panel_stride, x, job.n, &mut acc);
        for t in 0..T {
            for r in 0..2 {
                s.store(job.out.add((job.row + t) * job.out_stride + r * S::LANES), acc[t][r]);
            }
        }
    }
}
