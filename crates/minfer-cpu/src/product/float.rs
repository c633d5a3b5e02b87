//! Weights that are floats, half floats or brain floats, times floats. As [`super::gemv`] and [`super::gemm`], with
//! elements in place of groups; rows have any length.

use super::{GEMV_TOKENS, Part, micro};
use crate::simd::{Kernel, Simd};
use crate::vectors::load_part;
use minfer_graph::DType;

/// Columns of a slice.
const SLICE: usize = 256;
/// Most rows of a panel.
const ROWS: usize = 32;

/// A slice of a panel: for each column, `R · LANES` rows; and the rows before they are turned.
#[repr(C, align(64))]
pub(crate) struct Panel {
    columns: [f32; ROWS * SLICE],
    rows: [[f32; SLICE]; 16],
}

/// Computes a part for weights that are not quantised.
pub(crate) struct Multiply<'a> {
    pub part: Part,
    pub panel: &'a mut Panel,
}

impl Kernel for Multiply<'_> {
    type Out = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        // SAFETY: `Part::compute` was promised that the part lies within matrix, activations and tile.
        unsafe {
            if self.part.x.n_tokens <= GEMV_TOKENS || const { S::PORTABLE } {
                rows(s, &self.part);
            } else if const { S::LANES == 16 } {
                panels::<S, 2, 6>(s, &self.part, self.panel);
            } else {
                panels::<S, 2, 4>(s, &self.part, self.panel);
            }
        }
    }
}

/// Converts `n` elements of a row from column `col` on to floats; those up to `SLICE` become 0.
///
/// # Safety
/// The elements are readable.
#[inline(always)]
unsafe fn convert<S: Simd>(s: S, dtype: DType, row: *const u8, col: usize, n: usize, to: &mut [f32; SLICE]) {
    let whole = n - n % S::LANES;
    if n < SLICE {
        to.fill(0.0);
    }
    // SAFETY: elements below `n` are readable; `to` has room for `SLICE >= n`.
    unsafe {
        let (floats, halves) = (row.cast::<f32>().add(col), row.cast::<u16>().add(col));
        for i in (0..whole).step_by(S::LANES) {
            let v = match dtype {
                DType::F16 => s.load_f16(halves.add(i)),
                DType::BF16 => s.load_bf16(halves.add(i)),
                _ => s.load(floats.add(i)),
            };
            s.store(to.as_mut_ptr().add(i), v);
        }
        for i in whole..n {
            to[i] = match dtype {
                DType::F16 => s.half(halves.add(i).read_unaligned()),
                DType::BF16 => f32::from_bits(u32::from(halves.add(i).read_unaligned()) << 16),
                _ => floats.add(i).read_unaligned(),
            };
        }
    }
}

/// Few tokens at a time, row by row.
///
/// # Safety
/// The part lies within matrix, activations and tile.
#[inline(always)]
unsafe fn rows<S: Simd>(s: S, part: &Part) {
    for first in (0..part.n_tokens).step_by(GEMV_TOKENS) {
        // SAFETY: as promised by the caller.
        unsafe { some_rows(s, part, first, GEMV_TOKENS.min(part.n_tokens - first)) };
    }
}

/// `n <= GEMV_TOKENS` tokens from `first` on.
///
/// # Safety
/// As for [`rows`].
#[inline(always)]
unsafe fn some_rows<S: Simd>(s: S, part: &Part, first: usize, n_tokens: usize) {
    let cols = part.matrix.cols;
    let mut slice = [0.0; SLICE];
    for row in 0..part.n_rows {
        let mut accs = [[s.splat(0.0); 4]; GEMV_TOKENS];
        for col in (0..cols).step_by(SLICE) {
            let n = SLICE.min(cols - col);
            // SAFETY: the columns lie within the row and within the tokens' rows.
            unsafe {
                convert(s, part.matrix.dtype, part.row(row), col, n, &mut slice);
                for (token, acc) in accs.iter_mut().enumerate().take(n_tokens) {
                    let x = part.x(first + token).cast::<f32>().add(col);
                    for at in (0..n).step_by(4 * S::LANES) {
                        for (i, acc) in acc.iter_mut().enumerate() {
                            let at = at + i * S::LANES;
                            if at < n {
                                let w = s.load(slice.as_ptr().add(at));
                                *acc = s.fma(w, load_part(s, x.add(at), n - at), *acc);
                            }
                        }
                    }
                }
            }
        }
        for (token, acc) in accs.iter().enumerate().take(n_tokens) {
            let sum = s.add(s.add(acc[0], acc[1]), s.add(acc[2], acc[3]));
            // SAFETY: the tile has room for the part.
            unsafe { *part.tile.add((first + token) * part.stride + row) = s.sum(sum) };
        }
    }
}

