//! The formats whose nibbles index a fixed curve of levels.
//!
//! IQ4_NL: `d: f16, levels: [u8; 16]` per 32. IQ4_XS, per 256: `d: f16, scales_h: u16, scales_l: [u8; 4], levels:
//! [u8; 128]`; the scale of group `g` is `d · (s - 32)`, where `s` has nibble `g` of `scales_l` below and bits
//! `2 g, 2 g + 1` of `scales_h` above. Nibbles lie as in [`super::per32`].

use super::per32::{first8, scales};
use super::{CHUNK, Chunk, Format, u16_at};
use crate::simd::Simd;
use minfer_gguf::block::IQ4_CURVE;
use minfer_graph::DType;

/// The curve with one scale per 32.
pub(crate) struct Iq4Nl;
/// The curve with a 6-bit scale per 32 in blocks of 256.
pub(crate) struct Iq4Xs;

#[inline(always)]
fn curve<S: Simd>() -> [u8; 16] {
    let mut levels = [0; 16];
    for (level, value) in levels.iter_mut().zip(IQ4_CURVE) {
        *level = value as u8 ^ S::WIDE_BIAS;
    }
    levels
}

impl Format for Iq4Nl {
    const DTYPE: DType = DType::IQ4_NL;
    const BLOCK: usize = 32;
    const GROUP: usize = 32;
    const HAS_MIN: bool = false;
    const WIDE: bool = true;
    const OFFSET: i16 = 0;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, blocks: *const u8, n_blocks: usize, out: &mut Chunk) {
        let curve = curve::<S>();
        // SAFETY: `n_blocks` blocks of 18 bytes are readable; at most eight fit the chunk.
        unsafe {
            scales(s, blocks, 18, n_blocks, first8(&mut out.d));
            for block in 0..n_blocks.min(CHUNK / 32) {
                let to = out.q.as_mut_ptr().add(block * 32);
                s.lookup32(blocks.add(block * 18 + 2), curve.as_ptr(), to);
            }
        }
    }
}

impl Format for Iq4Xs {
    const DTYPE: DType = DType::IQ4_XS;
    const BLOCK: usize = 256;
    const GROUP: usize = 32;
    const HAS_MIN: bool = false;
    const WIDE: bool = true;
    const OFFSET: i16 = 0;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, block: *const u8, _n_blocks: usize, out: &mut Chunk) {
        let curve = curve::<S>();
        // SAFETY: a block of 136 bytes is readable.
        unsafe {
            let d = s.half(u16_at(block));
            let high = u32::from(u16_at(block.add(2)));
            let low = u32::from_le(block.add(4).cast::<u32>().read_unaligned());
            for g in 0..8 {
                let scale = (low >> (4 * g) & 15) | (high >> (2 * g) & 3) << 4;
                out.d[g] = d * (scale as i32 - 32) as f32;
                s.lookup32(block.add(8 + 16 * g), curve.as_ptr(), out.q.as_mut_ptr().add(32 * g));
            }
        }
    }
}
