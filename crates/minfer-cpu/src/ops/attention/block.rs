//! Some queries and one block of the KV cache. Takes rows of queries and 32 cells; changes the rows' softmax states; must
//! not know tokens, sequences or the block table.
//!
//! The block's keys and values are brought to floats once for all rows. Scores are a small matrix product whose lanes are
//! rows (the queries are transposed once), so that the softmax of all rows goes side by side and nothing is summed across
//! lanes; so are the weighted sums, whose lanes are elements of the head.

use super::{BLOCK, MAX_HEAD_DIM, MAX_ROWS};
use crate::ops::kv;
use crate::product::micro;
use crate::simd::{Kernel, MAX_LANES, Simd, math};
use crate::vectors::load_part;
use crate::work::Kv;
use std::ops::Range;

/// Stands for minus infinity where that must not be subtracted from itself; no score is so low.
const LOWEST: f32 = -1e30;

/// What a worker keeps for attention.
#[repr(C, align(64))]
pub(crate) struct AttentionScratch {
    /// Queries by element, then by row.
    q_columns: [[f32; MAX_ROWS]; MAX_HEAD_DIM],
    /// Queries by row, before they are transposed, in pieces.
    q: [[f32; MAX_LANES]; MAX_LANES],
    /// Positions that rows see: from, to, relative to the block.
    first: [f32; MAX_ROWS],
    end: [f32; MAX_ROWS],
    k: [f32; BLOCK * MAX_HEAD_DIM],
    v: [f32; BLOCK * MAX_HEAD_DIM],
    /// Scores, then weights, by cell, then by row.
    weights: [[f32; MAX_ROWS]; BLOCK],
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
    /// Of nothing, for the first `n_rows` rows (and those that are computed beside them).
    pub(crate) fn clear(&mut self, n_rows: usize) {
        self.m.fill(f32::NEG_INFINITY);
        self.l.fill(0.0);
        self.o[..n_rows.next_multiple_of(8)].as_flattened_mut().fill(0.0);
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

/// Transposes the queries of a tile, so that lanes are rows.
pub(crate) struct Transpose<'a> {
    pub tile: &'a Tile<'a>,
    pub scratch: &'a mut AttentionScratch,
}

impl Kernel for Transpose<'_> {
    type Out = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let Self { tile, scratch } = self;
        for first_row in (0..tile.rows.len()).step_by(S::LANES) {
            for col in (0..tile.head_dim).step_by(S::LANES) {
                for lane in 0..S::LANES {
                    // SAFETY: a row has `head_dim` elements; a vector fits the buffer's rows, and transposed ones fit the rows
                    // of `q_columns`: both `MAX_ROWS` and `MAX_HEAD_DIM` are multiples of `LANES`.
                    unsafe {
                        let mut part = s.splat(0.0);
                        if let Some(row) = tile.rows.get(first_row + lane) {
                            part = load_part(s, row.q.add(col), tile.head_dim - col);
                        }
                        s.store(scratch.q[lane].as_mut_ptr(), part);
                    }
                }
                let from = scratch.q.as_ptr().cast();
                let to = (&raw mut scratch.q_columns[col][first_row]).cast();
                // SAFETY: `LANES` rows on both sides, as above.
                unsafe { s.transpose(from, MAX_LANES * 4, to, MAX_ROWS * 4) };
            }
        }
        if tile.kv.turns_keys() {
            kv::turn(&mut scratch.q_columns[..tile.head_dim]);
        }
    }
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
        // SAFETY: made in `Attention::run` only: the block's cells lie in the regions, there are at most `MAX_ROWS` rows,
        // transposed, and each has `head_dim <= MAX_HEAD_DIM` elements.
        unsafe {
            for cell in cells.clone() {
                let at = (block.first_cell + cell) * tile.kv.cols + tile.kv_head * n;
                kv::load(s, tile.kv.k, tile.kv.ty, at, n, scratch.k.as_mut_ptr().add(cell * stride));
                kv::load(s, tile.kv.v, tile.kv.ty, at, n, scratch.v.as_mut_ptr().add(cell * stride));
            }
            // Cells that no row sees, and columns beyond the head, keep whatever was there: their scores are replaced,
            // their values never read, or their sums never used.
            let q = scratch.q_columns.as_ptr().cast::<f32>();
            let weights = scratch.weights.as_mut_ptr().cast::<f32>();
            let scores = Rows {
                x: scratch.k.as_ptr(),
                x_stride: 1,
                row_stride: stride,
                panel_stride: MAX_ROWS,
                n,
                factors: None,
                out_stride: MAX_ROWS,
            };
            let mut row = 0;
            while row < tile.rows.len() {
                if tile.rows.len() - row <= S::LANES {
                    multiply::<S, 1>(s, BLOCK, &scores, q.add(row), weights.add(row));
                } else {
                    multiply::<S, 2>(s, BLOCK, &scores, q.add(row), weights.add(row));
                }
                row += 2 * S::LANES;
            }
            soften(s, tile, &block, scratch);
            let sums = Rows {
                x: weights.add(cells.start * MAX_ROWS),
                x_stride: MAX_ROWS,
                row_stride: 1,
                panel_stride: stride,
                n: cells.len(),
                factors: Some(scratch.factors.as_ptr()),
                out_stride: MAX_HEAD_DIM,
            };
            for col in (0..n).step_by(2 * S::LANES) {
                let v = scratch.v.as_ptr().add(cells.start * stride + col);
                let o = scratch.partial.o.as_mut_ptr().cast::<f32>().add(col);
                multiply::<S, 2>(s, tile.rows.len(), &sums, v, o);
            }
        }
    }
}

