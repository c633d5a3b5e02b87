//! Whether two outcomes agree. Takes bytes of the same case from two backends; gives the largest difference as a part of
//! what is allowed, or what differs.

use super::case::Case;
use super::rig::Outcome;
use crate::host::numbers;
use crate::reference::{self, q8};
use minfer_graph::{Op, ValueType};

/// Compares value and KV regions.
pub fn outcomes(case: &Case, got: &Outcome, expected: &Outcome, relative: f32) -> Result<f32, String> {
    let cols = case.output.shape.cols as usize;
    let rounding = case.rounding();
    let mut worst = rows("value", case.output.ty, cols, &got.value, &expected.value, relative, rounding)?;
    if let Some(kv) = &case.kv {
        // What is only stored keeps every bit (rounded to nearest even in f16); what is computed may round otherwise.
        let relative = match (case.op, kv.ty) {
            (Op::QkvStore(_), ValueType::F16) => relative + 1.0 / 1024.0,
            (Op::QkvStore(_), _) => relative,
            _ => 0.0,
        };
        worst = worst.max(rows("K region", kv.ty, kv.cols, &got.k, &expected.k, relative, 0.0)?);
        worst = worst.max(rows("V region", kv.ty, kv.cols, &got.v, &expected.v, relative, 0.0)?);
    }
    Ok(worst)
}

fn rows(
    what: &str,
    ty: ValueType,
    cols: usize,
    got: &[u8],
    expected: &[u8],
    relative: f32,
    rounding: f32,
) -> Result<f32, String> {
    if got.len() != expected.len() {
        return Err(format!("{what}: {} bytes, expected {}", got.len(), expected.len()));
    }
    let row_bytes = (ty.row_bytes(cols as u32) as usize).max(1);
    let mut worst = 0.0f32;
    for (row, (got, expected)) in got.chunks_exact(row_bytes).zip(expected.chunks_exact(row_bytes)).enumerate() {
        if got == expected {
            continue;
        }
        let compared = match ty {
            ValueType::F32 => floats(&numbers::<f32>(got), &numbers::<f32>(expected), relative, rounding),
            ValueType::F16 => floats(&halves(got), &halves(expected), relative, 0.0),
            ValueType::Q8_0 => cells(got, expected, relative),
            ValueType::I32 => Err("integers differ".to_string()),
            ValueType::Q8 => quantised(cols, got, expected, relative),
            ValueType::Q8x2 => finely_quantised(cols, got, expected, relative),
        };
        worst = worst.max(compared.map_err(|difference| format!("{what}, row {row}: {difference}"))?);
    }
    Ok(worst)
}

/// Cells of `q8_0`: elements at most one level apart, as values near a tie may round either way.
fn cells(got: &[u8], expected: &[u8], relative: f32) -> Result<f32, String> {
    let decoded = |bytes: &[u8]| {
        let mut values = Vec::new();
        reference::cells::decode(bytes, &mut values);
        values
    };
    let (got, expected) = (decoded(got), decoded(expected));
    let largest = expected.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    for (got, expected) in got.chunks(32).zip(expected.chunks(32)) {
        let level = expected.iter().fold(0.0f32, |m, v| m.max(v.abs())) / 127.0;
        floats(got, expected, 0.0, level * 1.1 + relative * largest)?;
    }
    Ok(0.0)
}

fn halves(bytes: &[u8]) -> Vec<f32> {
    numbers::<half::f16>(bytes).iter().map(|v| v.to_f32()).collect()
}

/// Each element within `relative` of the largest one, plus `step`. NaN agrees only with NaN.
fn floats(got: &[f32], expected: &[f32], relative: f32, step: f32) -> Result<f32, String> {
    let largest = expected.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    let allowed = relative * largest + step;
    let mut worst = 0.0f32;
    for (column, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        if got.to_bits() == expected.to_bits() || got == expected || (got.is_nan() && expected.is_nan()) {
            continue;
        }
        let difference = (got - expected).abs();
        if difference.is_nan() || difference > allowed {
            return Err(format!("column {column}: {got}, expected {expected} ± {allowed} (largest {largest})"));
        }
        worst = worst.max(difference / allowed);
    }
    Ok(worst)
}

