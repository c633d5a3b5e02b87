//! Q4_K: 256 values of 4 bits in 8 groups of 32. Also the packing of eight 6-bit
//! scales and minimums that Q5_K shares.
//!
//! `d: f16, dmin: f16, scales: [u8; 12], qs: [u8; 128]`;
//! value = `(d * scale) * q - (dmin * min)`.
//! Each 32 bytes of `qs` hold two groups: the even one in the low halves, the odd
//! one in the high halves.

use super::per32::part;
use super::q2_k::span;
use super::{SUPER, f16, inverse, level, to_f16};

/// One block.
#[derive(Clone, Copy, Debug)]
pub struct Q4K<'a>(pub &'a [u8; 144]);

impl Q4K<'_> {
    /// The scale of the scales.
    pub fn d(&self) -> f32 {
        f16(self.0[0], self.0[1])
    }

    /// The scale of the minimums.
    pub fn dmin(&self) -> f32 {
        f16(self.0[2], self.0[3])
    }

    /// The packed scales and minimums.
    pub fn scales(&self) -> &[u8; 12] {
        part(self.0, 4)
    }

    /// Scale and minimum of the group of 32 values, each 0 to 63.
    pub fn scale_min(&self, group: usize) -> (u8, u8) {
        scale_min(self.scales(), group)
    }

    /// The 4-bit levels, two per byte.
    pub fn qs(&self) -> &[u8; 128] {
        part(self.0, 16)
    }

    /// All 256 values.
    pub fn decode(&self, out: &mut [f32; SUPER]) {
        let (d, dmin, qs) = (self.d(), self.dmin(), self.qs());
        for (group, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (scale, min) = self.scale_min(group);
            let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
            let (byte, shift) = (group / 2 * 32, group % 2 * 4);
            for (i, out) in out.iter_mut().enumerate() {
                *out = scale * f32::from(qs[byte + i] >> shift & 15) - min;
            }
        }
    }

    /// Each group spans from its minimum (or 0) to its maximum.
    pub fn encode(values: &[f32; SUPER]) -> [u8; 144] {
        let (head, groups) = encode_groups(values, 15);
        let mut out = [0; 144];
        out[..16].copy_from_slice(&head);
        for (g, q) in groups.iter().enumerate() {
            for (i, q) in q.iter().enumerate() {
                out[16 + g / 2 * 32 + i] |= q << (g % 2 * 4);
            }
        }
        out
    }
}

/// Scale and minimum of group 0 to 7 out of the twelve packed bytes. Groups 0 to 3
/// lie in the lower six bits of bytes 0 to 3 (scale) and 4 to 7 (minimum); groups 4
/// to 7 have their lower four bits in bytes 8 to 11 (scale low, minimum high) and
/// their upper two in the upper two bits of bytes 0 to 7.
pub fn scale_min(scales: &[u8; 12], group: usize) -> (u8, u8) {
    let j = group & 3;
    if group & 4 == 0 {
        (scales[j] & 63, scales[j + 4] & 63)
    } else {
        ((scales[j + 8] & 15) | (scales[j] >> 6) << 4, scales[j + 8] >> 4 | (scales[j + 4] >> 6) << 4)
    }
}

/// The inverse of `scale_min`.
fn pack(scales: &[u8; 8], mins: &[u8; 8]) -> [u8; 12] {
    let mut out = [0; 12];
    for j in 0..4 {
        out[j] = scales[j] | (scales[j + 4] >> 4) << 6;
        out[j + 4] = mins[j] | (mins[j + 4] >> 4) << 6;
        out[j + 8] = (scales[j + 4] & 15) | mins[j + 4] << 4;
    }
    out
}

/// The 16 bytes that Q4_K and Q5_K begin with, and the levels `0..=top` per group.
pub(super) fn encode_groups(values: &[f32; SUPER], top: i32) -> ([u8; 16], [[u8; 32]; 8]) {
    let groups = values.as_chunks::<32>().0;
    let spans: [(f32, f32); 8] = std::array::from_fn(|g| span(&groups[g], top as f32));
    let (d_bytes, d) = to_f16(spans.iter().fold(0.0f32, |a, s| a.max(s.0)) / 63.0);
    let (m_bytes, dmin) = to_f16(spans.iter().fold(0.0f32, |a, s| a.max(s.1)) / 63.0);
    let scales = spans.map(|s| level(s.0 * inverse(d), 0, 63) as u8);
    let mins = spans.map(|s| level(s.1 * inverse(dmin), 0, 63) as u8);
    let levels = std::array::from_fn(|g| {
        let (id, min) = (inverse(d * f32::from(scales[g])), dmin * f32::from(mins[g]));
        groups[g].map(|v| level((v + min) * id, 0, top) as u8)
    });
    let mut head = [0; 16];
    head[..2].copy_from_slice(&d_bytes);
    head[2..4].copy_from_slice(&m_bytes);
    head[4..].copy_from_slice(&pack(&scales, &mins));
    (head, levels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_inverted() {
        let scales = [0, 63, 21, 42, 16, 15, 48, 63];
        let mins = [63, 1, 2, 33, 63, 0, 31, 17];
        let packed = pack(&scales, &mins);
        for group in 0..8 {
            assert_eq!(scale_min(&packed, group), (scales[group], mins[group]));
        }
    }
}
