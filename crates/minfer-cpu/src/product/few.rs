//! A few tokens: four rows of weights at a time, unpacked into the first-level cache and multiplied with all tokens.
//!
//! The lanes of a vector are shared out among the tokens, `K` neighbouring ones each. So many times four columns of a
//! row of weights, repeated, meet the same columns of every token: the weights stay as they are unpacked, and only the
//! activations are brought side by side.

use super::{Held, PREFETCH, Part};
use crate::blocks::{CHUNK, Chunk, Format, unpack_columns};
use crate::simd::{Kernel, MAX_LANES, Simd};
use std::marker::PhantomData;

/// Most tokens. Measured with 16 lanes: with one for each token, turning the weights is less work.
pub(crate) const FEW_TOKENS: usize = 8;
/// Rows of weights side by side.
const ROWS: usize = 4;
/// Columns whose activations are side by side at a time: beside the weights in the first-level cache, or nearly.
const SLICE: usize = 1024;

/// Slices that are kept from one part of a step to the next: as many columns as most matrices have.
const SLICES: usize = 10;

/// All tokens' activations, as lanes want them.
pub(crate) type Slices = [Slice; SLICES];

/// Columns of them.
#[repr(C, align(64))]
pub(crate) struct Slice {
    pub held: Held,
    /// Levels, vector after vector; in each block those of second rows after those of first ones.
    q: [u8; 2 * SLICE * FEW_TOKENS],
    /// For each block, the scale of each lane's token.
    d: [[f32; MAX_LANES]; SLICE / 32],
    /// For each group of weights, the sum of its levels in a token's first lane: where groups have addends, the bits of a
    /// float, times the token's scale; else times the offset, where dots begin.
    sums: [[u32; MAX_LANES]; SLICE / 16],
}

/// Computes a part for weights of format `F`.
pub(crate) struct Multiply<'a, F> {
    part: Part,
    slices: &'a mut Slices,
    rows: &'a mut [Chunk; ROWS],
    format: PhantomData<F>,
}

impl<'a, F: Format> Multiply<'a, F> {
    pub(crate) fn new(part: Part, slices: &'a mut Slices, rows: &'a mut [Chunk; ROWS]) -> Self {
        Self { part, slices, rows, format: PhantomData }
    }
}

impl<F: Format> Kernel for Multiply<'_, F> {
    type Out = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let Self { part, slices, rows, .. } = self;
        // SAFETY: `Part::compute` was promised that the part lies within matrix, activations and tile.
        unsafe {
            // As many lanes each as there are. `const`, so that only branches that can be taken are compiled.
            match S::LANES / part.x.n_tokens.max(1) {
                1 if const { S::LANES / FEW_TOKENS == 1 } => by_rows::<S, F, 1>(s, &part, slices, rows),
                2 | 3 => by_rows::<S, F, 2>(s, &part, slices, rows),
                4.. if const { S::LANES / FEW_TOKENS > 1 } => by_rows::<S, F, 4>(s, &part, slices, rows),
                _ => unreachable!("fewer tokens go to `gemv`, more to `gemm`"),
            }
        }
    }
}

/// The part, with the loops for one row of activations per token, or two.
///
/// # Safety
/// As for [`multiply`].
#[inline(always)]
unsafe fn by_rows<S: Simd, F: Format, const K: usize>(
    s: S,
    part: &Part,
    slices: &mut Slices,
    rows: &mut [Chunk; ROWS],
) {
    // SAFETY: as promised by the caller.
    unsafe {
        if part.x.fine {
            multiply::<S, F, K, true>(s, part, slices, rows)
        } else {
            multiply::<S, F, K, false>(s, part, slices, rows)
        }
    }
}

