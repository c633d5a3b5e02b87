//! Q2_K: `scales: [u8; 16], levels: [u8; 64], d: f16, dmin: f16` per 256; value `d · (s & 15) · q - dmin · (s >> 4)` per
//! group of 16. In each half of 128 elements, bits `2 j, 2 j + 1` of byte `i` of 32 are element `32 j + i`.

use super::{Chunk, Format, u16_at};
use crate::simd::Simd;
use minfer_graph::DType;

/// 2 bits, 4-bit scale and minimum per 16.
pub(crate) struct Q2K;

impl Format for Q2K {
    const DTYPE: DType = DType::Q2_K;
    const BLOCK: usize = 256;
    const GROUP: usize = 16;
    const HAS_MIN: bool = true;
    const WIDE: bool = false;
    const OFFSET: i16 = 0;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, block: *const u8, _n_blocks: usize, out: &mut Chunk) {
        // SAFETY: a block of 84 bytes is readable.
        let (scales, levels, d, dmin) = unsafe {
            (
                &*block.cast::<[u8; 16]>(),
                &*block.add(16).cast::<[[u8; 32]; 2]>(),
                s.half(u16_at(block.add(80))),
                s.half(u16_at(block.add(82))),
            )
        };
        for g in 0..16 {
            out.d[g] = d * f32::from(scales[g] & 15);
            out.m[g] = -(dmin * f32::from(scales[g] >> 4));
        }
        let (out, _) = out.q.as_chunks_mut::<32>();
        for h in 0..2 {
            for j in 0..4 {
                for i in 0..32 {
                    out[4 * h + j][i] = levels[h][i] >> (2 * j) & 3;
                }
            }
        }
    }
}
