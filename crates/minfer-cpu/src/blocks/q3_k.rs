//! Q3_K: `high: [u8; 32], levels: [u8; 64], scales: [u8; 12], d: f16` per 256; value `d · (sc - 32) · (q - 4)` per group of
//! 16. The low two bits of `q` lie as in Q2_K; the third bit of element `32 g + i` is bit `g` of `high[i]`. With bytes
//! `s`: the low four bits of the 6-bit scale `g` are a nibble of `s[g % 8]` (low for `g < 8`), the upper two are bits
//! `2 (g / 4)` and up of `s[8 + g % 4]`.

use super::{Chunk, Format, u16_at};
use crate::simd::Simd;

/// 3 bits, signed 6-bit scale per 16.
pub(crate) struct Q3K;

impl Format for Q3K {
    const BLOCK: usize = 256;
    const BYTES: usize = 110;
    const GROUP: usize = 16;
    const HAS_MIN: bool = false;
    const WIDE: bool = false;
    const OFFSET: i16 = 4;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, block: *const u8, _n_blocks: usize, out: &mut Chunk) {
        // SAFETY: a block of 110 bytes is readable.
        unsafe {
            let d = s.half(u16_at(block.add(108)));
            let words = block.add(96).cast::<[u32; 3]>().read_unaligned();
            scales(s, words.map(u32::from_le), d, out);
            let (two, third) = (s.splat_b(3), s.splat_b(4));
            let high = s.load_b2(block, block);
            // Bit `g` at the place of the third bit.
            let tops = [s.shl_b::<2, 1>(high), s.shr_b::<0, 1>(high), s.shr_b::<2, 3>(high), s.shr_b::<4, 5>(high)];
            for h in 0..2 {
                let levels = block.add(32 + 32 * h);
                let levels = s.load_b2(levels, levels);
                let (first, second) = (s.and_b(s.shr_b::<0, 2>(levels), two), s.and_b(s.shr_b::<4, 6>(levels), two));
                let (first_top, second_top) = (s.and_b(tops[2 * h], third), s.and_b(tops[2 * h + 1], third));
                s.store_b(out.q.as_mut_ptr().add(128 * h), s.or_b(first, first_top));
                s.store_b(out.q.as_mut_ptr().add(128 * h + 64), s.or_b(second, second_top));
            }
        }
    }
}

/// The 16 scales, four at a time, one per byte.
#[inline(always)]
fn scales<S: Simd>(s: S, words: [u32; 3], d: f32, out: &mut Chunk) {
    const FOUR: u32 = 0x0f0f_0f0f;
    const TWO: u32 = 0x0303_0303;
    let top = |j: u32| (words[2] >> (2 * j) & TWO) << 4;
    let pair = |first: u32, second: u32| u64::from(first) | u64::from(second) << 32;
    let low = pair((words[0] & FOUR) | top(0), (words[1] & FOUR) | top(1));
    let high = pair((words[0] >> 4 & FOUR) | top(2), (words[1] >> 4 & FOUR) | top(3));
    // SAFETY: room for 16.
    unsafe {
        s.scale8(low, 32.0, d, out.d.as_mut_ptr());
        s.scale8(high, 32.0, d, out.d.as_mut_ptr().add(8));
    }
}
