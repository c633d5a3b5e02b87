//! Many tokens: a slice of a panel of weight rows is unpacked once into the first-level cache, then multiplied with all
//! tokens of the tile, a few at a time.

use super::Part;
use super::micro::{self, Ints, Tokens};
use crate::blocks::{CHUNK, Chunk, Format, unpack_columns};
use crate::quantize::Q8Row;
use crate::simd::{Kernel, Simd};
use std::marker::PhantomData;

/// Columns of a slice.
const SLICE: usize = 512;
/// Most rows of a panel.
const ROWS: usize = 32;

/// An unpacked slice of a panel; see [`Ints`].
#[repr(C, align(64))]
pub(crate) struct Panel {
    q: [u8; ROWS * SLICE],
    d: [f32; ROWS * SLICE / 16],
    m: [f32; ROWS * SLICE / 16],
}

/// Computes a part for weights of format `F`.
pub(crate) struct Multiply<'a, F> {
    part: Part,
    panel: &'a mut Panel,
    rows: &'a mut [Chunk; 16],
    format: PhantomData<F>,
}

impl<'a, F: Format> Multiply<'a, F> {
    pub(crate) fn new(part: Part, panel: &'a mut Panel, rows: &'a mut [Chunk; 16]) -> Self {
        Self { part, panel, rows, format: PhantomData }
    }
}

impl<F: Format> Kernel for Multiply<'_, F> {
    type Out = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        // SAFETY: `Part::compute` was promised that the part lies within matrix, activations and tile.
        unsafe {
            // Registers: sums and totals of R · T vectors each, R of weights, and some more.
            // `const`, so that only the branch taken is compiled.
            if const { S::LANES == 16 } {
                multiply::<S, F, 2, 6>(s, &self.part, self.panel, self.rows);
            } else {
                multiply::<S, F, 2, 3>(s, &self.part, self.panel, self.rows);
            }
        }
    }
}

/// The part, in panels of `R · LANES` rows, for at most `T` tokens at a time.
///
/// # Safety
/// The part lies within matrix, activations and tile.
#[inline(always)]
unsafe fn multiply<S: Simd, F: Format, const R: usize, const T: usize>(
    s: S,
    part: &Part,
    panel: &mut Panel,
    rows: &mut [Chunk; 16],
) {
    let cols = part.matrix.cols;
    for first_row in (0..part.n_rows).step_by(R * S::LANES) {
        for first_col in (0..cols).step_by(SLICE) {
            let n_cols = SLICE.min(cols - first_col);
            // SAFETY: the slice lies within the matrix; the tile has room for whole panels.
            unsafe {
                s.vectorize(Unpack::<F, R> { part, first_row, first_col, n_cols, panel, rows, format: PhantomData });
                let ints = Ints {
                    q: panel.q.as_ptr(),
                    d: panel.d.as_ptr(),
                    m: panel.m.as_ptr(),
                    n_blocks: n_cols / 32,
                    offset: F::offset::<S>(),
                };
                // Groups of tokens of nearly equal size, so that no odd one stays alone.
                let n_groups = part.n_tokens.div_ceil(T);
                let mut token = 0;
                for group in 0..n_groups {
                    let n = (part.n_tokens - token).div_ceil(n_groups - group);
                    let tile = part.tile.add(token * part.stride + first_row);
                    let job = Job { part, ints, x: activations(part, token, first_col), tile, fresh: first_col == 0 };
                    if part.x.fine {
                        by_class::<S, F, R, T, true>(s, n, job)
                    } else {
                        by_class::<S, F, R, T, false>(s, n, job)
                    }
                    token += n;
                }
            }
        }
    }
}

/// Activations of the tokens from `token` on, from column `col` on.
///
/// # Safety
/// The token is one of the part's, the column starts one of its blocks.
#[inline(always)]
unsafe fn activations(part: &Part, token: usize, col: usize) -> Tokens {
    // SAFETY: as promised by the caller.
    let row = unsafe { part.q8(token, col) };
    Tokens {
        q: row.q.cast(),
        d: row.d.cast(),
        sums: row.sums.cast(),
        token_bytes: part.x.token_bytes(),
        second_row: Q8Row::bytes(part.x.cols),
    }
}

/// Some tokens times one slice of a panel.
#[derive(Clone, Copy)]
struct Job<'a> {
    part: &'a Part,
    ints: Ints,
    x: Tokens,
    tile: *mut f32,
    fresh: bool,
}

/// Runs the job with the innermost loop for the format's properties.
///
/// # Safety
/// The job lies within its part; the panel is unpacked.
#[inline(always)]
unsafe fn by_class<S: Simd, F: Format, const R: usize, const T: usize, const FINE: bool>(s: S, n: usize, job: Job<'_>) {
    const { assert!(!F::WIDE || F::GROUP == 32 && !F::HAS_MIN, "no loop for such a format") };
    // SAFETY: as promised by the caller.
    unsafe {
        if const { F::GROUP == 32 && F::HAS_MIN } {
            by_tokens::<S, R, T, 32, true, false, FINE>(s, n, job)
        } else if const { F::GROUP == 32 && F::WIDE } {
            by_tokens::<S, R, T, 32, false, true, FINE>(s, n, job)
        } else if const { F::GROUP == 32 } {
            by_tokens::<S, R, T, 32, false, false, FINE>(s, n, job)
        } else if const { F::HAS_MIN } {
            by_tokens::<S, R, T, 16, true, false, FINE>(s, n, job)
        } else {
            by_tokens::<S, R, T, 16, false, false, FINE>(s, n, job)
        }
    }
}

