//! Floats to quantised activations. Takes rows of floats; gives quantised rows. Items are runs of blocks of a row.

use crate::quantize::{Q8_BLOCK, Quantised};
use crate::scratch::Scratch;
use crate::simd::Simd;
use crate::work::{Check, Fault, Task};
use minfer_backend::BackendError;

/// Blocks of one item.
const ITEM_BLOCKS: usize = 64;

/// `out = x`, quantised.
pub(crate) struct Quantize {
    x: *const f32,
    out: Quantised,
    rows: usize,
    cols: usize,
}

impl Quantize {
    pub(crate) fn check(check: &Check<'_>) -> Result<Self, BackendError> {
        let (x, out) = (check.input(0)?, check.output()?);
        check.equal("columns of the output", x.cols, out.cols)?;
        check.equal("rows of the output", x.rows, out.rows)?;
        check.equal("columns beyond a multiple of 32", 0, x.cols % Q8_BLOCK)?;
        let quantised = Quantised::new(out.start, out.cols, out.ty);
        let quantised = quantised.ok_or_else(|| check.bad("type of the output", "quantised", out.ty))?;
        Ok(Self { x: x.start.cast(), out: quantised, rows: x.rows, cols: x.cols })
    }

    fn items_per_row(&self) -> usize {
        (self.cols / Q8_BLOCK).div_ceil(ITEM_BLOCKS)
    }
}

impl Task for Quantize {
    fn items(&self, _phase: usize) -> usize {
        self.rows * self.items_per_row()
    }

    #[inline(always)]
    unsafe fn item<S: Simd>(&self, s: S, _phase: usize, item: usize, _: &mut Scratch) -> Result<(), Fault> {
        let (row, part) = (item / self.items_per_row(), item % self.items_per_row());
        let end = ((part + 1) * ITEM_BLOCKS).min(self.cols / Q8_BLOCK);
        for block in part * ITEM_BLOCKS..end {
            // SAFETY: the row and the block lie within both matrices; the block is this item's alone.
            unsafe {
                self.out.write_block(s, row, block, self.x.add(row * self.cols + block * Q8_BLOCK));
            }
        }
        Ok(())
    }
}