/// Turns scores into weights relative to the greatest score of their row so far, and says how sums so far must shrink.
#[inline(always)]
fn soften<S: Simd>(s: S, tile: &Tile<'_>, block: &Block, scratch: &mut AttentionScratch) {
    let mut all_seen = true;
    for (row, seen) in tile.rows.iter().enumerate() {
        let first = seen.first.saturating_sub(block.first_position).min(BLOCK);
        let end = seen.end.saturating_sub(block.first_position).min(BLOCK);
        all_seen &= first == 0 && end == BLOCK;
        scratch.first[row] = first as f32;
        scratch.end[row] = end as f32;
    }
    // What is computed beside the rows sees nothing.
    let padded = tile.rows.len().next_multiple_of(MAX_LANES);
    scratch.first[tile.rows.len()..padded].fill(0.0);
    scratch.end[tile.rows.len()..padded].fill(0.0);
    let scale = s.splat(tile.scale);
    for row in (0..tile.rows.len()).step_by(S::LANES) {
        // SAFETY: arrays have `MAX_ROWS` entries per cell, a multiple of `LANES`.
        unsafe {
            let (first, end) = (s.load(scratch.first.as_ptr().add(row)), s.load(scratch.end.as_ptr().add(row)));
            let before = s.load(scratch.partial.m.as_ptr().add(row));
            let mut greatest = before;
            for cell in 0..BLOCK {
                let at = scratch.weights[cell].as_mut_ptr().add(row);
                let mut score = s.mul(s.load(at), scale);
                if !all_seen {
                    score = s.keep_between(score, s.splat(cell as f32), first, end);
                }
                s.store(at, score);
                greatest = s.max(score, greatest);
            }
            // A row that has seen nothing yet keeps minus infinity; its weights are 0.
            let base = s.max(greatest, s.splat(LOWEST));
            let mut sum = s.splat(0.0);
            for cell in 0..BLOCK {
                let at = scratch.weights[cell].as_mut_ptr().add(row);
                let weight = math::exp(s, s.sub(s.load(at), base));
                s.store(at, weight);
                sum = s.add(sum, weight);
            }
            let factor = math::exp(s, s.sub(before, base));
            s.store(scratch.factors.as_mut_ptr().add(row), factor);
            s.store(scratch.partial.m.as_mut_ptr().add(row), greatest);
            let l = scratch.partial.l.as_mut_ptr().add(row);
            s.store(l, s.fma(s.load(l), factor, sum));
        }
    }
}

/// A product of rows with a panel.
struct Rows {
    x: *const f32,
    /// Floats from one element of a row to the next, and from one row to the next.
    x_stride: usize,
    row_stride: usize,
    panel_stride: usize,
    n: usize,
    /// What each row of the output is multiplied with before the product is added; without, it is replaced.
    factors: Option<*const f32>,
    out_stride: usize,
}

/// `out[row] = out[row] · factors[row] + x[row] · panel` for `R` vectors of columns and `n_rows` rows, rounded up to a
/// multiple of four.
///
/// # Safety
/// So many rows of `x` of `n` floats, of `out` and factors are there, and `n` rows of `R` vectors in the panel.
#[inline(always)]
unsafe fn multiply<S: Simd, const R: usize>(s: S, n_rows: usize, job: &Rows, panel: *const f32, out: *mut f32) {
    let mut row = 0;
    // SAFETY: as promised by the caller.
    unsafe {
        while row < n_rows {
            // Eight rows at a time where registers allow.
            if const { S::LANES == 16 } && n_rows - row > 4 {
                rows::<S, R, 8>(s, job, panel, out, row);
                row += 8;
            } else {
                rows::<S, R, 4>(s, job, panel, out, row);
                row += 4;
            }
        }
    }
}

/// `T` rows of [`multiply`].
///
/// # Safety
/// As for [`multiply`]; there are `T` rows from `row` on.
#[inline(always)]
unsafe fn rows<S: Simd, const R: usize, const T: usize>(
    s: S,
    job: &Rows,
    panel: *const f32,
    out: *mut f32,
    row: usize,
) {
    let mut x = [std::ptr::null(); T];
    let mut acc = [[s.splat(0.0); R]; T];
    // SAFETY: as promised by the caller.
    unsafe {
        for t in 0..T {
            x[t] = job.x.add((row + t) * job.row_stride);
            if let Some(factors) = job.factors {
                let factor = s.splat(*factors.add(row + t));
                for r in 0..R {
                    acc[t][r] = s.mul(s.load(out.add((row + t) * job.out_stride + r * S::LANES)), factor);
                }
            }
        }
        micro::floats::<S, R, T>(s, panel, job.panel_stride, x, job.x_stride, job.n, &mut acc);
        for t in 0..T {
            for r in 0..R {
                s.store(out.add((row + t) * job.out_stride + r * S::LANES), acc[t][r]);
            }
        }
    }
}