/// Scales agree, elements are at most one step apart (values near a tie may round either way), and the sums are those of
/// the row's own elements.
fn quantised(cols: usize, got: &[u8], expected: &[u8], relative: f32) -> Result<f32, String> {
    let (q, d, sums) = q8::split(got, cols);
    let scales = numbers::<f32>(q8::split(expected, cols).1).into_owned();
    let largest_step = scales.iter().fold(0.0f32, |m, d| m.max(d.abs()));
    floats(&numbers::<f32>(d), &scales, relative + 1e-6, 0.0).map_err(|difference| format!("scale: {difference}"))?;
    for (half, sum) in numbers::<i16>(sums).iter().enumerate() {
        let own: i16 = q[half * 16..][..16].iter().map(|&q| i16::from(q as i8)).sum();
        if own != *sum {
            return Err(format!("half block {half}: the sum is {sum}, its elements give {own}"));
        }
    }
    let (mut a, mut b) = (vec![0.0; cols], vec![0.0; cols]);
    q8::dequantize_row(got, &mut a);
    q8::dequantize_row(expected, &mut b);
    for ((a, b), step) in a.chunks(q8::BLOCK).zip(b.chunks(q8::BLOCK)).zip(&scales) {
        floats(a, b, 0.0, step * 1.01 + relative * largest_step * 127.0)?;
    }
    Ok(0.0)
}

/// The first rows agree as rows of `Q8` do, and set the scales of the second. Those hold rests of the first, which differ
/// wholly where one element of the first rounds otherwise; so what they must do is to bring the sums together.
fn finely_quantised(cols: usize, got: &[u8], expected: &[u8], relative: f32) -> Result<f32, String> {
    let row_bytes = q8::row_bytes(cols);
    quantised(cols, &got[..row_bytes], &expected[..row_bytes], relative)?;
    let scales = |row: &[u8]| numbers::<f32>(q8::split(row, cols).1).into_owned();
    let due: Vec<f32> = scales(&got[..row_bytes]).iter().map(|d| d * q8::SECOND).collect();
    floats(&scales(&got[row_bytes..]), &due, 0.0, 0.0).map_err(|difference| format!("second scale: {difference}"))?;
    // Its own sums are right.
    quantised(cols, &got[row_bytes..], &got[row_bytes..], relative)?;
    let (mut a, mut b) = (vec![0.0; cols], vec![0.0; cols]);
    q8::dequantize(ValueType::Q8x2, got, &mut a);
    q8::dequantize(ValueType::Q8x2, expected, &mut b);
    let largest = b.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    // Each is off by at most a step of the second row, of which 256 times 127 make the largest element: by half of one
    // where it is rounded, by a whole one where the rest is half a step of the first row, more than 127 levels hold.
    floats(&a, &b, 0.0, largest * (relative + 2.2 / (127.0 * 256.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_beyond_the_tolerance_and_nan_are_seen() {
        let expected = [1.0, -4.0, 0.0];
        assert!(floats(&[1.0, -4.0, 3e-5], &expected, 1e-5, 0.0).is_ok());
        for wrong in [[1.0, -4.0, 5e-5], [f32::NAN, -4.0, 0.0], [1.0, 4.0, 0.0], [1.0, f32::INFINITY, 0.0]] {
            assert!(floats(&wrong, &expected, 1e-5, 0.0).is_err(), "{wrong:?}");
        }
        assert!(floats(&[0.0], &[f32::NAN], 1e-5, 0.0).is_err());
    }

    #[test]
    fn quantised_rows_may_round_a_tie_otherwise_and_nothing_else() {
        let x: Vec<f32> = (0..32).map(|i| i as f32 / 31.0).collect();
        let mut expected = vec![0; q8::row_bytes(32)];
        q8::quantize_row(&x, &mut expected);
        let changed = |steps: u8, sum: u8| {
            let mut row = expected.clone();
            row[3] += steps;
            row[36] += sum; // low byte of the first half's sum, on a little-endian machine
            quantised(32, &row, &expected, 1e-6)
        };
        assert!(changed(1, 1).is_ok());
        assert!(changed(1, 0).is_err(), "a sum that is not its row's");
        assert!(changed(2, 2).is_err(), "two steps off");
    }
}
