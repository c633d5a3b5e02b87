//! Rows of the KV cache in blocks of `q8_0`. Takes floats or bytes; gives the other, in the format that GGUF gives weights.

use minfer_gguf::{DType, decode_row, encode_row};
use minfer_graph::CacheType;

const BLOCK: usize = 32;
const BLOCK_BYTES: usize = 34;

/// Multiplies each head's runs of [`CacheType::turned_elems`] elements with a normalised Hadamard matrix (Sylvester's), which
/// is its own inverse.
pub fn turn(rows: &mut [f32], head_dim: usize) {
    let n = CacheType::turned_elems(head_dim as u32) as usize;
    for run in rows.chunks_exact_mut(n) {
        let mut half = 1;
        while half < n {
            for pair in run.chunks_exact_mut(2 * half) {
                for i in 0..half {
                    (pair[i], pair[i + half]) = (pair[i] + pair[i + half], pair[i] - pair[i + half]);
                }
            }
            half *= 2;
        }
        run.iter_mut().for_each(|v| *v /= (n as f32).sqrt());
    }
}

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
    fn turning_keeps_dots_and_turns_back() {
        for head_dim in [32, 64, 96] {
            let row = |seed: f32| (0..192).map(|i| (i as f32 * seed).sin()).collect::<Vec<f32>>();
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            let (a, b) = (row(0.7), row(1.3));
            let (mut turned_a, mut turned_b) = (a.clone(), b.clone());
            turn(&mut turned_a, head_dim);
            turn(&mut turned_b, head_dim);
            assert!((dot(&a, &b) - dot(&turned_a, &turned_b)).abs() < 1e-4);
            assert!(a.iter().zip(&turned_a).any(|(a, b)| (a - b).abs() > 0.1));
            turn(&mut turned_a, head_dim);
            assert!(a.iter().zip(&turned_a).all(|(a, b)| (a - b).abs() < 1e-5));
        }
    }

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
