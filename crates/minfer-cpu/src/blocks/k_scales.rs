//! The 6-bit scales and minima that Q4_K and Q5_K share: eight of each in 12 bytes.
//!
//! With bytes `s`: scale `g < 4` is the low six bits of `s[g]`, minimum `g` those of `s[g + 4]`. For `g >= 4` the low
//! four bits are the nibbles of `s[g + 4]` (scale below, minimum above), the upper two are the top bits of `s[g - 4]` and
//! `s[g]`.

use super::{Chunk, u16_at};
use crate::simd::Simd;

/// Writes `d` and `m` of the eight groups of a block that starts with `d: f16, dmin: f16, s: [u8; 12]`: scale `d · sc`,
/// addend `-dmin · min`.
///
/// # Safety
/// 16 bytes are readable.
#[inline(always)]
pub(super) unsafe fn unpack<S: Simd>(s: S, block: *const u8, out: &mut Chunk) {
    // SAFETY: as promised by the caller.
    let (d, dmin, words) = unsafe {
        let words = block.add(4).cast::<[u32; 3]>().read_unaligned().map(u32::from_le);
        (s.half(u16_at(block)), s.half(u16_at(block.add(2))), words)
    };
    // Four scales at a time, one per byte.
    const SIX: u32 = 0x3f3f_3f3f;
    const FOUR: u32 = 0x0f0f_0f0f;
    const TOP: u32 = 0x3030_3030;
    let scales = [words[0] & SIX, (words[2] & FOUR) | (words[0] >> 2 & TOP)];
    let minima = [words[1] & SIX, (words[2] >> 4 & FOUR) | (words[1] >> 2 & TOP)];
    let bytes = |w: [u32; 2]| u64::from(w[0]) | u64::from(w[1]) << 32;
    // SAFETY: room for eight each.
    unsafe {
        s.scale8(bytes(scales), 0.0, d, out.d.as_mut_ptr());
        s.scale8(bytes(minima), 0.0, -dmin, out.m.as_mut_ptr());
    }
}
