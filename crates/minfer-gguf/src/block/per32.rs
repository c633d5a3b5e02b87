//! The formats with one scale per 32 values. In all but Q8_0, byte `i` of `qs`
//! holds value `i` in its low and value `i + 16` in its high half.

use super::{extreme, f16, inverse, level, min_max, to_f16};

/// `d: f16, qs: [u8; 16]`; value = `d * (q - 8)`, q of 4 bits.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
pub struct Q4_0<'a>(pub &'a [u8; 18]);

impl Q4_0<'_> {
    /// The scale.
    pub fn d(&self) -> f32 {
        f16(self.0[0], self.0[1])
    }

    /// The 4-bit levels, two per byte.
    pub fn qs(&self) -> &[u8; 16] {
        part(self.0, 2)
    }

    /// All 32 values.
    pub fn decode(&self, out: &mut [f32; 32]) {
        let (d, qs) = (self.d(), self.qs());
        for i in 0..16 {
            out[i] = d * (i32::from(qs[i] & 15) - 8) as f32;
            out[i + 16] = d * (i32::from(qs[i] >> 4) - 8) as f32;
        }
    }

    /// The value of largest magnitude becomes level -8.
    pub fn encode(values: &[f32; 32]) -> [u8; 18] {
        let (d_bytes, d) = to_f16(extreme(values) / -8.0);
        let id = inverse(d);
        let q = values.map(|v| (level(v * id, -8, 7) + 8) as u8);
        let mut out = [0; 18];
        out[..2].copy_from_slice(&d_bytes);
        out[2..].copy_from_slice(&nibbles(&q));
        out
    }
}

/// `d: f16, m: f16, qs: [u8; 16]`; value = `d * q + m`, q of 4 bits.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
pub struct Q4_1<'a>(pub &'a [u8; 20]);

impl Q4_1<'_> {
    /// The scale.
    pub fn d(&self) -> f32 {
        f16(self.0[0], self.0[1])
    }

    /// The minimum.
    pub fn m(&self) -> f32 {
        f16(self.0[2], self.0[3])
    }

    /// The 4-bit levels, two per byte.
    pub fn qs(&self) -> &[u8; 16] {
        part(self.0, 4)
    }

    /// All 32 values.
    pub fn decode(&self, out: &mut [f32; 32]) {
        let (d, m, qs) = (self.d(), self.m(), self.qs());
        for i in 0..16 {
            out[i] = d * f32::from(qs[i] & 15) + m;
            out[i + 16] = d * f32::from(qs[i] >> 4) + m;
        }
    }

    /// Smallest and largest value become levels 0 and 15.
    pub fn encode(values: &[f32; 32]) -> [u8; 20] {
        let (d, m, q) = affine(values, 15);
        let mut out = [0; 20];
        out[..2].copy_from_slice(&d);
        out[2..4].copy_from_slice(&m);
        out[4..].copy_from_slice(&nibbles(&q));
        out
    }
}

/// `d: f16, qh: u32, qs: [u8; 16]`; value = `d * (q - 16)`; bit `i` of `qh` is the
/// fifth bit of value `i`.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
pub struct Q5_0<'a>(pub &'a [u8; 22]);

impl Q5_0<'_> {
    /// The scale.
    pub fn d(&self) -> f32 {
        f16(self.0[0], self.0[1])
    }

    /// The fifth bits, one per value.
    pub fn qh(&self) -> u32 {
        u32::from_le_bytes(*part(self.0, 2))
    }

    /// The lower four bits, two per byte.
    pub fn qs(&self) -> &[u8; 16] {
        part(self.0, 6)
    }

    /// All 32 values.
    pub fn decode(&self, out: &mut [f32; 32]) {
        let d = self.d();
        let q = five_bits(self.qs(), self.qh());
        for (out, q) in out.iter_mut().zip(q) {
            *out = d * (i32::from(q) - 16) as f32;
        }
    }

    /// The value of largest magnitude becomes level -16.
    pub fn encode(values: &[f32; 32]) -> [u8; 22] {
        let (d_bytes, d) = to_f16(extreme(values) / -16.0);
        let id = inverse(d);
        let q = values.map(|v| (level(v * id, -16, 15) + 16) as u8);
        let mut out = [0; 22];
        out[..2].copy_from_slice(&d_bytes);
        out[2..6].copy_from_slice(&fifth_bits(&q));
        out[6..].copy_from_slice(&nibbles(&q));
        out
    }
}

