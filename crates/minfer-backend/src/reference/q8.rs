//! Rows of quantised activations ([`ValueType::Q8`], [`ValueType::Q8x2`]). Takes rows of floats or bytes; gives the
//! other; the one home of their byte layout in plain code, against which faster ones are judged.

use minfer_graph::ValueType;

/// Elements that share a scale.
pub const BLOCK: usize = 32;

/// Bytes of a row of `cols` elements.
pub fn row_bytes(cols: usize) -> usize {
    cols + cols / 32 * 4 + cols / 16 * 2
}

/// The three runs of a row: `q` (one byte an element), `d` (4 bytes a block), sums (2 bytes a half block).
pub fn split(row: &[u8], cols: usize) -> (&[u8], &[u8], &[u8]) {
    let (q, rest) = row.split_at(cols);
    let (d, sums) = rest.split_at(cols / 32 * 4);
    (q, d, &sums[..cols / 16 * 2])
}

/// What the scales of a row's second row are, against the first's.
pub const SECOND: f32 = 1.0 / 256.0;

/// Quantises `x` (a multiple of 32 elements) into a row of a quantised type; what the first row of `Q8` leaves out goes to
/// the second, if there is one, in steps of 1/256.
pub fn quantize(ty: ValueType, x: &[f32], row: &mut [u8]) {
    let (first, second) = row.split_at_mut(row_bytes(x.len()));
    write_row(x, first, scale);
    if ty == ValueType::Q8x2 {
        let mut rounded = vec![0.0; x.len()];
        dequantize_row(first, &mut rounded);
        let rest: Vec<f32> = x.iter().zip(&rounded).map(|(x, rounded)| x - rounded).collect();
        let mut scales = x.chunks_exact(BLOCK).map(|values| scale(values) * SECOND);
        write_row(&rest, second, |_| scales.next().unwrap_or_default());
    }
}

/// `max|x| / 127`; NaN where there is one, so that it is not lost.
fn scale(values: &[f32]) -> f32 {
    let largest = values.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    if values.iter().any(|v| v.is_nan()) { f32::NAN } else { largest / 127.0 }
}

/// The values of a row of a quantised type.
pub fn dequantize(ty: ValueType, row: &[u8], values: &mut [f32]) {
    values.fill(0.0);
    let mut part = vec![0.0; values.len()];
    for row in row.chunks_exact(row_bytes(values.len()).max(1)).take(ty.q8_rows()) {
        dequantize_row(row, &mut part);
        values.iter_mut().zip(&part).for_each(|(value, part)| *value += part);
    }
}

/// Quantises `x` (a multiple of 32 elements) into one row of `Q8`: `d = max|x| / 127` and `q = round(x / d)` per block, and
/// the sum of `q` over each half block.
pub fn quantize_row(x: &[f32], row: &mut [u8]) {
    quantize(ValueType::Q8, x, row);
}

/// Writes a row whose blocks have the scales given.
fn write_row(x: &[f32], row: &mut [u8], mut scale: impl FnMut(&[f32]) -> f32) {
    let cols = x.len();
    let (q, rest) = row.split_at_mut(cols);
    let (d, sums) = rest.split_at_mut(cols / 32 * 4);
    for (block, values) in x.chunks_exact(BLOCK).enumerate() {
        let scale = scale(values);
        d[block * 4..][..4].copy_from_slice(&scale.to_ne_bytes());
        for (half, values) in values.chunks_exact(16).enumerate() {
            let mut sum = 0i16;
            for (i, &v) in values.iter().enumerate() {
                let rounded = if scale > 0.0 { (v / scale).round().clamp(-127.0, 127.0) as i8 } else { 0 };
                q[block * BLOCK + half * 16 + i] = rounded as u8;
                sum += i16::from(rounded);
            }
            sums[(block * 2 + half) * 2..][..2].copy_from_slice(&sum.to_ne_bytes());
        }
    }
}

/// The values of one row of `Q8`: `d · q`.
pub fn dequantize_row(row: &[u8], values: &mut [f32]) {
    let (q, d, _) = split(row, values.len());
    for (block, values) in values.chunks_exact_mut(BLOCK).enumerate() {
        let scale = f32::from_ne_bytes([d[block * 4], d[block * 4 + 1], d[block * 4 + 2], d[block * 4 + 3]]);
        for (value, &q) in values.iter_mut().zip(&q[block * BLOCK..]) {
            *value = scale * f32::from(q as i8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_survives_to_half_a_step() {
        let x: Vec<f32> = (0..64).map(|i| (i as f32 * 0.7).sin() * if i < 32 { 3.0 } else { 1e-3 }).collect();
        let mut row = vec![0; row_bytes(64)];
        quantize_row(&x, &mut row);
        let mut back = vec![0.0; 64];
        dequantize_row(&row, &mut back);
        let (q, d, sums) = split(&row, 64);
        for i in 0..64 {
            let step = f32::from_ne_bytes(d[i / 32 * 4..][..4].try_into().unwrap());
            assert!((x[i] - back[i]).abs() <= step * 0.5001, "element {i}");
        }
        for half in 0..4 {
            let sum: i16 = q[half * 16..][..16].iter().map(|&q| i16::from(q as i8)).sum();
            assert_eq!(sum.to_ne_bytes(), sums[half * 2..][..2]);
        }
    }

    #[test]
    fn a_second_row_holds_what_the_first_left_out() {
        let x: Vec<f32> = (0..64).map(|i| if i == 9 { 50.0 } else { (i as f32 * 0.7).sin() }).collect();
        let error = |ty: ValueType| {
            let mut row = vec![0; ty.row_bytes(64) as usize];
            quantize(ty, &x, &mut row);
            let mut back = vec![0.0; 64];
            dequantize(ty, &row, &mut back);
            x.iter().zip(&back).fold(0.0f32, |worst, (a, b)| worst.max((a - b).abs()))
        };
        // Half a step of 127 in the first row; a step of 256 as many in the second.
        assert!(error(ValueType::Q8) > 0.05 && error(ValueType::Q8) < 0.2);
        assert!(error(ValueType::Q8x2) < 50.0 / 127.0 / 256.0 * 1.01);
    }

    #[test]
    fn zeros_nan_and_tiny_values_do_not_trap() {
        for (value, nan) in [(0.0, false), (f32::NAN, true), (1e-45, false), (f32::MAX, false)] {
            let mut x = [0.0; 32];
            x[5] = value;
            let mut row = vec![0; row_bytes(32)];
            quantize_row(&x, &mut row);
            let mut back = [0.0; 32];
            dequantize_row(&row, &mut back);
            assert_eq!(back.iter().any(|v| v.is_nan()), nan, "{value}");
        }
    }
}
