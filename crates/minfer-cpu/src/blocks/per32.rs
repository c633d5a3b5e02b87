//! The formats in blocks of 32: `d: f16 [, m: f16] [, high bits: u32], levels`.
//!
//! Nibbles: byte `i` of 16 holds element `i` below and element `i + 16` above. The fifth bit of element `i` is bit `i`.

use super::{CHUNK, Chunk, Format, u16_at};
use crate::simd::Simd;

/// Signed bytes; value `d · q`.
pub(crate) struct Q8_0;
/// Nibbles; value `d · (q - 8)`.
pub(crate) struct Q4_0;
/// Nibbles; value `d · q + m`.
pub(crate) struct Q4_1;
/// Nibbles and a fifth bit; value `d · (q - 16)`.
pub(crate) struct Q5_0;
/// Nibbles and a fifth bit; value `d · q + m`.
pub(crate) struct Q5_1;

/// Half floats at the same place of each block to floats.
///
/// # Safety
/// `n_blocks <= 8` blocks of `stride` bytes are readable from `at`.
#[inline(always)]
pub(super) unsafe fn scales<S: Simd>(s: S, at: *const u8, stride: usize, n_blocks: usize, out: &mut [f32; 16]) {
    let mut halves = [0u16; 8];
    for (i, half) in halves.iter_mut().enumerate() {
        if i < n_blocks {
            // SAFETY: block `i` is there.
            *half = unsafe { u16_at(at.add(i * stride)) };
        }
    }
    // SAFETY: `out` has room for eight.
    unsafe { s.halves8(halves, out.as_mut_ptr()) }
}

/// How the levels of blocks become bytes.
pub(super) trait Levels: Format {
    /// The levels of two blocks, in element order.
    ///
    /// # Safety
    /// The blocks are readable.
    unsafe fn levels<S: Simd>(s: S, first: *const u8, second: *const u8) -> S::B;
}

/// Unpacks the levels of blocks, two at a time; where there is no second, the first again.
///
/// # Safety
/// `n_blocks <= 8` blocks are readable.
#[inline(always)]
pub(super) unsafe fn levels<S: Simd, L: Levels>(s: S, blocks: *const u8, n_blocks: usize, out: &mut Chunk) {
    for i in (0..n_blocks.min(CHUNK / 32)).step_by(2) {
        // SAFETY: block `i` is there, and so is the next one, or it is not read; the chunk has room for pairs.
        unsafe {
            let first = blocks.add(i * L::BYTES);
            let second = if i + 1 < n_blocks { first.add(L::BYTES) } else { first };
            s.store_b(out.q.as_mut_ptr().add(i * 32), L::levels(s, first, second));
        }
    }
}

/// The fifth bits of two blocks.
///
/// # Safety
/// Four bytes are readable from each.
#[inline(always)]
unsafe fn fifth_bits<S: Simd>(s: S, first: *const u8, second: *const u8) -> S::B {
    // SAFETY: as promised by the caller.
    let [first, second] =
        unsafe { [first, second].map(|at| u64::from(u32::from_le(at.cast::<u32>().read_unaligned()))) };
    s.bits(first | second << 32)
}

impl Levels for Q8_0 {
    #[inline(always)]
    unsafe fn levels<S: Simd>(s: S, first: *const u8, second: *const u8) -> S::B {
        // SAFETY: the blocks are readable.
        unsafe { s.xor_b(s.load_b2(first.add(2), second.add(2)), s.splat_b(S::WIDE_BIAS)) }
    }
}

impl Format for Q8_0 {
    const BLOCK: usize = 32;
    const BYTES: usize = 34;
    const GROUP: usize = 32;
    const HAS_MIN: bool = false;
    const WIDE: bool = true;
    const OFFSET: i16 = 0;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, blocks: *const u8, n_blocks: usize, out: &mut Chunk) {
        // SAFETY: the blocks are readable.
        unsafe {
            scales(s, blocks, Self::BYTES, n_blocks, &mut out.d);
            levels::<S, Self>(s, blocks, n_blocks, out);
        }
    }
}