/// Many tokens: panels of `R · LANES` rows, at most `T` tokens at a time.
///
/// # Safety
/// The part lies within matrix, activations and tile.
#[inline(always)]
unsafe fn panels<S: Simd, const R: usize, const T: usize>(s: S, part: &Part, panel: &mut Panel) {
    let cols = part.matrix.cols;
    for first_row in (0..part.n_rows).step_by(R * S::LANES) {
        for first_col in (0..cols).step_by(SLICE) {
            let n = SLICE.min(cols - first_col);
            // SAFETY: the slice lies within the matrix, the tokens within the part; the tile has room for whole panels.
            unsafe {
                s.vectorize(Unpack::<R> { part, first_row, first_col, n, panel });
                let n_groups = part.n_tokens.div_ceil(T);
                let mut token = 0;
                for group in 0..n_groups {
                    let n_tokens = (part.n_tokens - token).div_ceil(n_groups - group);
                    let tile = part.tile.add(token * part.stride + first_row);
                    let job = Job { part, panel: panel.columns.as_ptr(), first_col, n, token, tile };
                    match n_tokens {
                        0 => {}
                        1 => s.vectorize(Micro::<R, 1>(job)),
                        2 => s.vectorize(Micro::<R, 2>(job)),
                        3 => s.vectorize(Micro::<R, 3>(job)),
                        4 => s.vectorize(Micro::<R, 4>(job)),
                        5 if const { T > 4 } => s.vectorize(Micro::<R, 5>(job)),
                        6 if const { T > 5 } => s.vectorize(Micro::<R, 6>(job)),
                        _ => unreachable!("at most `T` tokens at a time"),
                    }
                    token += n_tokens;
                }
            }
        }
    }
}

/// Some tokens times one slice of a panel.
struct Job<'a> {
    part: &'a Part,
    panel: *const f32,
    first_col: usize,
    n: usize,
    token: usize,
    tile: *mut f32,
}

struct Micro<'a, const R: usize, const T: usize>(Job<'a>);

impl<const R: usize, const T: usize> Kernel for Micro<'_, R, T> {
    type Out = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let Job { part, panel, first_col, n, token, tile } = self.0;
        let mut x = [std::ptr::null(); T];
        let mut acc = [[s.splat(0.0); R]; T];
        // SAFETY: made in `panels` only, for tokens of the part; the tile has room for whole panels.
        unsafe {
            for t in 0..T {
                x[t] = part.x(token + t).cast::<f32>().add(first_col);
                if first_col > 0 {
                    for r in 0..R {
                        acc[t][r] = s.load(tile.add(t * part.stride + r * S::LANES));
                    }
                }
            }
            micro::floats::<S, R, T>(s, panel, R * S::LANES, x, 1, n, &mut acc);
            for t in 0..T {
                for r in 0..R {
                    s.store(tile.add(t * part.stride + r * S::LANES), acc[t][r]);
                }
            }
        }
    }
}

/// Turns a slice of a panel.
struct Unpack<'a, const R: usize> {
    part: &'a Part,
    first_row: usize,
    first_col: usize,
    n: usize,
    panel: &'a mut Panel,
}

impl<const R: usize> Kernel for Unpack<'_, R> {
    type Out = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let Self { part, first_row, first_col, n, panel } = self;
        let (lanes, width) = (S::LANES, R * S::LANES);
        for r in 0..R {
            for lane in 0..lanes {
                let row = first_row + r * lanes + lane;
                if row < part.n_rows {
                    // SAFETY: the row is one of the part's, the columns within it.
                    unsafe { convert(s, part.matrix.dtype, part.row(row), first_col, n, &mut panel.rows[lane]) };
                } else {
                    panel.rows[lane].fill(0.0);
                }
            }
            for col in (0..n).step_by(lanes) {
                // SAFETY: `LANES` rows of `SLICE` floats in, as many columns out, within the panel.
                unsafe {
                    let from = panel.rows.as_ptr().cast::<f32>().add(col).cast();
                    let to = panel.columns.as_mut_ptr().add(col * width + r * lanes).cast();
                    s.transpose(from, SLICE * 4, to, width * 4);
                }
            }
        }
    }
}
