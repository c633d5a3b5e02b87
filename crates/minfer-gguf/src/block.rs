//! The block formats: reference decode, a plain encoder, and the layouts as small
//! accessor structs that kernels may reuse. Takes and gives rows; must not know
//! tensors or files.
//!
//! The decoders are the definition of each format for the rest of minfer: exact
//! (every product and sum in single precision, in the order documented per
//! format), simple, and never panicking.

mod float;
mod iq4;
mod per32;
mod q2_k;
mod q3_k;
mod q4_k;
mod q5_k;
mod q6_k;

pub use iq4::{IQ4_CURVE, Iq4Nl, Iq4Xs};
pub use per32::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0};
pub use q2_k::Q2K;
pub use q3_k::Q3K;
pub use q4_k::{Q4K, scale_min};
pub use q5_k::Q5K;
pub use q6_k::Q6K;

use crate::dtype::DType;

/// Values per block of the K formats and IQ4_XS.
pub const SUPER: usize = 256;

/// What can be wrong with a row.
#[derive(thiserror::Error, Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum BlockError {
    /// The row is no whole number of blocks.
    #[error("a row of {elems} elements is no multiple of {block}, which {dtype} needs")]
    RowLength {
        /// The format.
        dtype: DType,
        /// Elements in the row.
        elems: usize,
        /// Elements per block.
        block: usize,
    },
    /// The bytes are not as many as the row needs.
    #[error("a {dtype} row of {elems} elements takes {expected} bytes, got {got}")]
    Size {
        /// The format.
        dtype: DType,
        /// Elements in the row.
        elems: usize,
        /// Bytes needed.
        expected: usize,
        /// Bytes given.
        got: usize,
    },
    /// The format holds integers, not values to compute with.
    #[error("{dtype} has no values to decode or encode")]
    NoValues {
        /// The format.
        dtype: DType,
    },
    /// NaN or infinity cannot be quantised.
    #[error("element {index} is not finite and cannot be stored as {dtype}")]
    NotFinite {
        /// The format.
        dtype: DType,
        /// The element.
        index: usize,
    },
    /// A block needs a scale beyond half precision.
    #[error("element {index} is too large for the half-precision scale of {dtype}")]
    TooLarge {
        /// The format.
        dtype: DType,
        /// The element.
        index: usize,
    },
}

/// Decodes a row into `out`, whose length is the row length. Exact for every
/// format; `I32` is an error.
pub fn decode_row(dtype: DType, bytes: &[u8], out: &mut [f32]) -> Result<(), BlockError> {
    let expected = row_bytes(dtype, out.len())?;
    if bytes.len() != expected {
        return Err(BlockError::Size { dtype, elems: out.len(), expected, got: bytes.len() });
    }
    match dtype {
        DType::F32 => float::decode_f32(bytes, out),
        DType::F16 => float::decode_f16(bytes, out),
        DType::BF16 => float::decode_bf16(bytes, out),
        DType::I32 => return Err(BlockError::NoValues { dtype }),
        DType::Q4_0 => blocks(bytes, out, |b, o| Q4_0(b).decode(o)),
        DType::Q4_1 => blocks(bytes, out, |b, o| Q4_1(b).decode(o)),
        DType::Q5_0 => blocks(bytes, out, |b, o| Q5_0(b).decode(o)),
        DType::Q5_1 => blocks(bytes, out, |b, o| Q5_1(b).decode(o)),
        DType::Q8_0 => blocks(bytes, out, |b, o| Q8_0(b).decode(o)),
        DType::Q2_K => blocks(bytes, out, |b, o| Q2K(b).decode(o)),
        DType::Q3_K => blocks(bytes, out, |b, o| Q3K(b).decode(o)),
        DType::Q4_K => blocks(bytes, out, |b, o| Q4K(b).decode(o)),
        DType::Q5_K => blocks(bytes, out, |b, o| Q5K(b).decode(o)),
        DType::Q6_K => blocks(bytes, out, |b, o| Q6K(b).decode(o)),
        DType::IQ4_NL => blocks(bytes, out, |b, o| Iq4Nl(b).decode(o)),
        DType::IQ4_XS => blocks(bytes, out, |b, o| Iq4Xs(b).decode(o)),
    }
    Ok(())
}

