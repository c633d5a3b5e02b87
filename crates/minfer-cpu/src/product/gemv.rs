//! One token or two: dots straight on the file's layout. Each row of the weights is read once, for all tokens.
//!
//! A row is unpacked 256 elements at a time into a [`Chunk`] that stays in the first-level cache (and mostly in
//! registers); integer dots of four neighbours each are scaled and added up in the lanes of one vector per token. What
//! depends on the activations alone is found once for all rows of a step that a worker multiplies, so that little is left to
//! do beside reading.

use super::{GEMV_TOKENS, Held, PREFETCH, Part};
use crate::blocks::{CHUNK, Chunk, Format};
use crate::simd::{Kernel, Simd};
use std::marker::PhantomData;

/// Columns whose activations are prepared at a time: more than most matrices have.
const SLICE: usize = 16 << 10;

/// Columns of the activations of one token or two.
#[repr(C, align(64))]
pub(crate) struct Slice {
    pub held: Held,
    tokens: [Prepared; GEMV_TOKENS],
}

/// Columns of a token's activations, and what each row of weights needs of them; then zeros.
#[repr(C, align(64))]
struct Prepared {
    /// Levels of both rows.
    q: [[i8; SLICE]; 2],
    /// Where the dots of four columns begin: what the offset of the weights would add to them, taken off.
    starts: [i32; SLICE / 4],
    /// For each group of weights, the scale of its activations.
    d: [f32; SLICE / 16],
    /// For each group of weights that have addends, the sum of its activations.
    sums: [f32; SLICE / 16],
}

/// Computes a part for weights of format `F`.
pub(crate) struct Multiply<'a, F> {
    part: Part,
    slice: &'a mut Slice,
    format: PhantomData<F>,
}

impl<'a, F: Format> Multiply<'a, F> {
    pub(crate) fn new(part: Part, slice: &'a mut Slice) -> Self {
        Self { part, slice, format: PhantomData }
    }
}

impl<F: Format> Kernel for Multiply<'_, F> {
    type Out = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let Self { part, slice, .. } = self;
        for first in (0..part.n_tokens).step_by(GEMV_TOKENS) {
            // SAFETY: `Part::compute` was promised that the part lies within matrix, activations and tile.
            unsafe {
                match (part.n_tokens - first, part.x.fine) {
                    (1, false) => multiply::<S, F, 1, false>(s, &part, first, slice),
                    (1, true) => multiply::<S, F, 1, true>(s, &part, first, slice),
                    (_, false) => multiply::<S, F, GEMV_TOKENS, false>(s, &part, first, slice),
                    (_, true) => multiply::<S, F, GEMV_TOKENS, true>(s, &part, first, slice),
                }
            }
        }
    }
}

/// All rows of the part for `N` tokens from `first` on, slice by slice. `FINE`: each has two rows of activations.
///
/// # Safety
/// The part lies within matrix, activations and tile; so do the tokens within the part.
#[inline(always)]
unsafe fn multiply<S: Simd, F: Format, const N: usize, const FINE: bool>(
    s: S,
    part: &Part,
    first: usize,
    slice: &mut Slice,
) {
    for first_col in (0..part.matrix.cols).step_by(SLICE) {
        let n_cols = SLICE.min(part.matrix.cols - first_col);
        // SAFETY: the columns lie within the matrix and the activations, which are whole blocks; the tile has room.
        unsafe {
            if slice.held.becomes(part, first, first_col) {
                for (token, x) in slice.tokens.iter_mut().enumerate().take(N) {
                    let token = first + token;
                    s.vectorize(Prepare::<F> { part, token, first_col, n_cols, x, format: PhantomData });
                }
            }
            for row in 0..part.n_rows {
                let at = part.row(row).add(first_col / F::BLOCK * F::BYTES);
                let totals = dots::<S, F, N, FINE>(s, at, n_cols, slice);
                for (token, total) in totals.into_iter().enumerate() {
                    let to = part.tile.add((first + token) * part.stride + row);
                    *to = if first_col > 0 { *to + total } else { total };
                }
            }
        }
    }
}

