//! Division by the root mean square. Takes rows of floats; gives floats, in place or not, or quantised ones. One item per row.

use crate::quantize::{Q8_BLOCK, Quantised};
use crate::scratch::Scratch;
use crate::simd::Simd;
use crate::vectors::{load_part, store_part};
use crate::work::{Check, Fault, Task};
use minfer_backend::BackendError;

/// `out = x / sqrt(mean(x²) + eps) · weight`, per run of `group` elements.
pub(crate) struct RmsNorm {
    x: *const f32,
    weight: *const f32,
    out: *mut u8,
    quantised: Option<Quantised>,
    rows: usize,
    cols: usize,
    group: usize,
    eps: f32,
}

impl RmsNorm {
    pub(crate) fn check(check: &Check<'_>, eps: f32, group: u32) -> Result<Self, BackendError> {
        let (x, out, group) = (check.input(0)?, check.output()?, group as usize);
        check.equal("columns of the output", x.cols, out.cols)?;
        check.equal("rows of the output", x.rows, out.rows)?;
        check.equal("columns beyond whole groups", 0, x.cols % group)?;
        let quantised = Quantised::new(out.start, out.cols, out.ty);
        let weight = check.vector(0, group)?;
        let (rows, cols) = (x.rows, x.cols);
        Ok(Self { x: x.start.cast(), weight, out: out.start, quantised, rows, cols, group, eps })
    }
}

impl Task for RmsNorm {
    fn items(&self, _phase: usize) -> usize {
        self.rows
    }

    #[inline(always)]
    unsafe fn item<S: Simd>(&self, s: S, _phase: usize, row: usize, _: &mut Scratch) -> Result<(), Fault> {
        for first in (0..self.cols).step_by(self.group) {
            // SAFETY: the group lies within the row, the row within both matrices. Quantised groups are whole blocks:
            // `supports` says so.
            unsafe {
                let x = self.x.add(row * self.cols + first);
                let factor = inverse_rms(s, x, self.group, self.eps);
                if let Some(out) = self.quantised {
                    let mut block = [0.0f32; Q8_BLOCK];
                    for at in (0..self.group).step_by(Q8_BLOCK) {
                        scale(s, x.add(at), self.weight.add(at), factor, Q8_BLOCK, block.as_mut_ptr());
                        out.write_block(s, row, (first + at) / Q8_BLOCK, block.as_ptr());
                    }
                } else {
                    let out = self.out.cast::<f32>().add(row * self.cols + first);
                    scale(s, x, self.weight, factor, self.group, out);
                }
            }
        }
        Ok(())
    }
}

/// `1 / sqrt(mean(x²) + eps)` of `n` floats.
///
/// # Safety
/// `n` floats are readable.
#[inline(always)]
pub(crate) unsafe fn inverse_rms<S: Simd>(s: S, x: *const f32, n: usize, eps: f32) -> f32 {
    let mut squares = [s.splat(0.0); 4];
    let mut at = 0;
    while at < n {
        for lane_sums in &mut squares {
            if at < n {
                // SAFETY: `n - at` floats are readable.
                let v = unsafe { load_part(s, x.add(at), n - at) };
                *lane_sums = s.fma(v, v, *lane_sums);
            }
            at += S::LANES;
        }
    }
    let sum = s.add(s.add(squares[0], squares[1]), s.add(squares[2], squares[3]));
    1.0 / (s.sum(sum) / n as f32 + eps).sqrt()
}

/// `out = x · factor · weight` for `n` floats; `out` may be `x`.
///
/// # Safety
/// `n` floats are readable from `x` and `weight`, and writable to `out`.
#[inline(always)]
pub(crate) unsafe fn scale<S: Simd>(s: S, x: *const f32, weight: *const f32, factor: f32, n: usize, out: *mut f32) {
    for at in (0..n).step_by(S::LANES) {
        // SAFETY: `n - at` floats are there on all sides.
        unsafe {
            let v = s.mul(load_part(s, x.add(at), n - at), s.splat(factor));
            store_part(s, out.add(at), n - at, s.mul(v, load_part(s, weight.add(at), n - at)));
        }
    }
}
