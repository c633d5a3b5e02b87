//! IQ4_NL and IQ4_XS: 4-bit indices into a fixed, uneven curve of levels.
//!
//! IQ4_NL: `d: f16, qs: [u8; 16]` per 32 values, nibbles as in Q4_0;
//! value = `d * curve[q]`.
//! IQ4_XS: `d: f16, scales_h: u16, scales_l: [u8; 4], qs: [u8; 128]` per 256 values
//! in 8 groups of 32; value = `(d * (scale - 32)) * curve[q]`. Group `g` has the low
//! four bits of its scale in nibble `g` of `scales_l`, the upper two in bits
//! `2g..2g+2` of `scales_h`, and its levels in bytes `16g..16g+16`, nibbles as in
//! Q4_0.

use super::per32::part;
use super::{SUPER, extreme, f16, inverse, level, to_f16};

/// The levels. They are part of the file format.
pub const IQ4_CURVE: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// One IQ4_NL block of 32 values.
#[derive(Clone, Copy, Debug)]
pub struct Iq4Nl<'a>(pub &'a [u8; 18]);

impl Iq4Nl<'_> {
    /// The scale.
    pub fn d(&self) -> f32 {
        f16(self.0[0], self.0[1])
    }

    /// The indices, two per byte.
    pub fn qs(&self) -> &[u8; 16] {
        part(self.0, 2)
    }

    /// All 32 values.
    pub fn decode(&self, out: &mut [f32; 32]) {
        decode_group(self.d(), self.qs(), out);
    }

    /// The value of largest magnitude becomes level -127.
    pub fn encode(values: &[f32; 32]) -> [u8; 18] {
        let (d_bytes, d) = to_f16(extreme(values) / -127.0);
        let mut out = [0; 18];
        out[..2].copy_from_slice(&d_bytes);
        out[2..].copy_from_slice(&encode_group(inverse(d), values));
        out
    }
}

/// One IQ4_XS block of 256 values.
#[derive(Clone, Copy, Debug)]
pub struct Iq4Xs<'a>(pub &'a [u8; 136]);

impl Iq4Xs<'_> {
    /// The scale of the scales.
    pub fn d(&self) -> f32 {
        f16(self.0[0], self.0[1])
    }

    /// The signed scale of the group of 32 values, -32 to 31.
    pub fn scale(&self, group: usize) -> i8 {
        let group = group & 7;
        let low = self.0[4 + group / 2] >> (group % 2 * 4) & 15;
        let high = u16::from_le_bytes([self.0[2], self.0[3]]) >> (group * 2) & 3;
        (low | (high as u8) << 4) as i8 - 32
    }

    /// The indices, two per byte; 16 bytes per group.
    pub fn qs(&self) -> &[u8; 128] {
        part(self.0, 8)
    }

    /// All 256 values.
    pub fn decode(&self, out: &mut [f32; SUPER]) {
        let d = self.d();
        let groups = out.as_chunks_mut::<32>().0.iter_mut().zip(self.qs().as_chunks::<16>().0);
        for (group, (out, qs)) in groups.enumerate() {
            decode_group(d * f32::from(self.scale(group)), qs, out);
        }
    }

    /// In each group the value of largest magnitude becomes level -127.
    pub fn encode(values: &[f32; SUPER]) -> [u8; 136] {
        let groups = values.as_chunks::<32>().0;
        let steps: [f32; 8] = std::array::from_fn(|g| extreme(&groups[g]) / -127.0);
        let (d_bytes, d) = to_f16(extreme(&steps) / -32.0);
        let mut out = [0; 136];
        let mut scales_h = 0u16;
        for (g, values) in groups.iter().enumerate() {
            let scale = level(steps[g] * inverse(d), -32, 31);
            let stored = (scale + 32) as u8;
            out[4 + g / 2] |= (stored & 15) << (g % 2 * 4);
            scales_h |= u16::from(stored >> 4) << (g * 2);
            out[8 + g * 16..][..16].copy_from_slice(&encode_group(inverse(d * scale as f32), values));
        }
        out[..2].copy_from_slice(&d_bytes);
        out[2..4].copy_from_slice(&scales_h.to_le_bytes());
        out
    }
}

fn decode_group(d: f32, qs: &[u8; 16], out: &mut [f32; 32]) {
    for i in 0..16 {
        out[i] = d * f32::from(IQ4_CURVE[usize::from(qs[i] & 15)]);
        out[i + 16] = d * f32::from(IQ4_CURVE[usize::from(qs[i] >> 4)]);
    }
}

fn encode_group(id: f32, values: &[f32; 32]) -> [u8; 16] {
    std::array::from_fn(|i| nearest(values[i] * id) | nearest(values[i + 16] * id) << 4)
}

/// The index of the nearest level.
fn nearest(value: f32) -> u8 {
    let below = IQ4_CURVE.partition_point(|level| f32::from(*level) < value).clamp(1, 15);
    let (low, high) = (f32::from(IQ4_CURVE[below - 1]), f32::from(IQ4_CURVE[below]));
    (if value - low <= high - value { below - 1 } else { below }) as u8
}
