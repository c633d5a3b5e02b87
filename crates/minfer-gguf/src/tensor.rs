//! The tensor table: names, shapes, formats, places. Takes checked numbers; must
//! not know what a tensor is for.

use crate::dtype::{DType, TensorType};
use crate::error::GgufError;
use crate::parse::MAX_DIMS;

/// One row of the tensor table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorInfo {
    /// The name, unique within the model.
    pub name: String,
    /// Sizes, innermost first as in the file: `dims[0]` is the row length. One to
    /// four, none zero.
    pub dims: Vec<u64>,
    /// The format.
    pub ty: TensorType,
    /// Index into `GgufFile::parts`.
    pub part: usize,
    /// Bytes from the start of the part's file to the tensor's first byte.
    pub offset: u64,
    /// Bytes of data; 0 if the format is so unknown that its size is, too.
    pub n_bytes: u64,
}

impl TensorInfo {
    /// Elements per row.
    pub fn row_elems(&self) -> u64 {
        self.dims.first().copied().unwrap_or(0)
    }

    /// Rows over all outer dimensions.
    pub fn n_rows(&self) -> u64 {
        self.dims.iter().skip(1).fold(1, |rows, dim| rows.saturating_mul(*dim))
    }

    /// All elements.
    pub fn n_elems(&self) -> u64 {
        self.row_elems().saturating_mul(self.n_rows())
    }

    /// The format, if minfer can compute with it; otherwise the error that says so.
    pub fn dtype(&self) -> Result<DType, GgufError> {
        match self.ty {
            TensorType::Known(dtype) => Ok(dtype),
            ty @ TensorType::Other(id) => Err(GgufError::UnsupportedTensorType { tensor: self.name.clone(), id, ty }),
        }
    }
}

/// Bytes of a tensor; 0 for formats of unknown block size. Refuses no or too
/// many dimensions, empty ones, products past 64 bits, and rows that are no whole number of blocks.
pub(crate) fn measure(name: &str, dims: &[u64], ty: TensorType) -> Result<u64, GgufError> {
    let tensor = || name.to_owned();
    let n_dims = u32::try_from(dims.len()).unwrap_or(u32::MAX);
    if n_dims == 0 || n_dims > MAX_DIMS {
        return Err(GgufError::DimCount { tensor: tensor(), got: n_dims, most: MAX_DIMS });
    }
    if dims.contains(&0) {
        return Err(GgufError::ZeroDim { tensor: tensor(), dims: dims.to_vec() });
    }
    let too_large = || GgufError::TooLarge { tensor: tensor(), dims: dims.to_vec() };
    let elems = dims.iter().try_fold(1u64, |elems, dim| elems.checked_mul(*dim)).ok_or_else(too_large)?;
    let Some((block_elems, block_bytes)) = ty.block() else {
        return Ok(0);
    };
    let (block, block_bytes) = (block_elems as u64, block_bytes as u64);
    let row = dims.first().copied().unwrap_or(0);
    if !row.is_multiple_of(block) {
        return Err(GgufError::RowLength { tensor: tensor(), row, ty, block });
    }
    (elems / block).checked_mul(block_bytes).ok_or_else(too_large)
}

/// Refuses two tensors of one file that share a byte.
pub(crate) fn check_overlaps(tensors: &[TensorInfo]) -> Result<(), GgufError> {
    let mut by_offset: Vec<&TensorInfo> = tensors.iter().collect();
    by_offset.sort_by_key(|info| info.offset);
    for pair in by_offset.windows(2) {
        if let [first, second] = pair
            && first.offset.saturating_add(first.n_bytes.max(1)) > second.offset
        {
            return Err(GgufError::Overlap { first: first.name.clone(), second: second.name.clone() });
        }
    }
    Ok(())
}
