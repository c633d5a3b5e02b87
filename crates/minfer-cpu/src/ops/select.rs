//! Some rows of a value. Takes rows and their numbers; gives those rows. One item per output row.

use crate::scratch::Scratch;
use crate::simd::Simd;
use crate::work::{Check, Fault, Task};
use minfer_backend::BackendError;

/// `out[i] = x[rows[i]]`.
pub(crate) struct SelectRows {
    x: *const f32,
    x_rows: usize,
    rows: *const i32,
    out: *mut f32,
    n_outputs: usize,
    cols: usize,
}

impl SelectRows {
    pub(crate) fn check(check: &Check<'_>) -> Result<Self, BackendError> {
        let (x, out) = (check.input(0)?, check.output()?);
        check.equal("columns of the output", x.cols, out.cols)?;
        let rows = check.column(1, out.rows)?;
        let (x_rows, n_outputs, cols) = (x.rows, out.rows, x.cols);
        Ok(Self { x: x.start.cast(), x_rows, rows, out: out.start.cast(), n_outputs, cols })
    }
}

impl Task for SelectRows {
    fn items(&self, _phase: usize) -> usize {
        self.n_outputs
    }

    #[inline(always)]
    unsafe fn item<S: Simd>(&self, _s: S, _phase: usize, item: usize, _: &mut Scratch) -> Result<(), Fault> {
        // SAFETY: there is a number per output row, it is below the rows of `x`, and `x` and the output are apart.
        unsafe {
            let row = Fault::index("output row", *self.rows.add(item), self.x_rows)?;
            std::ptr::copy_nonoverlapping(self.x.add(row * self.cols), self.out.add(item * self.cols), self.cols);
        }
        Ok(())
    }
}
