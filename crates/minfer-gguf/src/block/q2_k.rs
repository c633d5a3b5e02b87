//! Q2_K: 256 values of 2 bits in 16 groups of 16.
//!
//! `scales: [u8; 16], qs: [u8; 64], d: f16, dmin: f16`. Group `g` has the scale in
//! the low and the minimum in the high half of `scales[g]`;
//! value = `(d * scale) * q - (dmin * min)`.
//! Each 32 bytes of `qs` hold 128 values: bits `2k..2k+2` of byte `i` are value
//! `32 * k + i`.

use super::per32::part;
use super::{SUPER, f16, inverse, level, min_max, to_f16};

/// One block.
#[derive(Clone, Copy, Debug)]
pub struct Q2K<'a>(pub &'a [u8; 84]);

impl Q2K<'_> {
    /// The scale of the scales.
    pub fn d(&self) -> f32 {
        f16(self.0[80], self.0[81])
    }

    /// The scale of the minimums.
    pub fn dmin(&self) -> f32 {
        f16(self.0[82], self.0[83])
    }

    /// Scale and minimum of the group of 16 values, each 0 to 15.
    pub fn scale_min(&self, group: usize) -> (u8, u8) {
        let packed = self.0[group & 15];
        (packed & 15, packed >> 4)
    }

    /// The 2-bit levels, four per byte.
    pub fn qs(&self) -> &[u8; 64] {
        part(self.0, 16)
    }

    /// All 256 values.
    pub fn decode(&self, out: &mut [f32; SUPER]) {
        let (d, dmin, qs) = (self.d(), self.dmin(), self.qs());
        for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let (scale, min) = self.scale_min(group);
            let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
            let (byte, shift) = (group / 8 * 32 + group % 2 * 16, group % 8 / 2 * 2);
            for (i, out) in out.iter_mut().enumerate() {
                *out = scale * f32::from(qs[byte + i] >> shift & 3) - min;
            }
        }
    }

    /// Each group spans from its minimum (or 0) to its maximum.
    pub fn encode(values: &[f32; SUPER]) -> [u8; 84] {
        let groups = values.as_chunks::<16>().0;
        let spans: [(f32, f32); 16] = std::array::from_fn(|g| span(&groups[g], 3.0));
        let (d_bytes, d) = to_f16(spans.iter().fold(0.0f32, |a, s| a.max(s.0)) / 15.0);
        let (m_bytes, dmin) = to_f16(spans.iter().fold(0.0f32, |a, s| a.max(s.1)) / 15.0);
        let mut out = [0; 84];
        for (g, values) in groups.iter().enumerate() {
            let (scale, min) = (level(spans[g].0 * inverse(d), 0, 15), level(spans[g].1 * inverse(dmin), 0, 15));
            out[g] = (scale | min << 4) as u8;
            let (id, min) = (inverse(d * scale as f32), dmin * min as f32);
            let (byte, shift) = (16 + g / 8 * 32 + g % 2 * 16, g % 8 / 2 * 2);
            for (i, v) in values.iter().enumerate() {
                out[byte + i] |= (level((v + min) * id, 0, 3) as u8) << shift;
            }
        }
        out[80..82].copy_from_slice(&d_bytes);
        out[82..].copy_from_slice(&m_bytes);
        out
    }
}

/// The step that divides a group's range into `top` levels, and how far the range
/// reaches below zero.
pub(super) fn span(values: &[f32], top: f32) -> (f32, f32) {
    let (least, most) = min_max(values);
    let below = least.min(0.0);
    (((most - below) / top).max(0.0), -below)
}
