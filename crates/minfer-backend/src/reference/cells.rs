//! Rows of the KV cache in blocks of `q8_0`. Takes floats or bytes; gives the other, in the format that GGUF gives weights.

use minfer_gguf::{DType, decode_row, encode_row};

const BLOCK: usize = 32;
const BLOCK_BYTES: usize = 34;

/// Encodes a row, whose elements are whole blocks. A block with a NaN, or beyond the reach of a half-precision scale, gets
/// NaN as its scale, so that it is not lost.
pub fn encode(row: &[f32], bytes: &mut [u8]) {
    for (values, bytes) in row.chunks_exact(BLOCK).zip(bytes.chunks_exact_mut(BLOCK_BYTES)) {
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        if encode_row(DType::Q8_0, values, &mut block).is_err() {
            block = half::f16::NAN.to_ne_bytes().to_vec();
            block.resize(BLOCK_BYTES, 0);
        }
        bytes.copy_from_slice(&block);
    }
}

/// Appends the elements of a row.
pub fn decode(bytes: &[u8], values: &mut Vec<f32>) {
    let first = values.len();
    values.resize(first + bytes.len() / BLOCK_BYTES * BLOCK, 0.0);
    // A block with NaN as its scale decodes to NaN and zeros times NaN: all NaN.
    if decode_row(DType::Q8_0, bytes, &mut values[first..]).is_err() {
        values[first..].fill(f32::NAN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_to_half_a_level_and_nan_stays() {
        let mut row: Vec<f32> = (0..64).map(|i| (i as f32 * 0.9).sin()).collect();
        row[40] = f32::NAN;
        let mut bytes = vec![0; 68];
        encode(&row, &mut bytes);
        let mut back = Vec::new();
        decode(&bytes, &mut back);
        assert!(row[..32].iter().zip(&back).all(|(a, b)| (a - b).abs() <= 0.501 / 127.0));
        assert!(back[32..].iter().all(|v| v.is_nan()));
    }
}
