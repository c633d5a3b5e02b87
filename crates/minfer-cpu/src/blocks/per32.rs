//! The formats in blocks of 32: `d: f16 [, m: f16] [, high bits: u32], levels`.
//!
//! Nibbles: byte `i` of 16 holds element `i` below and element `i + 16` above. The fifth bit of element `i` is bit `i`.

use super::{CHUNK, Chunk, Format, u16_at};
use crate::simd::Simd;
use minfer_graph::DType;

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
pub(super) unsafe fn scales<S: Simd>(s: S, at: *const u8, stride: usize, n_blocks: usize, out: &mut [f32; 8]) {
    let mut halves = [0u16; 8];
    for (i, half) in halves.iter_mut().enumerate() {
        if i < n_blocks {
            // SAFETY: block `i` is there.
            *half = unsafe { u16_at(at.add(i * stride)) };
        }
    }
    // SAFETY: eight in, eight out.
    unsafe { s.halves8(halves.as_ptr(), out.as_mut_ptr()) }
}

/// The first eight entries.
#[inline(always)]
pub(super) fn first8<const N: usize>(a: &mut [f32; N]) -> &mut [f32; 8] {
    a.first_chunk_mut().expect("at least eight")
}

/// Splits 16 bytes of nibbles into 32 bytes.
///
/// # Safety
/// 16 bytes readable, 32 writable.
#[inline(always)]
unsafe fn nibbles(from: *const u8, to: *mut u8) {
    // SAFETY: as promised by the caller.
    let bytes = unsafe { from.cast::<[u8; 16]>().read_unaligned() };
    let mut out = [0u8; 32];
    for i in 0..16 {
        out[i] = bytes[i] & 15;
        out[i + 16] = bytes[i] >> 4;
    }
    // SAFETY: as promised by the caller.
    unsafe { to.cast::<[u8; 32]>().write_unaligned(out) }
}

/// The same with a fifth bit each.
///
/// # Safety
/// Four bytes readable from `high`, 16 from `from`; 32 writable.
#[inline(always)]
unsafe fn nibbles_and_bit<S: Simd>(s: S, high: *const u8, from: *const u8, to: *mut u8) {
    let mut bits = [0u8; 32];
    // SAFETY: as promised by the caller; `bits` has 32 bytes.
    unsafe {
        s.bits32(u32::from_le(high.cast::<u32>().read_unaligned()), bits.as_mut_ptr());
        nibbles(from, to);
        let out = &mut *to.cast::<[u8; 32]>();
        for i in 0..32 {
            out[i] |= bits[i];
        }
    }
}

impl Format for Q8_0 {
    const DTYPE: DType = DType::Q8_0;
    const BLOCK: usize = 32;
    const GROUP: usize = 32;
    const HAS_MIN: bool = false;
    const WIDE: bool = true;
    const OFFSET: i16 = 0;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, blocks: *const u8, n_blocks: usize, out: &mut Chunk) {
        // SAFETY: `n_blocks` blocks of 34 bytes are readable.
        unsafe {
            scales(s, blocks, 34, n_blocks, first8(&mut out.d));
            for block in 0..n_blocks.min(CHUNK / 32) {
                let levels = blocks.add(block * 34 + 2).cast::<[u8; 32]>().read_unaligned();
                let out: &mut [u8; 32] = &mut *out.q.as_mut_ptr().add(block * 32).cast();
                for i in 0..32 {
                    out[i] = levels[i] ^ S::WIDE_BIAS;
                }
            }
        }
    }
}

impl Format for Q4_0 {
    const DTYPE: DType = DType::Q4_0;
    const BLOCK: usize = 32;
    const GROUP: usize = 32;
    const HAS_MIN: bool = false;
    const WIDE: bool = false;
    const OFFSET: i16 = 8;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, blocks: *const u8, n_blocks: usize, out: &mut Chunk) {
        // SAFETY: `n_blocks` blocks of 18 bytes are readable; at most eight fit the chunk.
        unsafe {
            scales(s, blocks, 18, n_blocks, first8(&mut out.d));
            for block in 0..n_blocks.min(CHUNK / 32) {
                nibbles(blocks.add(block * 18 + 2), out.q.as_mut_ptr().add(block * 32));
            }
        }
    }
}

impl Format for Q4_1 {
    const DTYPE: DType = DType::Q4_1;
    const BLOCK: usize = 32;
    const GROUP: usize = 32;
    const HAS_MIN: bool = true;
    const WIDE: bool = false;
    const OFFSET: i16 = 0;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, blocks: *const u8, n_blocks: usize, out: &mut Chunk) {
        // SAFETY: `n_blocks` blocks of 20 bytes are readable; at most eight fit the chunk.
        unsafe {
            scales(s, blocks, 20, n_blocks, first8(&mut out.d));
            scales(s, blocks.add(2), 20, n_blocks, first8(&mut out.m));
            for block in 0..n_blocks.min(CHUNK / 32) {
                nibbles(blocks.add(block * 20 + 4), out.q.as_mut_ptr().add(block * 32));
            }
        }
    }
}

impl Format for Q5_0 {
    const DTYPE: DType = DType::Q5_0;
    const BLOCK: usize = 32;
    const GROUP: usize = 32;
    const HAS_MIN: bool = false;
    const WIDE: bool = false;
    const OFFSET: i16 = 16;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, blocks: *const u8, n_blocks: usize, out: &mut Chunk) {
        // SAFETY: `n_blocks` blocks of 22 bytes are readable; at most eight fit the chunk.
        unsafe {
            scales(s, blocks, 22, n_blocks, first8(&mut out.d));
            for block in 0..n_blocks.min(CHUNK / 32) {
                let at = blocks.add(block * 22);
                nibbles_and_bit(s, at.add(2), at.add(6), out.q.as_mut_ptr().add(block * 32));
            }
        }
    }
}

impl Format for Q5_1 {
    const DTYPE: DType = DType::Q5_1;
    const BLOCK: usize = 32;
    const GROUP: usize = 32;
    const HAS_MIN: bool = true;
    const WIDE: bool = false;
    const OFFSET: i16 = 0;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, blocks: *const u8, n_blocks: usize, out: &mut Chunk) {
        // SAFETY: `n_blocks` blocks of 24 bytes are readable; at most eight fit the chunk.
        unsafe {
            scales(s, blocks, 24, n_blocks, first8(&mut out.d));
            scales(s, blocks.add(2), 24, n_blocks, first8(&mut out.m));
            for block in 0..n_blocks.min(CHUNK / 32) {
                let at = blocks.add(block * 24);
                nibbles_and_bit(s, at.add(4), at.add(8), out.q.as_mut_ptr().add(block * 32));
            }
        }
    }
}