/// Runs the job for exactly `n <= T` tokens.
///
/// # Safety
/// As for [`by_class`].
#[inline(always)]
unsafe fn by_tokens<
    S: Simd,
    const R: usize,
    const T: usize,
    const G: usize,
    const MIN: bool,
    const WIDE: bool,
    const FINE: bool,
>(
    s: S,
    n: usize,
    job: Job<'_>,
) {
    match n {
        0 => {}
        1 => s.vectorize(Micro::<R, 1, G, MIN, WIDE, FINE>(job)),
        2 => s.vectorize(Micro::<R, 2, G, MIN, WIDE, FINE>(job)),
        3 => s.vectorize(Micro::<R, 3, G, MIN, WIDE, FINE>(job)),
        4 if const { T > 3 } => s.vectorize(Micro::<R, 4, G, MIN, WIDE, FINE>(job)),
        5 if const { T > 4 } => s.vectorize(Micro::<R, 5, G, MIN, WIDE, FINE>(job)),
        6 if const { T > 5 } => s.vectorize(Micro::<R, 6, G, MIN, WIDE, FINE>(job)),
        _ => unreachable!("at most `T` tokens at a time"),
    }
}

struct Micro<'a, const R: usize, const T: usize, const G: usize, const MIN: bool, const WIDE: bool, const FINE: bool>(
    Job<'a>,
);

impl<const R: usize, const T: usize, const G: usize, const MIN: bool, const WIDE: bool, const FINE: bool> Kernel
    for Micro<'_, R, T, G, MIN, WIDE, FINE>
{
    type Out = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let Job { part, ints, x, tile, fresh } = self.0;
        let mut acc = [[s.splat(0.0); R]; T];
        // SAFETY: made in `multiply` only, for tokens of the part; the tile has room for whole panels.
        unsafe {
            for t in 0..T {
                if !fresh {
                    for r in 0..R {
                        acc[t][r] = s.load(tile.add(t * part.stride + r * S::LANES));
                    }
                }
            }
            micro::ints::<S, R, T, G, MIN, WIDE, FINE>(s, ints, x, &mut acc);
            for t in 0..T {
                for r in 0..R {
                    s.store(tile.add(t * part.stride + r * S::LANES), acc[t][r]);
                }
            }
        }
    }
}

/// Unpacks a slice of a panel.
struct Unpack<'a, F, const R: usize> {
    part: &'a Part,
    first_row: usize,
    first_col: usize,
    n_cols: usize,
    panel: &'a mut Panel,
    rows: &'a mut [Chunk; 16],
    format: PhantomData<F>,
}

impl<F: Format, const R: usize> Kernel for Unpack<'_, F, R> {
    type Out = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let Self { part, first_row, first_col, n_cols, panel, rows, .. } = self;
        let (lanes, width) = (S::LANES, R * S::LANES);
        for r in 0..R {
            for chunk_col in (0..n_cols).step_by(CHUNK) {
                let first_group = chunk_col / F::GROUP;
                for (lane, chunk) in rows.iter_mut().enumerate().take(lanes) {
                    let row = first_row + r * lanes + lane;
                    if row < part.n_rows {
                        // SAFETY: the row and its blocks from this column on are in the matrix.
                        unsafe {
                            let at = part.row(row).add((first_col + chunk_col) / F::BLOCK * F::BYTES);
                            // So many rows side by side are more than a machine foresees: ask for the next panel's, in
                            // the first panel for those of the next slice.
                            let ahead = if first_row == 0 && first_col + n_cols < part.matrix.cols {
                                SLICE / F::BLOCK * F::BYTES
                            } else {
                                width * part.matrix.row_bytes
                            };
                            for line in (0..CHUNK / F::BLOCK * F::BYTES).step_by(64) {
                                s.prefetch(at.wrapping_add(ahead + line));
                            }
                            unpack_columns::<S, F>(s, at, CHUNK.min(n_cols - chunk_col), chunk);
                        }
                    } else {
                        // Rows beyond the last: computed and never read. Any finite numbers do.
                        *chunk = Chunk::ZERO;
                    }
                }
                // Columns beyond the last block hold stale integers, which no micro kernel reads.
                let from = rows.as_ptr();
                // SAFETY: `rows` are `LANES` chunks of 256 bytes, 16 scales and 16 addends; the panel has room for the
                // whole chunk at this column: columns of a slice are at most `SLICE`, itself whole chunks.
                unsafe {
                    for col in (0..CHUNK).step_by(4 * lanes) {
                        let to = panel.q.as_mut_ptr().add((chunk_col + col) * width + r * lanes * 4);
                        s.transpose((&raw const (*from).q).cast::<u8>().add(col), size_of::<Chunk>(), to, width * 4);
                    }
                    for g in (0..CHUNK / F::GROUP).step_by(lanes) {
                        let to = (first_group + g) * width + r * lanes;
                        let d = (&raw const (*from).d).cast::<f32>().add(g);
                        s.transpose(d.cast(), size_of::<Chunk>(), panel.d.as_mut_ptr().add(to).cast(), width * 4);
                        if F::HAS_MIN {
                            let m = (&raw const (*from).m).cast::<f32>().add(g);
                            s.transpose(m.cast(), size_of::<Chunk>(), panel.m.as_mut_ptr().add(to).cast(), width * 4);
                        }
                    }
                }
            }
        }
    }
}
