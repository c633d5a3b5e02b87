//! Q6_K: 256 values of 6 bits in 16 groups of 16, no minimum.
//!
//! `ql: [u8; 128], qh: [u8; 64], scales: [i8; 16], d: f16`;
//! value = `(d * scale) * (q - 32)`.
//! Each half of 128 values takes 64 bytes of `ql` and 32 of `qh`. Its value
//! `32 * k + i` has its lower four bits in byte `32 * (k % 2) + i` of `ql` (low
//! nibble for k of 0 and 1, high for 2 and 3) and its upper two in byte `i` of `qh`
//! at bit `2 * k`.

use super::per32::part;
use super::{SUPER, extreme, f16, inverse, level, to_f16};

/// One block.
#[derive(Clone, Copy, Debug)]
pub struct Q6K<'a>(pub &'a [u8; 210]);

impl Q6K<'_> {
    /// The scale of the scales.
    pub fn d(&self) -> f32 {
        f16(self.0[208], self.0[209])
    }

    /// The signed scale of the group of 16 values.
    pub fn scale(&self, group: usize) -> i8 {
        self.0[192 + (group & 15)] as i8
    }

    /// The lower four bits, two values per byte.
    pub fn ql(&self) -> &[u8; 128] {
        part(self.0, 0)
    }

    /// The upper two bits, four values per byte.
    pub fn qh(&self) -> &[u8; 64] {
        part(self.0, 128)
    }

    /// All 256 values.
    pub fn decode(&self, out: &mut [f32; SUPER]) {
        let (d, ql, qh) = (self.d(), self.ql(), self.qh());
        for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let scale = d * f32::from(self.scale(group));
            let place = Place::of(group);
            for (i, out) in out.iter_mut().enumerate() {
                let low = ql[place.ql + i] >> place.ql_shift & 15;
                let high = qh[place.qh + i] >> place.qh_shift & 3;
                *out = scale * (i32::from(low | high << 4) - 32) as f32;
            }
        }
    }

    /// In each group the value of largest magnitude becomes level -32.
    pub fn encode(values: &[f32; SUPER]) -> [u8; 210] {
        let groups = values.as_chunks::<16>().0;
        let steps: [f32; 16] = std::array::from_fn(|g| extreme(&groups[g]) / -32.0);
        let (d_bytes, d) = to_f16(extreme(&steps) / -128.0);
        let mut out = [0; 210];
        for (g, values) in groups.iter().enumerate() {
            let scale = level(steps[g] * inverse(d), -128, 127);
            out[192 + g] = scale as i8 as u8;
            let id = inverse(d * scale as f32);
            let place = Place::of(g);
            for (i, v) in values.iter().enumerate() {
                let q = (level(v * id, -32, 31) + 32) as u8;
                out[place.ql + i] |= (q & 15) << place.ql_shift;
                out[128 + place.qh + i] |= (q >> 4) << place.qh_shift;
            }
        }
        out[208..].copy_from_slice(&d_bytes);
        out
    }
}

/// Where a group's bits lie.
struct Place {
    ql: usize,
    ql_shift: usize,
    qh: usize,
    qh_shift: usize,
}

impl Place {
    fn of(group: usize) -> Place {
        let (half, k, odd) = (group / 8, group % 8 / 2, group % 2);
        Place { ql: half * 64 + k % 2 * 32 + odd * 16, ql_shift: k / 2 * 4, qh: half * 32 + odd * 16, qh_shift: k * 2 }
    }
}
