//! Vectors at the end of a row. Takes pointers and lengths; gives whole vectors, padded with zeros.

use crate::simd::Simd;

/// Most lanes on any level.
const MOST: usize = 16;

/// Reads `n <= LANES` floats; the other lanes are 0.
///
/// # Safety
/// `n` floats are readable.
#[inline(always)]
pub(crate) unsafe fn load_part<S: Simd>(s: S, from: *const f32, n: usize) -> S::F {
    // SAFETY: as promised by the caller; the buffer has room for any vector.
    unsafe {
        if n >= S::LANES {
            return s.load(from);
        }
        let mut buffer = [0.0f32; MOST];
        for (i, to) in buffer.iter_mut().enumerate().take(n) {
            *to = from.add(i).read_unaligned();
        }
        s.load(buffer.as_ptr())
    }
}

/// Writes the first `n <= LANES` lanes.
///
/// # Safety
/// `n` floats are writable.
#[inline(always)]
pub(crate) unsafe fn store_part<S: Simd>(s: S, to: *mut f32, n: usize, v: S::F) {
    // SAFETY: as promised by the caller; the buffer has room for any vector.
    unsafe {
        if n >= S::LANES {
            return s.store(to, v);
        }
        let mut buffer = [0.0f32; MOST];
        s.store(buffer.as_mut_ptr(), v);
        for (i, from) in buffer.iter().enumerate().take(n) {
            to.add(i).write_unaligned(*from);
        }
    }
}
