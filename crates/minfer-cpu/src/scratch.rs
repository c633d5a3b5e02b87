//! What each worker keeps beside it. Takes nothing; gives one buffer per worker, seen as whatever the step needs.

use crate::ops::attention::AttentionScratch;
use crate::product::ProductScratch;
use std::alloc::{GlobalAlloc, Layout, System};

/// Types for which any bytes are a value.
///
/// # Safety
/// Only numbers and arrays and structs of them, without padding that matters.
pub(crate) unsafe trait Plain: Sized {}

// SAFETY: arrays of numbers.
unsafe impl Plain for ProductScratch {}
// SAFETY: arrays of numbers.
unsafe impl Plain for AttentionScratch {}

/// Bytes of one worker's scratch: the greatest need of any step.
pub(crate) const SCRATCH_BYTES: usize = {
    let (a, b) = (size_of::<ProductScratch>(), size_of::<AttentionScratch>());
    if a > b { a } else { b }
};

const LAYOUT: Layout = match Layout::from_size_align(SCRATCH_BYTES, 64) {
    Ok(layout) => layout,
    Err(_) => panic!("scratch has a size"),
};

/// One worker's buffer. Its content means nothing from one phase to the next.
pub(crate) struct Scratch(*mut u8);

// SAFETY: it owns its bytes.
unsafe impl Send for Scratch {}

impl Scratch {
    /// `None` if there is no memory for it.
    pub(crate) fn new() -> Option<Scratch> {
        // Of the system itself, as regions are.
        // SAFETY: the layout is not empty.
        let start = unsafe { System.alloc_zeroed(LAYOUT) };
        (!start.is_null()).then_some(Scratch(start))
    }

    /// The buffer as what the step needs.
    pub(crate) fn get<T: Plain>(&mut self) -> &mut T {
        const { assert!(size_of::<T>() <= SCRATCH_BYTES && align_of::<T>() <= 64) };
        // SAFETY: large and aligned enough, initialised, ours, and any bytes are a `T`.
        unsafe { &mut *self.0.cast::<T>() }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this very layout.
        unsafe { System.dealloc(self.0, LAYOUT) }
    }
}
