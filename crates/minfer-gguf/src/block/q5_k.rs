//! Q5_K: 256 values of 5 bits in 8 groups of 32.
//!
//! `d: f16, dmin: f16, scales: [u8; 12], qh: [u8; 32], qs: [u8; 128]`; as Q4_K, and
//! bit `g` of `qh[i]` is the fifth bit of value `i` of group `g`.

use super::per32::part;
use super::q4_k::{encode_groups, scale_min};
use super::{SUPER, f16};

/// One block.
#[derive(Clone, Copy, Debug)]
pub struct Q5K<'a>(pub &'a [u8; 176]);

impl Q5K<'_> {
    /// The scale of the scales.
    pub fn d(&self) -> f32 {
        f16(self.0[0], self.0[1])
    }

    /// The scale of the minimums.
    pub fn dmin(&self) -> f32 {
        f16(self.0[2], self.0[3])
    }

    /// The packed scales and minimums, as in Q4_K.
    pub fn scales(&self) -> &[u8; 12] {
        part(self.0, 4)
    }

    /// Scale and minimum of the group of 32 values, each 0 to 63.
    pub fn scale_min(&self, group: usize) -> (u8, u8) {
        scale_min(self.scales(), group)
    }

    /// The fifth bits: bit `g` of byte `i` is of value `i` of group `g`.
    pub fn qh(&self) -> &[u8; 32] {
        part(self.0, 16)
    }

    /// The lower four bits, two values per byte.
    pub fn qs(&self) -> &[u8; 128] {
        part(self.0, 48)
    }

    /// All 256 values.
    pub fn decode(&self, out: &mut [f32; SUPER]) {
        let (d, dmin, qh, qs) = (self.d(), self.dmin(), self.qh(), self.qs());
        for (group, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (scale, min) = self.scale_min(group);
            let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
            let (byte, shift) = (group / 2 * 32, group % 2 * 4);
            for (i, out) in out.iter_mut().enumerate() {
                let q = (qs[byte + i] >> shift & 15) | (qh[i] >> group & 1) << 4;
                *out = scale * f32::from(q) - min;
            }
        }
    }

    /// Each group spans from its minimum (or 0) to its maximum.
    pub fn encode(values: &[f32; SUPER]) -> [u8; 176] {
        let (head, groups) = encode_groups(values, 31);
        let mut out = [0; 176];
        out[..16].copy_from_slice(&head);
        for (g, q) in groups.iter().enumerate() {
            for (i, q) in q.iter().enumerate() {
                out[16 + i] |= (q >> 4) << g;
                out[48 + g / 2 * 32 + i] |= (q & 15) << (g % 2 * 4);
            }
        }
        out
    }
}
