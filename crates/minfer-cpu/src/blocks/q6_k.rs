//! Q6_K: `low: [u8; 128], high: [u8; 64], scales: [i8; 16], d: f16` per 256; value `d · sc · (q - 32)` per group of 16.
//! In each half of 128 elements, byte `i` of 64 low bytes holds the low nibbles of elements `i` and `64 + i`; bits
//! `2 j, 2 j + 1` of byte `i` of 32 high bytes are the top of element `32 j + i`.

use super::{Chunk, Format, u16_at};
use crate::simd::Simd;
use minfer_graph::DType;

/// 6 bits, signed 8-bit scale per 16.
pub(crate) struct Q6K;

impl Format for Q6K {
    const DTYPE: DType = DType::Q6_K;
    const BLOCK: usize = 256;
    const GROUP: usize = 16;
    const HAS_MIN: bool = false;
    const WIDE: bool = false;
    const OFFSET: i16 = 32;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, block: *const u8, _n_blocks: usize, out: &mut Chunk) {
        // SAFETY: a block of 210 bytes is readable.
        let (low, high, scales, d) = unsafe {
            (
                &*block.cast::<[[[u8; 32]; 2]; 2]>(),
                &*block.add(128).cast::<[[u8; 32]; 2]>(),
                &*block.add(192).cast::<[i8; 16]>(),
                s.half(u16_at(block.add(208))),
            )
        };
        for g in 0..16 {
            out.d[g] = d * f32::from(scales[g]);
        }
        let (out, _) = out.q.as_chunks_mut::<32>();
        for h in 0..2 {
            for i in 0..32 {
                let top = high[h][i];
                out[4 * h][i] = (low[h][0][i] & 15) | (top & 3) << 4;
                out[4 * h + 1][i] = (low[h][1][i] & 15) | (top >> 2 & 3) << 4;
                out[4 * h + 2][i] = low[h][0][i] >> 4 | (top >> 4 & 3) << 4;
                out[4 * h + 3][i] = low[h][1][i] >> 4 | (top >> 6) << 4;
            }
        }
    }
}
