//! Q4_K: `d: f16, dmin: f16, scales: [u8; 12], levels: [u8; 128]` per 256; value `d · sc · q - dmin · min` per group of 32.
//! Byte `i` of the `j`-th 32 levels holds element `64 j + i` below and `64 j + 32 + i` above.

use super::{Chunk, Format, k_scales};
use crate::simd::Simd;

/// 4 bits, 6-bit scale and minimum per 32.
pub(crate) struct Q4K;

impl Format for Q4K {
    const BLOCK: usize = 256;
    const BYTES: usize = 144;
    const GROUP: usize = 32;
    const HAS_MIN: bool = true;
    const WIDE: bool = false;
    const OFFSET: i16 = 0;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, block: *const u8, _n_blocks: usize, out: &mut Chunk) {
        // SAFETY: a block of 144 bytes is readable.
        unsafe {
            k_scales::unpack(s, block, out);
            for j in 0..4 {
                let levels = block.add(16 + 32 * j);
                let nibbles = s.and_b(s.shr_b::<0, 4>(s.load_b2(levels, levels)), s.splat_b(15));
                s.store_b(out.q.as_mut_ptr().add(64 * j), nibbles);
            }
        }
    }
}
