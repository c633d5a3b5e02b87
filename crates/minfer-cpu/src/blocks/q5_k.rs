//! Q5_K: `d: f16, dmin: f16, scales: [u8; 12], high: [u8; 32], levels: [u8; 128]` per 256. As Q4_K, with a fifth bit:
//! that of element `32 g + i` is bit `g` of `high[i]`.

use super::{Chunk, Format, k_scales};
use crate::simd::Simd;

/// 5 bits, 6-bit scale and minimum per 32.
pub(crate) struct Q5K;

impl Format for Q5K {
    const BLOCK: usize = 256;
    const BYTES: usize = 176;
    const GROUP: usize = 32;
    const HAS_MIN: bool = true;
    const WIDE: bool = false;
    const OFFSET: i16 = 0;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, block: *const u8, _n_blocks: usize, out: &mut Chunk) {
        // SAFETY: a block of 176 bytes is readable.
        unsafe {
            k_scales::unpack(s, block, out);
            let high = s.load_b2(block.add(16), block.add(16));
            // Bit `g` at the place of the fifth bit.
            let tops = [s.shl_b::<4, 3>(high), s.shl_b::<2, 1>(high), s.shr_b::<0, 1>(high), s.shr_b::<2, 3>(high)];
            for (j, top) in tops.into_iter().enumerate() {
                let levels = block.add(48 + 32 * j);
                let nibbles = s.and_b(s.shr_b::<0, 4>(s.load_b2(levels, levels)), s.splat_b(15));
                s.store_b(out.q.as_mut_ptr().add(64 * j), s.or_b(nibbles, s.and_b(top, s.splat_b(16))));
            }
        }
    }
}