/// Appends the row in the format, each value rounded to the nearest the block's
/// scales allow. Simple rather than clever: no search over scales.
///
/// Plain formats take any value; quantised ones refuse NaN, infinities, and values
/// beyond the reach of a half-precision scale. On an error `out` is unchanged.
pub fn encode_row(dtype: DType, values: &[f32], out: &mut Vec<u8>) -> Result<(), BlockError> {
    let bytes = row_bytes(dtype, values.len())?;
    if dtype == DType::I32 {
        return Err(BlockError::NoValues { dtype });
    }
    if dtype.is_quantized() {
        check_range(dtype, values)?;
    }
    out.reserve(bytes);
    match dtype {
        DType::F32 => values.iter().for_each(|v| out.extend(v.to_le_bytes())),
        DType::F16 => values.iter().for_each(|v| out.extend(half::f16::from_f32(*v).to_le_bytes())),
        DType::BF16 => values.iter().for_each(|v| out.extend(half::bf16::from_f32(*v).to_le_bytes())),
        DType::I32 => {}
        DType::Q4_0 => encode(values, out, Q4_0::encode),
        DType::Q4_1 => encode(values, out, Q4_1::encode),
        DType::Q5_0 => encode(values, out, Q5_0::encode),
        DType::Q5_1 => encode(values, out, Q5_1::encode),
        DType::Q8_0 => encode(values, out, Q8_0::encode),
        DType::Q2_K => encode(values, out, Q2K::encode),
        DType::Q3_K => encode(values, out, Q3K::encode),
        DType::Q4_K => encode(values, out, Q4K::encode),
        DType::Q5_K => encode(values, out, Q5K::encode),
        DType::Q6_K => encode(values, out, Q6K::encode),
        DType::IQ4_NL => encode(values, out, Iq4Nl::encode),
        DType::IQ4_XS => encode(values, out, Iq4Xs::encode),
    }
    Ok(())
}

fn row_bytes(dtype: DType, elems: usize) -> Result<usize, BlockError> {
    dtype.row_bytes(elems).ok_or(BlockError::RowLength { dtype, elems, block: dtype.block_elems() })
}

/// Quantised blocks keep their scale (at most the largest magnitude) and minimum in
/// half precision.
fn check_range(dtype: DType, values: &[f32]) -> Result<(), BlockError> {
    let largest = half::f16::MAX.to_f32();
    for (index, value) in values.iter().enumerate() {
        if !value.is_finite() {
            return Err(BlockError::NotFinite { dtype, index });
        }
        if value.abs() > largest {
            return Err(BlockError::TooLarge { dtype, index });
        }
    }
    Ok(())
}

/// Decodes block by block; the lengths were checked to match.
fn blocks<const BYTES: usize, const ELEMS: usize>(
    bytes: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; BYTES], &mut [f32; ELEMS]),
) {
    for (block, out) in bytes.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        decode(block, out);
    }
}

/// Encodes block by block; the length was checked to match.
fn encode<const BYTES: usize, const ELEMS: usize>(
    values: &[f32],
    out: &mut Vec<u8>,
    encode: impl Fn(&[f32; ELEMS]) -> [u8; BYTES],
) {
    for values in values.as_chunks().0 {
        out.extend_from_slice(&encode(values));
    }
}

/// The half-precision number at two bytes.
fn f16(low: u8, high: u8) -> f32 {
    half::f16::from_le_bytes([low, high]).to_f32()
}

/// The nearest half-precision number: its bytes, and its value.
fn to_f16(value: f32) -> ([u8; 2], f32) {
    let half = half::f16::from_f32(value);
    (half.to_le_bytes(), half.to_f32())
}

/// `1 / d`, or 0 for a zero scale, so that every level becomes the zero level.
fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// Rounds to the nearest integer and clamps; casts of floats saturate.
fn level(value: f32, least: i32, most: i32) -> i32 {
    (value.round() as i32).clamp(least, most)
}

/// The value of the largest magnitude, with its sign; 0 for none.
fn extreme(values: &[f32]) -> f32 {
    values.iter().fold(0.0f32, |found, value| if value.abs() > found.abs() { *value } else { found })
}

/// Smallest and largest value.
fn min_max(values: &[f32]) -> (f32, f32) {
    values.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(lo, hi), v| (lo.min(*v), hi.max(*v)))
}
