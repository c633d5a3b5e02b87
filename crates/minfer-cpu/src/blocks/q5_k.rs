//! Q5_K: `d: f16, dmin: f16, scales: [u8; 12], high: [u8; 32], levels: [u8; 128]` per 256. As Q4_K, with a fifth bit:
//! that of element `32 g + i` is bit `g` of `high[i]`.

use super::{Chunk, Format, k_scales};
use crate::simd::Simd;
use minfer_graph::DType;

/// 5 bits, 6-bit scale and minimum per 32.
pub(crate) struct Q5K;

impl Format for Q5K {
    const DTYPE: DType = DType::Q5_K;
    const BLOCK: usize = 256;
    const GROUP: usize = 32;
    const HAS_MIN: bool = true;
    const WIDE: bool = false;
    const OFFSET: i16 = 0;

    #[inline(always)]
    unsafe fn unpack<S: Simd>(s: S, block: *const u8, _n_blocks: usize, out: &mut Chunk) {
        // SAFETY: a block of 176 bytes is readable.
        let (high, levels) = unsafe {
            k_scales::unpack(s, block, out);
            (&*block.add(16).cast::<[u8; 32]>(), &*block.add(48).cast::<[[u8; 32]; 4]>())
        };
        let (out, _) = out.q.as_chunks_mut::<64>();
        for j in 0..4 {
            for i in 0..32 {
                out[j][i] = (levels[j][i] & 15) | (high[i] >> (2 * j) & 1) << 4;
                out[j][i + 32] = levels[j][i] >> 4 | (high[i] >> (2 * j + 1) & 1) << 4;
            }
        }
    }
}