/// Prepares `n_cols` columns of a token of the part: whole blocks of its row, and at most `SLICE`. A function of its own, since
/// it is the same for one token and two, fine or not.
struct Prepare<'a, F> {
    part: &'a Part,
    token: usize,
    first_col: usize,
    n_cols: usize,
    x: &'a mut Prepared,
    format: PhantomData<F>,
}

impl<F: Format> Kernel for Prepare<'_, F> {
    type Out = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let Self { part, token, first_col, n_cols, x, .. } = self;
        let fine = part.x.fine;
        const { assert!(F::BLOCK == 256 || F::GROUP == 32, "no room for the scales of 256 more columns") };
        const { assert!(!F::HAS_MIN || F::OFFSET == 0 && !F::WIDE, "addend and offset share no way") };
        let whole = n_cols.next_multiple_of(CHUNK);
        // Scales and sums are read eight at a time from any pair of blocks on.
        let padded = if F::BLOCK == 32 { whole + CHUNK } else { whole };
        // SAFETY: made in `multiply` only, whose columns lie within the token's row, and within its second one if there is
        // one; here there is room for `SLICE`, which is whole chunks, and for twice as many scales and sums of groups of 32.
        unsafe {
            let first = part.q8(token, first_col);
            // Where there is no second row, its address is computed and never read.
            let second = first.next(part.x.cols);
            for (q, row) in x.q.iter_mut().zip([first, second]).take(1 + usize::from(fine)) {
                std::ptr::copy_nonoverlapping(row.q, q.as_mut_ptr(), n_cols);
                q[n_cols..whole].fill(0);
            }
            let d = if fine { second.d } else { first.d };
            for (group, to) in x.d[..n_cols / F::GROUP].iter_mut().enumerate() {
                *to = d.add(group * F::GROUP / 32).read_unaligned();
            }
            x.d[n_cols / F::GROUP..padded / F::GROUP].fill(0.0);
            if F::HAS_MIN {
                let sum = |sums: *mut i16, group: usize| {
                    let mut sum = 0;
                    for part in 0..F::GROUP / 16 {
                        sum += i32::from(sums.add(group * (F::GROUP / 16) + part).read_unaligned());
                    }
                    sum
                };
                for (group, to) in x.sums[..n_cols / F::GROUP].iter_mut().enumerate() {
                    let levels = sum(first.sums, group);
                    let levels = if fine { levels * 256 + sum(second.sums, group) } else { levels };
                    *to = levels as f32 * x.d[group];
                }
                x.sums[n_cols / F::GROUP..padded / F::GROUP].fill(0.0);
            } else if F::offset::<S>() != 0 {
                let (one, minus_offset) = (s.splat_i(0x0101_0101), s.splat_i(i32::from((-F::offset::<S>()) as u16)));
                for at in (0..whole).step_by(4 * S::LANES) {
                    // Four levels add up to 16 bits, the lower half of a lane.
                    let of = |row: usize| {
                        let q = s.load_i(x.q[row].as_ptr().cast::<u8>().add(at));
                        s.madd(s.dot(s.zero_i(), one, q), minus_offset)
                    };
                    let start = if fine { s.join(of(0), of(1)) } else { of(0) };
                    s.store_i(x.starts.as_mut_ptr().add(at / 4), start);
                }
            }
        }
    }
}

/// What one row gives for one token, still spread over lanes: products, and sums for the addends.
#[derive(Clone, Copy)]
struct Acc<S: Simd> {
    products: S::F,
    sums: S::F,
}

