//! Few tokens: dots straight on the file's layout. Each row of the weights is read once, for all tokens.
//!
//! A row is unpacked 256 elements at a time into a [`Chunk`] that stays in the first-level cache (and mostly in
//! registers); integer dots of four neighbours each are scaled and added up in the lanes of one vector per token.

use super::{GEMV_ROWS, Part};
use crate::blocks::{CHUNK, Chunk, Format};
use crate::quantize::{Q8_BLOCK, Q8Row};
use crate::simd::{Kernel, Simd};
use std::marker::PhantomData;

/// Bytes that the weights are asked for ahead of their use.
const PREFETCH: usize = 2048;

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
        // SAFETY: `Part::compute` was promised that the part lies within matrix, activations and tile; tokens come in
        // groups of at most `GEMV_ROWS`.
        unsafe {
            if part.n_x == 1 {
                return multiply::<S, F, true>(s, &part, 0, 1);
            }
            for first in (0..part.n_x).step_by(GEMV_ROWS) {
                multiply::<S, F, false>(s, &part, first, GEMV_ROWS.min(part.n_x - first));
            }
        }
    }
}

/// 256 quantised activations of one token.
#[derive(Clone, Copy)]
struct X {
    q: *const u8,
    d: *const f32,
    sums: *const i16,
}

/// The last, incomplete 256 activations of a token, padded with zeros.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Tail {
    q: [u8; CHUNK],
    d: [f32; 8],
    sums: [i16; 16],
}

/// What one row gives for one token, still spread over lanes: products, and sums for the addends or the offset.
#[derive(Clone, Copy)]
struct Acc<S: Simd> {
    products: S::F,
    sums: S::F,
}

/// All rows of the part for tokens `first .. first + n`. `ONE`: `n` is 1.
///
/// # Safety
/// The part lies within matrix, activations and tile; `n <= GEMV_ROWS`.
#[inline(always)]
unsafe fn multiply<S: Simd, F: Format, const ONE: bool>(s: S, part: &Part, first: usize, n: usize) {
    let n = if ONE { 1 } else { n };
    let cols = part.matrix.cols;
    let (n_whole, rest) = (cols / CHUNK, cols % CHUNK);
    let chunk_bytes = CHUNK / F::BLOCK * part.matrix.dtype.block_bytes();
    let zero = Acc::<S> { products: s.splat(0.0), sums: s.splat(0.0) };
    let mut tails = [Tail { q: [0; CHUNK], d: [0.0; 8], sums: [0; 16] }; GEMV_ROWS];
    if const { F::BLOCK == 32 } && rest > 0 {
        for (token, tail) in tails.iter_mut().enumerate().take(n) {
            // SAFETY: the tail of the row is `rest` elements from `n_whole` whole chunks on.
            unsafe {
                let x = activations(part, first + token, n_whole);
                std::ptr::copy_nonoverlapping(x.q, tail.q.as_mut_ptr(), rest);
                std::ptr::copy_nonoverlapping(x.d, tail.d.as_mut_ptr(), rest / Q8_BLOCK);
                std::ptr::copy_nonoverlapping(x.sums, tail.sums.as_mut_ptr(), rest / 16);
            }
        }
    }
    let mut chunk = Chunk::ZERO;
    for row in 0..part.n_rows {
        let mut accs = [zero; GEMV_ROWS];
        // SAFETY: the row lies in the matrix, chunk by chunk; prefetches never fault.
        unsafe {
            let start = part.row(row);
            for index in 0..n_whole {
                let at = start.add(index * chunk_bytes);
                for line in (0..chunk_bytes).step_by(64) {
                    s.prefetch(at.wrapping_add(PREFETCH + line));
                }
                F::unpack(s, at, CHUNK / F::BLOCK, &mut chunk);
                for (token, acc) in accs.iter_mut().enumerate().take(n) {
                    *acc = dot::<S, F>(s, &chunk, activations(part, first + token, index), *acc);
                }
            }
            if const { F::BLOCK == 32 } && rest > 0 {
                F::unpack(s, start.add(n_whole * chunk_bytes), rest / F::BLOCK, &mut chunk);
                for (token, acc) in accs.iter_mut().enumerate().take(n) {
                    let tail = &tails[token];
                    let x = X { q: tail.q.as_ptr(), d: tail.d.as_ptr(), sums: tail.sums.as_ptr() };
                    *acc = dot::<S, F>(s, &chunk, x, *acc);
                }
            }
            for (token, acc) in accs.iter().enumerate().take(n) {
                let factor = if F::HAS_MIN { 1.0 } else { -f32::from(F::offset::<S>()) };
                let total = s.sum(s.fma(acc.sums, s.splat(factor), acc.products));
                *part.tile.add((first + token) * part.stride + row) = total;
            }
        }
    }
}

/// Activations `256 · index ..` of a token.
///
/// # Safety
/// The token is one of the part's, the row that long.
#[inline(always)]
unsafe fn activations(part: &Part, token: usize, index: usize) -> X {
    // SAFETY: as promised by the caller.
    unsafe {
        let row = Q8Row::at(part.x_row(token).cast_mut(), 0, part.x.cols);
        let at = index * CHUNK;
        X { q: row.q.add(at).cast(), d: row.d.add(at / Q8_BLOCK), sums: row.sums.add(at / 16) }
    }
}

/// Adds the dot of 256 elements.
///
/// # Safety
/// `x` has 256 elements.
#[inline(always)]
unsafe fn dot<S: Simd, F: Format>(s: S, chunk: &Chunk, x: X, acc: Acc<S>) -> Acc<S> {
    let Acc { mut products, mut sums } = acc;
    // SAFETY: chunk and `x` have 256 elements.
    unsafe {
        let scales = s.scale_groups(F::GROUP, chunk.d.as_ptr(), x.d);
        for v in 0..CHUNK / (4 * S::LANES) {
            let at = v * 4 * S::LANES;
            let (w, q) = (s.load_i(chunk.q.as_ptr().add(at)), s.load_i(x.q.add(at)));
            let dots = if F::WIDE { s.dot_wide(s.zero_i(), w, q) } else { s.dot(s.zero_i(), w, q) };
            products = s.fma(s.to_f(dots), s.spread(F::GROUP, scales, v), products);
        }
        if F::HAS_MIN {
            sums = s.add_sums(F::GROUP, chunk.m.as_ptr(), x.d, x.sums, sums);
        } else if F::offset::<S>() != 0 {
            sums = s.add_sums(F::GROUP, chunk.d.as_ptr(), x.d, x.sums, sums);
        }
    }
    Acc { products, sums }
}
