//! Q2_K: `scales: [u8; 16], levels: [u8; 64], d: f16, dmin: f16` per 256; value `d · (s & 15) · q - dmin · (s >> 4)` per
//! group of 16. In each half of 128 elements, bits `2 j, 2 j + 1` of byte `i` of 32 are element `32 j + i`.

use super::{Chunk, Format, u16_at};
use crate::simd::Simd;

/// 2 bits, 4-bit scale and minimum per 16.
pub(crate) struct Q2K;

impl Format for Q2K {
    const BLOCK: usize = 256;
    const BYTES: usize = 84;
    const GROUP: usize = 16;
    const HAS_MIN: bool = true;
    const WIDE: bool = false;
    const OFFSET: i16 = 0;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, block: *const u8, _n_blocks: usize, out: &mut Chunk) {
        // SAFETY: a block of 84 bytes is readable.
        unsafe {
            let (d, dmin) = (s.half(u16_at(block.add(80))), s.half(u16_at(block.add(82))));
            for j in 0..2 {
                let scales = u64::from_le(block.add(8 * j).cast::<u64>().read_unaligned());
                const FOUR: u64 = 0x0f0f_0f0f_0f0f_0f0f;
                s.scale8(scales & FOUR, 0.0, d, out.d.as_mut_ptr().add(8 * j));
                s.scale8(scales >> 4 & FOUR, 0.0, -dmin, out.m.as_mut_ptr().add(8 * j));
            }
            let two = s.splat_b(3);
            for h in 0..2 {
                let levels = block.add(16 + 32 * h);
                let levels = s.load_b2(levels, levels);
                s.store_b(out.q.as_mut_ptr().add(128 * h), s.and_b(s.shr_b::<0, 2>(levels), two));
                s.store_b(out.q.as_mut_ptr().add(128 * h + 64), s.and_b(s.shr_b::<4, 6>(levels), two));
            }
        }
    }
}
