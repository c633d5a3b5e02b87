//! Q6_K: `low: [u8; 128], high: [u8; 64], scales: [i8; 16], d: f16` per 256; value `d · sc · (q - 32)` per group of 16.
//! In each half of 128 elements, byte `i` of 64 low bytes holds the low nibbles of elements `i` and `64 + i`; bits
//! `2 j, 2 j + 1` of byte `i` of 32 high bytes are the top of element `32 j + i`.

use super::{Chunk, Format, u16_at};
use crate::simd::Simd;

/// 6 bits, signed 8-bit scale per 16.
pub(crate) struct Q6K;

impl Format for Q6K {
    const BLOCK: usize = 256;
    const BYTES: usize = 210;
    const GROUP: usize = 16;
    const HAS_MIN: bool = false;
    const WIDE: bool = false;
    const OFFSET: i16 = 32;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, block: *const u8, _n_blocks: usize, out: &mut Chunk) {
        // SAFETY: a block of 210 bytes is readable.
        unsafe {
            let d = s.half(u16_at(block.add(208)));
            for j in 0..2 {
                let scales = u64::from_le(block.add(192 + 8 * j).cast::<u64>().read_unaligned());
                // Signed bytes as unsigned ones that are 128 too great.
                s.scale8(scales ^ 0x8080_8080_8080_8080, 128.0, d, out.d.as_mut_ptr().add(8 * j));
            }
            let (four, two) = (s.splat_b(15), s.splat_b(0x30));
            for h in 0..2 {
                let low = s.load_b(block.add(64 * h));
                let top = block.add(128 + 32 * h);
                let top = s.load_b2(top, top);
                let first = s.or_b(s.and_b(low, four), s.and_b(s.shl_b::<4, 2>(top), two));
                let second = s.or_b(s.and_b(s.shr_b::<4, 4>(low), four), s.and_b(s.shr_b::<0, 2>(top), two));
                s.store_b(out.q.as_mut_ptr().add(128 * h), first);
                s.store_b(out.q.as_mut_ptr().add(128 * h + 64), second);
            }
        }
    }
}
