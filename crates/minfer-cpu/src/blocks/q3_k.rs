//! Q3_K: `high: [u8; 32], levels: [u8; 64], scales: [u8; 12], d: f16` per 256; value `d · (sc - 32) · (q - 4)` per group of
//! 16. The low two bits of `q` lie as in Q2_K; the third bit of element `32 g + i` is bit `g` of `high[i]`. With bytes
//! `s`: the low four bits of the 6-bit scale `g` are a nibble of `s[g % 8]` (low for `g < 8`), the upper two are bits
//! `2 (g / 4)` and up of `s[8 + g % 4]`.

use super::{Chunk, Format, u16_at};
use crate::simd::Simd;
use minfer_graph::DType;

/// 3 bits, signed 6-bit scale per 16.
pub(crate) struct Q3K;

impl Format for Q3K {
    const DTYPE: DType = DType::Q3_K;
    const BLOCK: usize = 256;
    const GROUP: usize = 16;
    const HAS_MIN: bool = false;
    const WIDE: bool = false;
    const OFFSET: i16 = 4;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, block: *const u8, _n_blocks: usize, out: &mut Chunk) {
        // SAFETY: a block of 110 bytes is readable.
        let (high, levels, words, d) = unsafe {
            (
                &*block.cast::<[u8; 32]>(),
                &*block.add(32).cast::<[[u8; 32]; 2]>(),
                block.add(96).cast::<[u32; 3]>().read_unaligned().map(u32::from_le),
                s.half(u16_at(block.add(108))),
            )
        };
        // Four scales at a time, one per byte.
        const FOUR: u32 = 0x0f0f_0f0f;
        const TWO: u32 = 0x0303_0303;
        let top = |j: u32| (words[2] >> (2 * j) & TWO) << 4;
        let scales = [
            (words[0] & FOUR) | top(0),
            (words[1] & FOUR) | top(1),
            (words[0] >> 4 & FOUR) | top(2),
            (words[1] >> 4 & FOUR) | top(3),
        ];
        for g in 0..16 {
            let scale = scales[g / 4].to_le_bytes()[g % 4];
            out.d[g] = d * (i32::from(scale) - 32) as f32;
        }
        let (out, _) = out.q.as_chunks_mut::<32>();
        for h in 0..2 {
            for j in 0..4 {
                for i in 0..32 {
                    let third = high[i] >> (4 * h + j) & 1;
                    out[4 * h + j][i] = (levels[h][i] >> (2 * j) & 3) | third << 2;
                }
            }
        }
    }
}
