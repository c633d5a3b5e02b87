//! Rows into the KV cache. Takes k and v and the cells they go to; changes the KV regions. One item per token.

use crate::scratch::Scratch;
use crate::simd::Simd;
use crate::work::{Check, Fault, Kv, Task};
use half::f16;
use minfer_backend::BackendError;

/// Row `t` of k and v to cell `cells[t]`.
pub(crate) struct KvStore {
    k: *const f32,
    v: *const f32,
    cells: *const i32,
    kv: Kv,
    n_tokens: usize,
}

impl KvStore {
    pub(crate) fn check(check: &Check<'_>) -> Result<Self, BackendError> {
        let (k, v) = (check.input(0)?, check.input(1)?);
        check.equal("columns of v", k.cols, v.cols)?;
        check.equal("rows of v", k.rows, v.rows)?;
        let cells = check.column(2, k.rows)?;
        let kv = check.kv(k.cols, true)?;
        Ok(Self { k: k.start.cast(), v: v.start.cast(), cells, kv, n_tokens: k.rows })
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
                store(s, self.k.add(token * cols), self.kv.k, self.kv.half, cell * cols, cols);
                store(s, self.v.add(token * cols), self.kv.v, self.kv.half, cell * cols, cols);
            }
        }
        Ok(())
    }
}

/// Writes `n` floats as elements `at ..` of a KV region.
///
/// # Safety
/// `n` floats are readable, and the elements lie in the region.
#[inline(always)]
pub(crate) unsafe fn store<S: Simd>(s: S, from: *const f32, region: *mut u8, half: bool, at: usize, n: usize) {
    // SAFETY: as promised by the caller.
    unsafe {
        if !half {
            return std::ptr::copy_nonoverlapping(from, region.cast::<f32>().add(at), n);
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
/// The elements lie in the region, `n` floats are writable.
#[inline(always)]
pub(crate) unsafe fn load<S: Simd>(s: S, region: *const u8, half: bool, at: usize, n: usize, to: *mut f32) {
    // SAFETY: as promised by the caller.
    unsafe {
        if !half {
            return std::ptr::copy_nonoverlapping(region.cast::<f32>().add(at), to, n);
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