impl Levels for Q4_0 {
    #[inline(always)]
    unsafe fn levels<S: Simd>(s: S, first: *const u8, second: *const u8) -> S::B {
        // SAFETY: the blocks are readable.
        unsafe { s.nibbles(first.add(2), second.add(2)) }
    }
}

impl Format for Q4_0 {
    const BLOCK: usize = 32;
    const BYTES: usize = 18;
    const GROUP: usize = 32;
    const HAS_MIN: bool = false;
    const WIDE: bool = false;
    const OFFSET: i16 = 8;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, blocks: *const u8, n_blocks: usize, out: &mut Chunk) {
        // SAFETY: the blocks are readable.
        unsafe {
            scales(s, blocks, Self::BYTES, n_blocks, &mut out.d);
            levels::<S, Self>(s, blocks, n_blocks, out);
        }
    }
}

impl Levels for Q4_1 {
    #[inline(always)]
    unsafe fn levels<S: Simd>(s: S, first: *const u8, second: *const u8) -> S::B {
        // SAFETY: the blocks are readable.
        unsafe { s.nibbles(first.add(4), second.add(4)) }
    }
}

impl Format for Q4_1 {
    const BLOCK: usize = 32;
    const BYTES: usize = 20;
    const GROUP: usize = 32;
    const HAS_MIN: bool = true;
    const WIDE: bool = false;
    const OFFSET: i16 = 0;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, blocks: *const u8, n_blocks: usize, out: &mut Chunk) {
        // SAFETY: the blocks are readable.
        unsafe {
            scales(s, blocks, Self::BYTES, n_blocks, &mut out.d);
            scales(s, blocks.add(2), Self::BYTES, n_blocks, &mut out.m);
            levels::<S, Self>(s, blocks, n_blocks, out);
        }
    }
}

impl Levels for Q5_0 {
    #[inline(always)]
    unsafe fn levels<S: Simd>(s: S, first: *const u8, second: *const u8) -> S::B {
        // SAFETY: the blocks are readable.
        unsafe { s.or_b(s.nibbles(first.add(6), second.add(6)), fifth_bits(s, first.add(2), second.add(2))) }
    }
}

impl Format for Q5_0 {
    const BLOCK: usize = 32;
    const BYTES: usize = 22;
    const GROUP: usize = 32;
    const HAS_MIN: bool = false;
    const WIDE: bool = false;
    const OFFSET: i16 = 16;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, blocks: *const u8, n_blocks: usize, out: &mut Chunk) {
        // SAFETY: the blocks are readable.
        unsafe {
            scales(s, blocks, Self::BYTES, n_blocks, &mut out.d);
            levels::<S, Self>(s, blocks, n_blocks, out);
        }
    }
}

impl Levels for Q5_1 {
    #[inline(always)]
    unsafe fn levels<S: Simd>(s: S, first: *const u8, second: *const u8) -> S::B {
        // SAFETY: the blocks are readable.
        unsafe { s.or_b(s.nibbles(first.add(8), second.add(8)), fifth_bits(s, first.add(4), second.add(4))) }
    }
}

impl Format for Q5_1 {
    const BLOCK: usize = 32;
    const BYTES: usize = 24;
    const GROUP: usize = 32;
    const HAS_MIN: bool = true;
    const WIDE: bool = false;
    const OFFSET: i16 = 0;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, blocks: *const u8, n_blocks: usize, out: &mut Chunk) {
        // SAFETY: the blocks are readable.
        unsafe {
            scales(s, blocks, Self::BYTES, n_blocks, &mut out.d);
            scales(s, blocks.add(2), Self::BYTES, n_blocks, &mut out.m);
            levels::<S, Self>(s, blocks, n_blocks, out);
        }
    }
}