/// The part, slice by slice, with `K` lanes for each token.
///
/// # Safety
/// The part lies within matrix, activations and tile, and has at most `LANES / K` tokens.
#[inline(always)]
unsafe fn multiply<S: Simd, F: Format, const K: usize, const FINE: bool>(
    s: S,
    part: &Part,
    slices: &mut Slices,
    rows: &mut [Chunk; ROWS],
) {
    for first_col in (0..part.matrix.cols).step_by(SLICE) {
        let n_cols = SLICE.min(part.matrix.cols - first_col);
        let slice = &mut slices[first_col / SLICE % SLICES];
        // SAFETY: the slice lies within the activations, a row's columns within the matrix; the tile has room for rows up
        // to the next multiple of 32.
        unsafe {
            if slice.held.becomes(part, 0, first_col) {
                fill::<S, F, K, FINE>(part, first_col, n_cols, slice);
            }
            for first_row in (0..part.n_rows).step_by(ROWS) {
                let mut totals = Totals([[0.0; MAX_LANES]; ROWS]);
                for col in (0..n_cols).step_by(CHUNK) {
                    let n_cols = CHUNK.min(n_cols - col);
                    unpack::<S, F>(s, part, first_row, first_col + col, n_cols, rows);
                    by_class::<S, F, K, FINE>(s, Dots { slice, col, n_blocks: n_cols / 32, rows, totals: &mut totals });
                }
                for token in 0..part.n_tokens {
                    for (row, lanes) in totals.0.iter().enumerate() {
                        let to = part.tile.add(token * part.stride + first_row + row);
                        let before = if first_col > 0 { *to } else { 0.0 };
                        *to = lanes[token * K..][..K].iter().fold(before, |sum, lane| sum + lane);
                    }
                }
            }
        }
    }
}

/// Bytes of a block's levels: `LANES / K` tokens' of 32, and as many of their second rows.
const fn block_bytes<S: Simd>(k: usize, fine: bool) -> usize {
    S::LANES / k * 32 * (1 + fine as usize)
}

/// Brings the activations of all tokens side by side. Lanes of no token keep whatever levels and scales were there, which
/// change nothing but themselves; their sums are cleared, since integers of another format are slow as floats.
///
/// # Safety
/// The columns lie within the rows; there are at most `SLICE`, and `K` lanes for each token.
#[inline(always)]
unsafe fn fill<S: Simd, F: Format, const K: usize, const FINE: bool>(
    part: &Part,
    first_col: usize,
    n_cols: usize,
    slice: &mut Slice,
) {
    for sums in &mut slice.sums[..n_cols / F::GROUP] {
        sums[part.n_tokens * K..].fill(0);
    }
    for token in 0..part.n_tokens {
        for block in 0..n_cols / 32 {
            // SAFETY: the block lies within the token's row, and in its second one if there is one; a slice has room for
            // two rows of `FEW_TOKENS`.
            unsafe {
                let first = part.q8(token, first_col + block * 32);
                let second = first.next(part.x.cols);
                for (index, row) in [first, second].into_iter().enumerate().take(1 + usize::from(FINE)) {
                    let to = block * block_bytes::<S>(K, FINE) + index * block_bytes::<S>(K, false) + token * 4 * K;
                    let to = slice.q.as_mut_ptr().add(to);
                    for vector in 0..8 / K {
                        let levels = row.q.cast::<u8>().add(vector * 4 * K);
                        std::ptr::copy_nonoverlapping(levels, to.add(vector * 4 * S::LANES), 4 * K);
                    }
                }
                let d = if FINE { second.d } else { first.d }.read_unaligned();
                slice.d[block][token * K..][..K].fill(d);
                let levels = |half: usize| {
                    let sum = i32::from(first.sums.add(half).read_unaligned());
                    if FINE { sum * 256 + i32::from(second.sums.add(half).read_unaligned()) } else { sum }
                };
                let halves = [levels(0), levels(1)];
                for group in 0..32 / F::GROUP {
                    let sum = if F::GROUP == 32 { halves[0] + halves[1] } else { halves[group] };
                    let lanes = &mut slice.sums[block * (32 / F::GROUP) + group][token * K..][..K];
                    lanes.fill(0);
                    lanes[0] = if F::HAS_MIN {
                        (sum as f32 * d).to_bits()
                    } else {
                        (-i32::from(F::offset::<S>()) * sum) as u32
                    };
                }
            }
        }
    }
}

/// Unpacks at most 256 columns of four rows; where there is no such row, the last one again.
///
/// # Safety
/// The columns lie within the matrix, the first row in the part.
#[inline(always)]
unsafe fn unpack<S: Simd, F: Format>(
    s: S,
    part: &Part,
    first_row: usize,
    col: usize,
    n_cols: usize,
    rows: &mut [Chunk; ROWS],
) {
    for (index, chunk) in rows.iter_mut().enumerate() {
        let row = (first_row + index).min(part.n_rows - 1);
        // SAFETY: the row and its blocks from this column on are in the matrix; prefetches never fault.
        unsafe {
            let at = part.row(row).add(col / F::BLOCK * F::BYTES);
            for line in (0..CHUNK / F::BLOCK * F::BYTES).step_by(64) {
                s.prefetch(at.wrapping_add(PREFETCH + line));
            }
            unpack_columns::<S, F>(s, at, n_cols, chunk);
        }
    }
}