/// `d: f16, m: f16, qh: u32, qs: [u8; 16]`; value = `d * q + m`, q of 5 bits.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
pub struct Q5_1<'a>(pub &'a [u8; 24]);

impl Q5_1<'_> {
    /// The scale.
    pub fn d(&self) -> f32 {
        f16(self.0[0], self.0[1])
    }

    /// The minimum.
    pub fn m(&self) -> f32 {
        f16(self.0[2], self.0[3])
    }

    /// The fifth bits, one per value.
    pub fn qh(&self) -> u32 {
        u32::from_le_bytes(*part(self.0, 4))
    }

    /// The lower four bits, two per byte.
    pub fn qs(&self) -> &[u8; 16] {
        part(self.0, 8)
    }

    /// All 32 values.
    pub fn decode(&self, out: &mut [f32; 32]) {
        let (d, m) = (self.d(), self.m());
        let q = five_bits(self.qs(), self.qh());
        for (out, q) in out.iter_mut().zip(q) {
            *out = d * f32::from(q) + m;
        }
    }

    /// Smallest and largest value become levels 0 and 31.
    pub fn encode(values: &[f32; 32]) -> [u8; 24] {
        let (d, m, q) = affine(values, 31);
        let mut out = [0; 24];
        out[..2].copy_from_slice(&d);
        out[2..4].copy_from_slice(&m);
        out[4..8].copy_from_slice(&fifth_bits(&q));
        out[8..].copy_from_slice(&nibbles(&q));
        out
    }
}

/// `d: f16, qs: [i8; 32]`; value = `d * q`.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
pub struct Q8_0<'a>(pub &'a [u8; 34]);

impl Q8_0<'_> {
    /// The scale.
    pub fn d(&self) -> f32 {
        f16(self.0[0], self.0[1])
    }

    /// The levels; each byte is an `i8`.
    pub fn qs(&self) -> &[u8; 32] {
        part(self.0, 2)
    }

    /// All 32 values.
    pub fn decode(&self, out: &mut [f32; 32]) {
        let d = self.d();
        for (out, q) in out.iter_mut().zip(self.qs()) {
            *out = d * f32::from(*q as i8);
        }
    }

    /// The largest magnitude becomes level 127 or -127.
    pub fn encode(values: &[f32; 32]) -> [u8; 34] {
        let (d_bytes, d) = to_f16(extreme(values).abs() / 127.0);
        let id = inverse(d);
        let mut out = [0; 34];
        out[..2].copy_from_slice(&d_bytes);
        for (out, v) in out[2..].iter_mut().zip(values) {
            *out = level(v * id, -127, 127) as i8 as u8;
        }
        out
    }
}

/// `LEN` bytes of a block from a fixed place, which every layout above contains.
pub(super) fn part<const LEN: usize, const BYTES: usize>(block: &[u8; BYTES], at: usize) -> &[u8; LEN] {
    const { assert!(LEN <= BYTES) };
    // Every caller passes a constant inside its layout; the fallback only keeps this total.
    match block.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(found) => found,
        None => &[0; LEN],
    }
}

/// Scale and minimum in half precision, and the levels `0..=top`.
fn affine(values: &[f32; 32], top: i32) -> ([u8; 2], [u8; 2], [u8; 32]) {
    let (least, most) = min_max(values);
    let (m_bytes, m) = to_f16(least);
    let (d_bytes, d) = to_f16((most - m) / top as f32);
    let id = inverse(d);
    (d_bytes, m_bytes, values.map(|v| level((v - m) * id, 0, top) as u8))
}

/// Lower halves of 32 levels, value `i` low and value `i + 16` high.
fn nibbles(q: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|i| (q[i] & 15) | (q[i + 16] & 15) << 4)
}

fn fifth_bits(q: &[u8; 32]) -> [u8; 4] {
    let bits = q.iter().enumerate().fold(0u32, |bits, (i, q)| bits | u32::from(q >> 4 & 1) << i);
    bits.to_le_bytes()
}

fn five_bits(qs: &[u8; 16], qh: u32) -> [u8; 32] {
    std::array::from_fn(|i| {
        let low = if i < 16 { qs[i] & 15 } else { qs[i - 16] >> 4 };
        low | ((qh >> i & 1) as u8) << 4
    })
}
