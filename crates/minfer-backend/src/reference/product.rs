//! Products with weight matrices. Takes rows of floats and a matrix in any block format; gives `x Wᵀ`. Each weight row is
//! decoded once and multiplied with all rows of `x`; rows are split over threads, and no result depends on how many.

use super::parallel::{Failed, for_each_part};
use minfer_gguf::decode_row;
use minfer_graph::DType;

/// A weight matrix: `rows` rows of `row_bytes` bytes, each `cols` elements in format `dtype`.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    pub bytes: &'a [u8],
    pub dtype: DType,
    pub rows: usize,
    pub cols: usize,
    pub row_bytes: usize,
}

impl Matrix<'_> {
    /// Decodes row `row` into `values`, `[cols]`.
    pub fn decode(&self, row: usize, values: &mut [f32]) -> Result<(), Failed> {
        let bytes = &self.bytes[row * self.row_bytes..][..self.row_bytes];
        decode_row(self.dtype, bytes, values).map_err(|error| Failed::Decode(error.to_string()))
    }
}

/// `x Wᵀ`: `x` is `[n, cols]`, the result `[n, rows]`.
pub fn product(threads: usize, matrix: &Matrix<'_>, x: &[f32]) -> Result<Vec<f32>, Failed> {
    if x.is_empty() || matrix.rows == 0 {
        return Ok(Vec::new());
    }
    let n = x.len() / matrix.cols;
    let mut by_row = vec![0.0; matrix.rows * n]; // [rows, n]
    for_each_part(threads, x.len() * matrix.rows, &mut by_row, n, |first, part| {
        let mut weights = vec![0.0; matrix.cols];
        for (i, out) in part.chunks_exact_mut(n).enumerate() {
            matrix.decode(first + i, &mut weights)?;
            for (out, x) in out.iter_mut().zip(x.chunks_exact(matrix.cols)) {
                *out = dot(&weights, x) as f32;
            }
        }
        Ok(())
    })?;
    let mut out = vec![0.0; by_row.len()]; // [n, rows]
    for (row, values) in by_row.chunks_exact(n).enumerate() {
        for (token, &value) in values.iter().enumerate() {
            out[token * matrix.rows + row] = value;
        }
    }
    Ok(out)
}

/// `a · b`: in f32 within runs of 512 elements, on 16 partial sums (which the compiler keeps in vector registers), in f64
/// from run to run.
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    const LANES: usize = 16;
    let mut total = 0.0;
    for (a, b) in a.chunks(512).zip(b.chunks(512)) {
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        let mut lanes = [0.0f32; LANES];
        for (a, b) in a.iter().zip(b) {
            for lane in 0..LANES {
                lanes[lane] += a[lane] * b[lane];
            }
        }
        total += lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>();
        total += a_rest.iter().zip(b_rest).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    }
    total
}
