//! The formats whose nibbles index a fixed curve of levels.
//!
//! IQ4_NL: `d: f16, levels: [u8; 16]` per 32. IQ4_XS, per 256: `d: f16, scales_h: u16, scales_l: [u8; 4], levels:
//! [u8; 128]`; the scale of group `g` is `d · (s - 32)`, where `s` has nibble `g` of `scales_l` below and bits
//! `2 g, 2 g + 1` of `scales_h` above. Nibbles lie as in [`super::per32`].

use super::per32::{Levels, levels, scales};
use super::{Chunk, Format, u16_at};
use crate::simd::Simd;
use minfer_gguf::block::IQ4_CURVE;

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

impl Levels for Iq4Nl {
    #[inline(always)]
    unsafe fn levels<S: Simd>(s: S, first: *const u8, second: *const u8) -> S::B {
        // SAFETY: the blocks are readable.
        unsafe { s.lookup(s.nibbles(first.add(2), second.add(2)), &curve::<S>()) }
    }
}

impl Format for Iq4Nl {
    const BLOCK: usize = 32;
    const BYTES: usize = 18;
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

impl Format for Iq4Xs {
    const BLOCK: usize = 256;
    const BYTES: usize = 136;
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
            let high = u64::from(u16_at(block.add(2)));
            let low = u64::from(u32::from_le(block.add(4).cast::<u32>().read_unaligned()));
            let mut scales = 0;
            for g in 0..8 {
                scales |= ((low >> (4 * g) & 15) | (high >> (2 * g) & 3) << 4) << (8 * g);
            }
            s.scale8(scales, 32.0, d, out.d.as_mut_ptr());
            for j in 0..4 {
                let levels = block.add(8 + 32 * j);
                let nibbles = s.nibbles(levels, levels.add(16));
                s.store_b(out.q.as_mut_ptr().add(64 * j), s.lookup(nibbles, &curve));
            }
        }
    }
}
