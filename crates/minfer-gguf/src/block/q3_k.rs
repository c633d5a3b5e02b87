//! Q3_K: 256 values of 3 bits in 16 groups of 16, no minimum.
//!
//! `hmask: [u8; 32], qs: [u8; 64], scales: [u8; 12], d: f16`;
//! value = `(d * (scale - 32)) * (q - 4)`.
//! The two low bits lie as in Q2_K; bit `k` of `hmask[i]` is the high bit of value
//! `32 * k + i`. The 6-bit scale of group `g` has its low half in byte `g % 8` of
//! `scales` (low nibble for groups 0 to 7, high for 8 to 15) and its upper two bits
//! in byte `8 + g % 4` at bit `2 * (g / 4)`.

use super::per32::part;
use super::{SUPER, extreme, f16, inverse, level, to_f16};

/// One block.
#[derive(Clone, Copy, Debug)]
pub struct Q3K<'a>(pub &'a [u8; 110]);

impl Q3K<'_> {
    /// The scale of the scales.
    pub fn d(&self) -> f32 {
        f16(self.0[108], self.0[109])
    }

    /// The signed scale of the group of 16 values, -32 to 31.
    pub fn scale(&self, group: usize) -> i8 {
        let group = group & 15;
        let scales: &[u8; 12] = part(self.0, 96);
        let low = scales[group % 8] >> (group / 8 * 4) & 15;
        let high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
        (low | high << 4) as i8 - 32
    }

    /// The high bits.
    pub fn hmask(&self) -> &[u8; 32] {
        part(self.0, 0)
    }

    /// The two low bits, four values per byte.
    pub fn qs(&self) -> &[u8; 64] {
        part(self.0, 32)
    }

    /// All 256 values.
    pub fn decode(&self, out: &mut [f32; SUPER]) {
        let (d, hmask, qs) = (self.d(), self.hmask(), self.qs());
        for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let scale = d * f32::from(self.scale(group));
            let (byte, shift) = (group / 8 * 32 + group % 2 * 16, group % 8 / 2 * 2);
            for (i, out) in out.iter_mut().enumerate() {
                let high = hmask[group % 2 * 16 + i] >> (group / 2) & 1;
                let q = (qs[byte + i] >> shift & 3) | high << 2;
                *out = scale * (i32::from(q) - 4) as f32;
            }
        }
    }

    /// In each group the value of largest magnitude becomes level -4.
    pub fn encode(values: &[f32; SUPER]) -> [u8; 110] {
        let groups = values.as_chunks::<16>().0;
        let steps: [f32; 16] = std::array::from_fn(|g| extreme(&groups[g]) / -4.0);
        let (d_bytes, d) = to_f16(extreme(&steps) / -32.0);
        let mut out = [0; 110];
        for (g, values) in groups.iter().enumerate() {
            let scale = level(steps[g] * inverse(d), -32, 31);
            let stored = (scale + 32) as u8;
            out[96 + g % 8] |= (stored & 15) << (g / 8 * 4);
            out[104 + g % 4] |= (stored >> 4) << (g / 4 * 2);
            let id = inverse(d * scale as f32);
            let (byte, shift) = (32 + g / 8 * 32 + g % 2 * 16, g % 8 / 2 * 2);
            for (i, v) in values.iter().enumerate() {
                let q = (level(v * id, -4, 3) + 4) as u8;
                out[byte + i] |= (q & 3) << shift;
                out[g % 2 * 16 + i] |= (q >> 2) << (g / 2);
            }
        }
        out[108..].copy_from_slice(&d_bytes);
        out
    }
}