/// One row of weights, from `at` on, times the slice of each token.
///
/// # Safety
/// `n_cols` columns, whole blocks, are readable and prepared.
#[inline(always)]
unsafe fn dots<S: Simd, F: Format, const N: usize, const FINE: bool>(
    s: S,
    at: *const u8,
    n_cols: usize,
    slice: &Slice,
) -> [f32; N] {
    let chunk_bytes = const { CHUNK / F::BLOCK * F::BYTES };
    let (n_whole, rest) = (n_cols / CHUNK, n_cols % CHUNK);
    let zero = Acc::<S> { products: s.splat(0.0), sums: s.splat(0.0) };
    let mut accs = [zero; N];
    let mut chunk = Chunk::ZERO;
    // SAFETY: the columns are readable chunk by chunk, and prepared; prefetches never fault.
    unsafe {
        for index in 0..n_whole {
            let at = at.add(index * chunk_bytes);
            for line in (0..chunk_bytes).step_by(64) {
                s.prefetch(at.wrapping_add(PREFETCH + line));
            }
            F::unpack(s, at, CHUNK / F::BLOCK, &mut chunk);
            for (token, acc) in accs.iter_mut().enumerate() {
                *acc = dot::<S, F, CHUNK, FINE>(s, &chunk, &slice.tokens[token], index * CHUNK, *acc);
            }
        }
        if const { F::BLOCK == 32 } && rest > 0 {
            // Pairs of blocks, so that the compiler knows their number, but for an odd last one.
            for block in (0..rest / 32).step_by(2) {
                let at = at.add(n_whole * chunk_bytes + block * F::BYTES);
                s.prefetch(at.wrapping_add(PREFETCH));
                if block + 1 < rest / 32 {
                    F::unpack(s, at, 2, &mut chunk)
                } else {
                    F::unpack(s, at, 1, &mut chunk)
                }
                for (token, acc) in accs.iter_mut().enumerate() {
                    *acc = dot::<S, F, 64, FINE>(s, &chunk, &slice.tokens[token], n_whole * CHUNK + block * 32, *acc);
                }
            }
        }
    }
    let mut totals = [0.0; N];
    for (total, acc) in totals.iter_mut().zip(accs) {
        *total = s.sum(if F::HAS_MIN { s.add(acc.products, acc.sums) } else { acc.products });
    }
    totals
}

/// Adds the dot of the first `COLS` elements with those from column `col` on; beyond, the chunk's scales are zero.
///
/// # Safety
/// So many columns are prepared from there on, and scales and sums of 256.
#[inline(always)]
unsafe fn dot<S: Simd, F: Format, const COLS: usize, const FINE: bool>(
    s: S,
    chunk: &Chunk,
    x: &Prepared,
    col: usize,
    acc: Acc<S>,
) -> Acc<S> {
    let Acc { mut products, mut sums } = acc;
    // SAFETY: the chunk has 256 elements; `COLS` are prepared from `col` on.
    unsafe {
        let scales = s.scale_groups(F::GROUP, chunk.d.as_ptr(), x.d.as_ptr().add(col / F::GROUP));
        for v in 0..COLS / (4 * S::LANES) {
            let at = v * 4 * S::LANES;
            let w = s.load_i(chunk.q.as_ptr().add(at));
            let dots = |acc: S::I, row: usize| {
                let q = s.load_i(x.q[row].as_ptr().cast::<u8>().add(col + at));
                if F::WIDE { s.dot_wide(acc, w, q) } else { s.dot(acc, w, q) }
            };
            let start = match F::offset::<S>() {
                0 => s.zero_i(),
                _ => s.load_i(x.starts.as_ptr().add((col + at) / 4).cast()),
            };
            let dots = if FINE { s.join(dots(s.zero_i(), 0), dots(start, 1)) } else { dots(start, 0) };
            products = s.fma(s.to_f(dots), s.spread(F::GROUP, scales, v), products);
        }
        if F::HAS_MIN {
            sums = s.add_groups(F::GROUP, chunk.m.as_ptr(), x.sums.as_ptr().add(col / F::GROUP), sums);
        }
    }
    Acc { products, sums }
}
