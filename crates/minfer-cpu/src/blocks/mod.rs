//! The weight formats as kernels see them. Takes blocks in file layout; gives [`Chunk`]s of small integers with scales;
//! must not know products.
//!
//! Whatever the format, an element is `d · u + m` with an integer `u`, where `d` (and `m`, if any) belong to a group of
//! 16 or 32 neighbours. One function per format says so; everything else is shared.

mod iq4;
mod k_scales;
mod per32;
mod q2_k;
mod q3_k;
mod q4_k;
mod q5_k;
mod q6_k;

use crate::simd::Simd;
use minfer_graph::DType;

/// Elements of a [`Chunk`].
pub(crate) const CHUNK: usize = 256;

/// 256 elements of one row of weights.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Chunk {
    /// The integers, in element order.
    pub q: [u8; CHUNK],
    /// Scale of each group.
    pub d: [f32; 16],
    /// Addend of each group, if the format has such.
    pub m: [f32; 16],
}

impl Chunk {
    /// All elements zero.
    pub const ZERO: Chunk = Chunk { q: [0; CHUNK], d: [0.0; 16], m: [0.0; 16] };
}

/// A quantised weight format.
pub(crate) trait Format: 'static {
    /// Elements of a block: 32 or 256.
    const BLOCK: usize;
    /// Bytes of a block.
    const BYTES: usize;
    /// Elements that share a scale: 16 or 32.
    const GROUP: usize;
    /// Whether groups have an addend `m`.
    const HAS_MIN: bool;
    /// Whether the integers need all 8 bits: then `q` holds them signed, plus [`Simd::WIDE_BIAS`]. Else `q` is at most
    /// 127 and unsigned.
    const WIDE: bool;
    /// What is subtracted from the unsigned `q` of formats that are not wide.
    const OFFSET: i16;

    /// What is subtracted from `q` to get the integer that `d` scales.
    fn offset<S: Simd>() -> i16 {
        if Self::WIDE { i16::from(S::WIDE_BIAS) } else { Self::OFFSET }
    }

    /// Unpacks `n_blocks` blocks (at most 256 elements) into the first groups of `out`.
    ///
    /// # Safety
    /// The bytes of the blocks are readable.
    unsafe fn unpack<S: Simd>(s: S, blocks: *const u8, n_blocks: usize, out: &mut Chunk);
}

/// Unpacks `n_cols` elements, whole blocks and at most 256, with their number known to the compiler where there are 256.
///
/// # Safety
/// The bytes of the blocks are readable.
#[inline(always)]
pub(crate) unsafe fn unpack_columns<S: Simd, F: Format>(s: S, blocks: *const u8, n_cols: usize, out: &mut Chunk) {
    // SAFETY: as promised by the caller.
    unsafe {
        match n_cols / F::BLOCK {
            n if n == CHUNK / F::BLOCK => F::unpack(s, blocks, CHUNK / F::BLOCK, out),
            n => F::unpack(s, blocks, n, out),
        }
    }
}

/// Something to do with a format known only at run time.
pub(crate) trait FormatVisitor {
    /// What comes out.
    type Out;

    /// Does it.
    fn visit<F: Format>(self) -> Self::Out;
}

/// Calls the visitor with the format; `None` where the type is no quantised one.
#[inline(always)]
pub(crate) fn with_format<V: FormatVisitor>(dtype: DType, visitor: V) -> Option<V::Out> {
    Some(match dtype {
        DType::F32 | DType::F16 | DType::BF16 | DType::I32 => return None,
        DType::Q4_0 => visitor.visit::<per32::Q4_0>(),
        DType::Q4_1 => visitor.visit::<per32::Q4_1>(),
        DType::Q5_0 => visitor.visit::<per32::Q5_0>(),
        DType::Q5_1 => visitor.visit::<per32::Q5_1>(),
        DType::Q8_0 => visitor.visit::<per32::Q8_0>(),
        DType::Q2_K => visitor.visit::<q2_k::Q2K>(),
        DType::Q3_K => visitor.visit::<q3_k::Q3K>(),
        DType::Q4_K => visitor.visit::<q4_k::Q4K>(),
        DType::Q5_K => visitor.visit::<q5_k::Q5K>(),
        DType::Q6_K => visitor.visit::<q6_k::Q6K>(),
        DType::IQ4_NL => visitor.visit::<iq4::Iq4Nl>(),
        DType::IQ4_XS => visitor.visit::<iq4::Iq4Xs>(),
    })
}

/// Reads two bytes.
///
/// # Safety
/// They are readable.
#[inline(always)]
unsafe fn u16_at(at: *const u8) -> u16 {
    // SAFETY: as promised by the caller.
    u16::from_le(unsafe { at.cast::<u16>().read_unaligned() })
}
