//! Floats to the quantised activations that products read. Takes rows of floats; gives rows of [`ValueType::Q8`] or
//! [`ValueType::Q8x2`]; must not know steps.

use crate::simd::Simd;
use minfer_graph::ValueType;

/// Elements of a block.
pub(crate) const Q8_BLOCK: usize = 32;

/// A matrix of quantised activations that is being written.
#[derive(Clone, Copy)]
pub(crate) struct Quantised {
    start: *mut u8,
    cols: usize,
    /// Whether each row has a second one for what the first leaves out.
    fine: bool,
}

impl Quantised {
    /// The matrix at `start`, if its type is a quantised one.
    pub(crate) fn new(start: *mut u8, cols: usize, ty: ValueType) -> Option<Self> {
        ty.is_quantised().then_some(Self { start, cols, fine: ty == ValueType::Q8x2 })
    }

    /// Quantises 32 floats as block `block` of row `row`.
    ///
    /// # Safety
    /// 32 floats are readable, the block lies within the matrix.
    #[inline(always)]
    pub(crate) unsafe fn write_block<S: Simd>(self, s: S, row: usize, block: usize, x: *const f32) {
        // SAFETY: as promised by the caller; a fine matrix has two rows of `Q8` per row.
        unsafe {
            let (d, inverse) = scale(s, x);
            if !self.fine {
                Q8Row::at(self.start, row, self.cols).write_block(s, block, x, d, inverse);
                return;
            }
            let first = Q8Row::at(self.start, 2 * row, self.cols);
            let levels = first.write_block(s, block, x, d, inverse);
            let mut rest = x.cast::<[f32; Q8_BLOCK]>().read_unaligned();
            for i in 0..Q8_BLOCK {
                rest[i] -= d * f32::from(levels[i]);
            }
            first.next(self.cols).write_block(s, block, rest.as_ptr(), d / 256.0, inverse * 256.0);
        }
    }
}

/// Scale of the levels of 32 floats, and its inverse: the greatest magnitude over 127. NaN where there is a NaN or an
/// infinity.
///
/// # Safety
/// 32 floats are readable.
#[inline(always)]
unsafe fn scale<S: Simd>(s: S, x: *const f32) -> (f32, f32) {
    let (mut greatest, mut not_finite) = (s.splat(0.0), s.splat(0.0));
    for i in 0..Q8_BLOCK / S::LANES {
        // SAFETY: 32 floats are readable.
        let v = unsafe { s.load(x.add(i * S::LANES)) };
        greatest = s.max(s.abs(v), greatest);
        not_finite = s.fma(v, s.splat(0.0), not_finite);
    }
    let greatest = s.max_lane(greatest);
    // Below, the inverse would overflow; nothing measurable is lost.
    let (d, inverse) = if greatest > 1e-30 { (greatest / 127.0, 127.0 / greatest) } else { (0.0, 0.0) };
    (d + s.sum(not_finite), inverse)
}

/// The three parts of a row of `Q8`.
#[derive(Clone, Copy)]
pub(crate) struct Q8Row {
    /// Levels, one per element.
    pub q: *mut i8,
    /// Scales, one per 32 elements.
    pub d: *mut f32,
    /// Sums of the levels of 16 elements.
    pub sums: *mut i16,
}

impl Q8Row {
    /// Bytes of a row.
    #[inline(always)]
    pub(crate) fn bytes(cols: usize) -> usize {
        cols + cols / 32 * 4 + cols / 16 * 2
    }

    /// Row `row` of a matrix that starts at `base`.
    ///
    /// # Safety
    /// The row lies within the matrix.
    #[inline(always)]
    pub(crate) unsafe fn at(base: *mut u8, row: usize, cols: usize) -> Q8Row {
        // SAFETY: as promised by the caller; the parts follow each other (see the layout of `Q8`).
        unsafe {
            let q = base.add(row * Self::bytes(cols));
            Q8Row { q: q.cast(), d: q.add(cols).cast(), sums: q.add(cols + cols / 32 * 4).cast() }
        }
    }

    /// The row from column `col` on, which starts a block.
    ///
    /// # Safety
    /// The column lies within the row.
    #[inline(always)]
    pub(crate) unsafe fn part(self, col: usize) -> Q8Row {
        // SAFETY: as promised by the caller.
        unsafe { Q8Row { q: self.q.add(col), d: self.d.add(col / 32), sums: self.sums.add(col / 16) } }
    }

    /// The same place in the row that follows; wherever there is none, not to be read.
    #[inline(always)]
    pub(crate) fn next(self, cols: usize) -> Q8Row {
        let bytes = Self::bytes(cols);
        Q8Row {
            q: self.q.wrapping_byte_add(bytes),
            d: self.d.wrapping_byte_add(bytes),
            sums: self.sums.wrapping_byte_add(bytes),
        }
    }

    /// Quantises 32 floats as block `block` of the row: levels are the nearest multiples of `d`, at most 127 of them, so
    /// that no element is off by more than `d / 2` if none is greater than `127 d`. Gives the levels.
    ///
    /// # Safety
    /// 32 floats are readable, the block lies within the row.
    #[inline(always)]
    unsafe fn write_block<S: Simd>(self, s: S, block: usize, x: *const f32, d: f32, inverse: f32) -> [i8; Q8_BLOCK] {
        let mut levels = [0i32; Q8_BLOCK];
        for i in 0..Q8_BLOCK / S::LANES {
            // SAFETY: 32 floats are readable, `levels` has room for 32.
            unsafe {
                let v = s.mul(s.load(x.add(i * S::LANES)), s.splat(inverse));
                let v = s.max(s.min(v, s.splat(127.0)), s.splat(-127.0));
                s.store_i(levels.as_mut_ptr().add(i * S::LANES), s.to_i(v));
            }
        }
        let mut bytes = [0i8; Q8_BLOCK];
        for i in 0..Q8_BLOCK {
            bytes[i] = levels[i] as i8;
        }
        let mut sums = [0i32; 2];
        for half in 0..2 {
            for i in 0..16 {
                sums[half] += i32::from(bytes[half * 16 + i]);
            }
        }
        // SAFETY: the block lies within the row.
        unsafe {
            self.q.add(block * Q8_BLOCK).cast::<[i8; Q8_BLOCK]>().write_unaligned(bytes);
            self.d.add(block).write_unaligned(d);
            self.sums.add(block * 2).write_unaligned(sums[0] as i16);
            self.sums.add(block * 2 + 1).write_unaligned(sums[1] as i16);
        }
        bytes
    }
}
