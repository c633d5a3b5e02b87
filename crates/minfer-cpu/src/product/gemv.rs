//! One token or two: dots straight on the file's layout. Each row of the weights is read once, for all tokens.
//!
//! A row is unpacked 256 elements at a time into a [`Chunk`] that stays in the first-level cache (and mostly in
//! registers); integer dots of four neighbours each are scaled and added up in the lanes of one vector per token.

use super::{GEMV_TOKENS, PREFETCH, Part};
use crate::blocks::{CHUNK, Chunk, Format};
use crate::quantize::Q8Row;
use crate::simd::{Kernel, Simd};
use std::marker::PhantomData;

/// Computes a part for weights of format `F`.
pub(crate) struct Multiply<F> {
    part: Part,
    format: PhantomData<F>,
}

impl<F: Format> Multiply<F> {
    pub(crate) fn new(part: Part) -> Self {
        Self { part, format: PhantomData }
    }
}

impl<F: Format> Kernel for Multiply<F> {
    type Out = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let part = self.part;
        for first in (0..part.n_tokens).step_by(GEMV_TOKENS) {
            // SAFETY: `Part::compute` was promised that the part lies within matrix, activations and tile.
            unsafe {
                match (part.n_tokens - first, part.x.fine) {
                    (1, false) => multiply::<S, F, 1, false>(s, &part, first),
                    (1, true) => multiply::<S, F, 1, true>(s, &part, first),
                    (_, false) => multiply::<S, F, GEMV_TOKENS, false>(s, &part, first),
                    (_, true) => multiply::<S, F, GEMV_TOKENS, true>(s, &part, first),
                }
            }
        }
    }
}

/// The last, incomplete 256 activations of a row, padded with zeros so far that 256 may be read from any pair of blocks.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Tail {
    q: [i8; 2 * CHUNK],
    d: [f32; 2 * CHUNK / 32],
    sums: [i16; 2 * CHUNK / 16],
}

impl Tail {
    const ZERO: Self = Self { q: [0; 2 * CHUNK], d: [0.0; 2 * CHUNK / 32], sums: [0; 2 * CHUNK / 16] };

    /// Copies the first `n` activations, whole blocks.
    ///
    /// # Safety
    /// They are readable, and fewer than 256.
    unsafe fn fill(&mut self, x: Q8Row, n: usize) {
        // SAFETY: as promised by the caller.
        unsafe {
            std::ptr::copy_nonoverlapping(x.q, self.q.as_mut_ptr(), n);
            std::ptr::copy_nonoverlapping(x.d, self.d.as_mut_ptr(), n / 32);
            std::ptr::copy_nonoverlapping(x.sums, self.sums.as_mut_ptr(), n / 16);
        }
    }

    /// The activations from a block of the first eight on.
    #[inline(always)]
    fn at(&self, block: usize) -> Q8Row {
        let (q, d, sums) = (&self.q[block * 32..], &self.d[block..], &self.sums[block * 2..]);
        Q8Row { q: q.as_ptr().cast_mut(), d: d.as_ptr().cast_mut(), sums: sums.as_ptr().cast_mut() }
    }
}

/// What one row gives for one token, still spread over lanes: products, and sums for the addends or the offset.
#[derive(Clone, Copy)]
struct Acc<S: Simd> {
    products: S::F,
    sums: S::F,
}