/// What four rows give for each lane.
#[repr(C, align(64))]
struct Totals([[f32; MAX_LANES]; ROWS]);

/// Four unpacked rows times all tokens.
struct Dots<'a> {
    slice: &'a Slice,
    /// The chunk's column in the slice.
    col: usize,
    n_blocks: usize,
    rows: &'a [Chunk; ROWS],
    totals: &'a mut Totals,
}

/// Runs the dots with the innermost loop for the format's properties.
///
/// # Safety
/// The blocks lie within the slice, which is filled, and the unpacked rows.
#[inline(always)]
unsafe fn by_class<S: Simd, F: Format, const K: usize, const FINE: bool>(s: S, dots: Dots<'_>) {
    const { assert!(!F::WIDE || F::GROUP == 32 && !F::HAS_MIN, "no loop for such a format") };
    if const { F::GROUP == 32 && F::HAS_MIN } {
        s.vectorize(Add::<K, 32, true, false, FINE>(dots))
    } else if const { F::GROUP == 32 && F::WIDE } {
        s.vectorize(Add::<K, 32, false, true, FINE>(dots))
    } else if const { F::GROUP == 32 } {
        s.vectorize(Add::<K, 32, false, false, FINE>(dots))
    } else if const { F::HAS_MIN } {
        s.vectorize(Add::<K, 16, true, false, FINE>(dots))
    } else {
        s.vectorize(Add::<K, 16, false, false, FINE>(dots))
    }
}

/// Adds to the totals, group by group: in each lane the exact integer sum of its columns, then times both scales.
///
/// `K`: lanes of a token. The others are those of [`super::micro::ints`].
struct Add<'a, const K: usize, const G: usize, const MIN: bool, const WIDE: bool, const FINE: bool>(Dots<'a>);

impl<const K: usize, const G: usize, const MIN: bool, const WIDE: bool, const FINE: bool> Kernel
    for Add<'_, K, G, MIN, WIDE, FINE>
{
    type Out = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let Dots { slice, col, n_blocks, rows, totals } = self.0;
        // SAFETY: made in `by_class` only, which was promised that the blocks lie within the slice and the unpacked rows.
        unsafe {
            let mut acc = [s.splat(0.0); ROWS];
            for r in 0..ROWS {
                acc[r] = s.load(totals.0[r].as_ptr());
            }
            for block in 0..n_blocks {
                let at_slice = col / 32 + block;
                let x = slice.q.as_ptr().add(at_slice * block_bytes::<S>(K, FINE));
                let x_scales = s.load(slice.d.as_ptr().add(at_slice).cast());
                for half in 0..32 / G {
                    let sums = slice.sums.as_ptr().add(at_slice * (32 / G) + half);
                    let start = if MIN { s.zero_i() } else { s.load_i(sums.cast()) };
                    let mut dots = [if FINE { s.zero_i() } else { start }; ROWS];
                    for row in 0..1 + usize::from(FINE) {
                        if row == 1 {
                            for r in 0..ROWS {
                                dots[r] = s.join(dots[r], start);
                            }
                        }
                        let x = x.add(row * block_bytes::<S>(K, false) + half * G * S::LANES / K);
                        for part in 0..G / (4 * K) {
                            let x = s.load_i(x.add(part * 4 * S::LANES));
                            for r in 0..ROWS {
                                let w = rows[r].q.as_ptr().add(block * 32 + half * G + part * 4 * K);
                                let w = match K {
                                    4 => s.splat16(w),
                                    2 => s.splat8(w),
                                    _ => s.splat4(w),
                                };
                                dots[r] = if WIDE { s.dot_wide(dots[r], w, x) } else { s.dot(dots[r], w, x) };
                            }
                        }
                    }
                    let group = block * (32 / G) + half;
                    for r in 0..ROWS {
                        let scales = s.mul(s.splat(rows[r].d[group]), x_scales);
                        acc[r] = s.fma(s.to_f(dots[r]), scales, acc[r]);
                        if MIN {
                            acc[r] = s.fma(s.splat(rows[r].m[group]), s.load(sums.cast()), acc[r]);
                        }
                    }
                }
            }
            for r in 0..ROWS {
                s.store(totals.0[r].as_mut_ptr(), acc[r]);
            }
        }
    }
}
