//! Rows into the KV cache. Takes k and v and the cells they go to; changes the KV regions. One item per token.

use crate::ops::attention::MAX_HEAD_DIM;
use crate::quantize::Q8_BLOCK;
use crate::scratch::Scratch;
use crate::simd::Simd;
use crate::work::{Check, Fault, Kv, Task};
use half::f16;
use minfer_backend::BackendError;
use minfer_graph::{CacheType, ValueType};

/// Row `t` of k and v to cell `cells[t]`.
pub(crate) struct KvStore {
    k: *const f32,
    v: *const f32,
    cells: *const i32,
    kv: Kv,
    head_dim: usize,
    n_tokens: usize,
}

impl KvStore {
    pub(crate) fn check(check: &Check<'_>, head_dim: u32) -> Result<Self, BackendError> {
        let (k, v, head_dim) = (check.input(0)?, check.input(1)?, head_dim as usize);
        check.equal("columns beyond whole heads", 0, k.cols % head_dim)?;
        check.equal("columns of v", k.cols, v.cols)?;
        check.equal("rows of v", k.rows, v.rows)?;
        let cells = check.column(2, k.rows)?;
        let kv = check.kv(k.cols, head_dim, true)?;
        Ok(Self { k: k.start.cast(), v: v.start.cast(), cells, kv, head_dim, n_tokens: k.rows })
    }
}

impl Task for KvStore {
    fn items(&self, _phase: usize) -> usize {
        // One item: two tokens that (wrongly) name the same cell must not write it at the same time.
        usize::from(self.n_tokens > 0)
    }

    #[inline(always)]
    unsafe fn item<S: Simd>(&self, s: S, _phase: usize, _item: usize, _: &mut Scratch) -> Result<(), Fault> {
        let cols = self.kv.cols;
        for token in 0..self.n_tokens {
            // SAFETY: there is a cell number per token and it is below `n_cells`; rows lie within k and v.
            unsafe {
                let cell = Fault::index("cell", *self.cells.add(token), self.kv.n_cells)?;
                store(s, self.v.add(token * cols), self.kv.v, self.kv.ty, cell * cols, cols);
                let k = self.k.add(token * cols);
                if !self.kv.turns_keys() {
                    store(s, k, self.kv.k, self.kv.ty, cell * cols, cols);
                    continue;
                }
                let mut head = [[0.0]; MAX_HEAD_DIM];
                for first in (0..cols).step_by(self.head_dim) {
                    std::ptr::copy_nonoverlapping(k.add(first), head.as_mut_ptr().cast(), self.head_dim);
                    turn(&mut head[..self.head_dim]);
                    store(s, head.as_ptr().cast(), self.kv.k, self.kv.ty, cell * cols + first, self.head_dim);
                }
            }
        }
        Ok(())
    }
}

/// Multiplies the runs of `W` heads side by side with a normalised Hadamard matrix; see
/// [`CacheType::Q8_0`](minfer_graph::CacheType::Q8_0).
#[inline(always)]
pub(crate) fn turn<const W: usize>(head: &mut [[f32; W]]) {
    let n = CacheType::turned_elems(head.len() as u32) as usize;
    let factor = 1.0 / (n as f32).sqrt();
    for run in head.chunks_exact_mut(n) {
        let mut half = 1;
        while half < n {
            for pair in run.chunks_exact_mut(2 * half) {
                let (low, high) = pair.split_at_mut(half);
                for (a, b) in low.as_flattened_mut().iter_mut().zip(high.as_flattened_mut()) {
                    (*a, *b) = (*a + *b, *a - *b);
                }
            }
            half *= 2;
        }
        run.as_flattened_mut().iter_mut().for_each(|v| *v *= factor);
    }
}

/// 32 elements of `q8_0`, at any address.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Block {
    d: u16,
    q: [i8; Q8_BLOCK],
}

impl Block {
    /// `d` is the greatest magnitude over 127, rounded to half precision, `q` the nearest level. A block with a NaN, or
    /// beyond the reach of `d`, gets NaN as `d`.
    #[inline(always)]
    fn quantised(x: &[f32; Q8_BLOCK]) -> Self {
        let (mut greatest, mut not_finite) = (0.0f32, 0.0f32);
        for &x in x {
            greatest = if x.abs() > greatest { x.abs() } else { greatest };
            not_finite += x * 0.0;
        }
        let d = f16::from_f32_const(greatest / 127.0);
        let d = if not_finite == 0.0 && d.is_finite() { d } else { f16::NAN };
        let inverse = if d == f16::ZERO { 0.0 } else { 1.0 / d.to_f32_const() };
        let mut q = [0; Q8_BLOCK];
        for (q, &x) in q.iter_mut().zip(x) {
            // Ties to even, as the units do. Casts saturate; the greatest may be a little above 127 levels.
            *q = ((x * inverse).round_ties_even() as i32).clamp(-127, 127) as i8;
        }
        Self { d: d.to_bits(), q }
    }
}

/// Writes `n` floats as elements `at ..` of a KV region.
///
/// # Safety
/// `n` floats are readable, and the elements lie in the region; whole blocks of its type.
#[inline(always)]
pub(crate) unsafe fn store<S: Simd>(s: S, from: *const f32, region: *mut u8, ty: ValueType, at: usize, n: usize) {
    // SAFETY: as promised by the caller.
    unsafe {
        if ty == ValueType::F32 {
            return std::ptr::copy_nonoverlapping(from, region.cast::<f32>().add(at), n);
        }
        if ty == ValueType::Q8_0 {
            let to = region.cast::<Block>().add(at / Q8_BLOCK);
            for block in 0..n / Q8_BLOCK {
                let x = from.cast::<[f32; Q8_BLOCK]>().add(block).read_unaligned();
                to.add(block).write(Block::quantised(&x));
            }
            return;
        }
        let to = region.cast::<u16>().add(at);
        let whole = n - n % S::LANES;
        for i in (0..whole).step_by(S::LANES) {
            s.store_f16(to.add(i), s.load(from.add(i)));
        }
        for i in whole..n {
            *to.add(i) = f16::from_f32_const(*from.add(i)).to_bits();
        }
    }
}

/// Reads elements `at .. at + n` of a KV region as floats.
///
/// # Safety
/// The elements lie in the region, whole blocks of its type; `n` floats are writable.
#[inline(always)]
pub(crate) unsafe fn load<S: Simd>(s: S, region: *const u8, ty: ValueType, at: usize, n: usize, to: *mut f32) {
    // SAFETY: as promised by the caller.
    unsafe {
        if ty == ValueType::F32 {
            return std::ptr::copy_nonoverlapping(region.cast::<f32>().add(at), to, n);
        }
        if ty == ValueType::Q8_0 {
            let from = region.cast::<Block>().add(at / Q8_BLOCK);
            for block in 0..n / Q8_BLOCK {
                let Block { d, q } = from.add(block).read();
                let d = s.half(d);
                for (i, q) in q.into_iter().enumerate() {
                    *to.add(block * Q8_BLOCK + i) = d * f32::from(q);
                }
            }
            return;
        }
        let from = region.cast::<u16>().add(at);
        let whole = n - n % S::LANES;
        for i in (0..whole).step_by(S::LANES) {
            s.store(to.add(i), s.load_f16(from.add(i)));
        }
        for i in whole..n {
            *to.add(i) = s.half(*from.add(i));
        }
    }
}