/// All rows of the part for `N` tokens from `first` on. `FINE`: each has two rows of activations.
///
/// # Safety
/// The part lies within matrix, activations and tile; so do the tokens within the part.
#[inline(always)]
unsafe fn multiply<S: Simd, F: Format, const N: usize, const FINE: bool>(s: S, part: &Part, first: usize) {
    let cols = part.matrix.cols;
    let (n_whole, rest) = (cols / CHUNK, cols % CHUNK);
    let chunk_bytes = const { CHUNK / F::BLOCK * F::BYTES };
    let zero = Acc::<S> { products: s.splat(0.0), sums: s.splat(0.0) };
    let mut tails = [[const { Tail::ZERO }; 2]; N];
    if const { F::BLOCK == 32 } && rest > 0 {
        for (token, tails) in tails.iter_mut().enumerate() {
            // SAFETY: the tail of the row is `rest` elements from `n_whole` whole chunks on.
            let x = unsafe { activations(part, first + token, n_whole) };
            for (tail, x) in tails.iter_mut().zip(x).take(1 + usize::from(FINE)) {
                // SAFETY: the same.
                unsafe { tail.fill(x, rest) };
            }
        }
    }
    let mut chunk = Chunk::ZERO;
    for row in 0..part.n_rows {
        let mut accs = [zero; N];
        // SAFETY: the row lies in the matrix, chunk by chunk; prefetches never fault.
        unsafe {
            let start = part.row(row);
            for index in 0..n_whole {
                let at = start.add(index * chunk_bytes);
                for line in (0..chunk_bytes).step_by(64) {
                    s.prefetch(at.wrapping_add(PREFETCH + line));
                }
                F::unpack(s, at, CHUNK / F::BLOCK, &mut chunk);
                for (token, acc) in accs.iter_mut().enumerate() {
                    *acc = dot::<S, F, CHUNK, FINE>(s, &chunk, activations(part, first + token, index), *acc);
                }
            }
            if const { F::BLOCK == 32 } && rest > 0 {
                // Pairs of blocks, so that the compiler knows their number, but for an odd last one.
                for block in (0..rest / 32).step_by(2) {
                    let at = start.add(n_whole * chunk_bytes + block * F::BYTES);
                    if block + 1 < rest / 32 {
                        F::unpack(s, at, 2, &mut chunk)
                    } else {
                        F::unpack(s, at, 1, &mut chunk)
                    }
                    for (acc, tails) in accs.iter_mut().zip(&tails) {
                        *acc = dot::<S, F, 64, FINE>(s, &chunk, [tails[0].at(block), tails[1].at(block)], *acc);
                    }
                }
            }
            for (token, acc) in accs.iter().enumerate() {
                let factor = if F::HAS_MIN { 1.0 } else { -f32::from(F::offset::<S>()) };
                let total = s.sum(s.fma(acc.sums, s.splat(factor), acc.products));
                *part.tile.add((first + token) * part.stride + row) = total;
            }
        }
    }
}

/// Activations `256 · index ..` of a token: its row, and the second one if there is one.
///
/// # Safety
/// The token is one of the part's, the row that long.
#[inline(always)]
unsafe fn activations(part: &Part, token: usize, index: usize) -> [Q8Row; 2] {
    // SAFETY: as promised by the caller.
    let row = unsafe { part.q8(token, index * CHUNK) };
    // Where there is no second row, its address is computed and never read.
    [row, row.next(part.x.cols)]
}

/// Adds the dot of the first `COLS` elements; beyond, the chunk's scales are zero.
///
/// # Safety
/// 256 elements are readable from `x`, whose second row is read only if `FINE`.
#[inline(always)]
unsafe fn dot<S: Simd, F: Format, const COLS: usize, const FINE: bool>(
    s: S,
    chunk: &Chunk,
    x: [Q8Row; 2],
    acc: Acc<S>,
) -> Acc<S> {
    let Acc { mut products, mut sums } = acc;
    // SAFETY: chunk and `x` have 256 elements.
    unsafe {
        let scales = s.scale_groups(F::GROUP, chunk.d.as_ptr(), x[usize::from(FINE)].d);
        for v in 0..COLS / (4 * S::LANES) {
            let at = v * 4 * S::LANES;
            let w = s.load_i(chunk.q.as_ptr().add(at));
            let dots = |x: Q8Row| {
                let q = s.load_i(x.q.cast::<u8>().add(at));
                if F::WIDE { s.dot_wide(s.zero_i(), w, q) } else { s.dot(s.zero_i(), w, q) }
            };
            let dots = if FINE { s.join(dots(x[0]), dots(x[1])) } else { dots(x[0]) };
            products = s.fma(s.to_f(dots), s.spread(F::GROUP, scales, v), products);
        }
        let factors = if F::HAS_MIN { chunk.m.as_ptr() } else { chunk.d.as_ptr() };
        if F::HAS_MIN || F::offset::<S>() != 0 {
            for x in &x[..1 + usize::from(FINE)] {
                sums = s.add_sums(F::GROUP, factors, x.d, x.sums, sums);
            }
        }
    }
    Acc { products, sums }
}
