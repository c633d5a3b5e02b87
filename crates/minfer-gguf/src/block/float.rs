//! Plain formats: bytes to single precision. Exact: a half or brain float is a
//! single with fewer digits.

pub(super) fn decode_f32(bytes: &[u8], out: &mut [f32]) {
    for (raw, out) in bytes.as_chunks().0.iter().zip(out) {
        *out = f32::from_le_bytes(*raw);
    }
}

pub(super) fn decode_f16(bytes: &[u8], out: &mut [f32]) {
    for (raw, out) in bytes.as_chunks().0.iter().zip(out) {
        *out = half::f16::from_le_bytes(*raw).to_f32();
    }
}

pub(super) fn decode_bf16(bytes: &[u8], out: &mut [f32]) {
    for (raw, out) in bytes.as_chunks().0.iter().zip(out) {
        *out = half::bf16::from_le_bytes(*raw).to_f32();
    }
}
