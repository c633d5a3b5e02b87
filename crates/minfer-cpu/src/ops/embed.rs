//! Rows of a table by token id. Takes ids and a weight of any format; gives floats. One item per token.

use crate::scratch::Scratch;
use crate::simd::Simd;
use crate::work::{Check, Fault, Matrix, Task};
use minfer_backend::BackendError;
use minfer_gguf::decode_row;

/// `out[t] = table[ids[t]] · scale`.
pub(crate) struct Embed {
    ids: *const i32,
    table: Matrix,
    out: *mut f32,
    n_tokens: usize,
    scale: f32,
}

impl Embed {
    pub(crate) fn check(check: &Check<'_>, scale: f32) -> Result<Self, BackendError> {
        let (out, table) = (check.output()?, check.matrix(0)?);
        check.equal("columns of the output", table.cols, out.cols)?;
        let ids = check.column(0, out.rows)?;
        Ok(Self { ids, table, out: out.start.cast(), n_tokens: out.rows, scale })
    }
}

impl Task for Embed {
    fn items(&self, _phase: usize) -> usize {
        self.n_tokens
    }

    #[inline(always)]
    unsafe fn item<S: Simd>(&self, _s: S, _phase: usize, token: usize, _: &mut Scratch) -> Result<(), Fault> {
        let Matrix { start, rows, cols, row_bytes, dtype } = self.table;
        // SAFETY: there is an id per token; the id is below the rows of the table; row `token` of the output is this
        // item's alone.
        let (bytes, out) = unsafe {
            let id = Fault::index("token id", *self.ids.add(token), rows)?;
            let bytes = std::slice::from_raw_parts(start.add(id * row_bytes), row_bytes);
            (bytes, std::slice::from_raw_parts_mut(self.out.add(token * cols), cols))
        };
        decode_row(dtype, bytes, out).expect("sizes were checked with the step");
        if self.scale != 1.0 {
            for x in out {
                *x *= self.scale;
            }
        }
        Ok(())
    }
}
