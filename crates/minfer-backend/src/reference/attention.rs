//! Causal attention over scattered KV cells. Takes queries, the KV bytes and, per token, the cells it sees; gives the
//! weighted values. Must not know block tables: cells come resolved and checked.

use super::parallel::{Failed, for_each_part};
use super::product::dot;
use crate::host::numbers;
use minfer_graph::{Attention, ValueType};

/// One of a layer's KV regions: `bytes` holds cells of `cols` elements.
#[derive(Clone, Copy)]
pub struct Cells<'a> {
    pub bytes: &'a [u8],
    pub ty: ValueType,
    pub cols: usize,
}

impl Cells<'_> {
    /// Appends the elements of a cell to `values`.
    fn decode(&self, cell: usize, values: &mut Vec<f32>) {
        let row_bytes = self.ty.row_bytes(self.cols as u32) as usize;
        let bytes = &self.bytes[cell * row_bytes..][..row_bytes];
        match self.ty {
            ValueType::F16 => values.extend(numbers::<half::f16>(bytes).iter().map(|v| v.to_f32())),
            ValueType::Q8_0 => super::cells::decode(bytes, values),
            _ => values.extend_from_slice(&numbers::<f32>(bytes)),
        }
    }
}

/// `softmax(scale · q Kᵀ) V` per token and head. `q` and the result are `[n, n_head · head_dim]`; token `t` sees the
/// cells `seen[t]`, at least one.
pub fn attention(
    threads: usize,
    a: &Attention,
    q: &[f32],
    seen: &[Vec<usize>],
    k: Cells<'_>,
    v: Cells<'_>,
) -> Result<Vec<f32>, Failed> {
    let head_dim = a.head_dim as usize;
    let group = (a.n_head / a.n_kv_head) as usize; // query heads that share a KV head
    let width = a.n_head as usize * head_dim;
    let mut out = vec![0.0; q.len()];
    let work = seen.iter().map(Vec::len).sum::<usize>() * width * 2;
    for_each_part(threads, work, &mut out, width, |first, part| {
        let (mut keys, mut values) = (Vec::new(), Vec::new()); // [n_seen, n_kv_head * head_dim]
        for (i, out) in part.chunks_exact_mut(width).enumerate() {
            let (cells, q) = (&seen[first + i], &q[(first + i) * width..][..width]);
            keys.clear();
            values.clear();
            for &cell in cells {
                k.decode(cell, &mut keys);
                v.decode(cell, &mut values);
            }
            for (head, (out, q)) in out.chunks_exact_mut(head_dim).zip(q.chunks_exact(head_dim)).enumerate() {
                let column = head / group * head_dim;
                let scores = keys.chunks_exact(k.cols).map(|key| dot(q, &key[column..][..head_dim]));
                let weights = softmax(scores.map(|score| score * f64::from(a.scale)).collect());
                let mut sums = vec![0.0f64; head_dim];
                for (weight, value) in weights.iter().zip(values.chunks_exact(v.cols)) {
                    for (sum, &value) in sums.iter_mut().zip(&value[column..]) {
                        *sum += weight * f64::from(value);
                    }
                }
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out = sum as f32;
                }
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// `exp(s - max) / Σ exp(s - max)`.
fn softmax(mut scores: Vec<f64>) -> Vec<f64> {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for score in &mut scores {
        *score = (*score - largest).exp();
    }
    let sum: f64 = scores.iter().sum();
    for score in &mut scores {
        *score /= sum;
    }
    scores
}
