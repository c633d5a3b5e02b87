//! Element formats. Takes a type number from a file, gives block sizes and names.
//! Must not know how a block is decoded (see `block`) or where a tensor lies.

use std::fmt;

/// The element formats minfer computes with.
///
/// Quantised formats store `block_elems` values in `block_bytes` bytes; a row
/// must be a whole number of blocks. The names are those of the file format.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum DType {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of a single.
    BF16,
    /// Signed 32-bit integers (token ids, positions); never a weight.
    I32,
    /// 4 bits, one scale per 32.
    Q4_0,
    /// 4 bits, one scale and one minimum per 32.
    Q4_1,
    /// 5 bits, one scale per 32.
    Q5_0,
    /// 5 bits, one scale and one minimum per 32.
    Q5_1,
    /// 8 bits, one scale per 32.
    Q8_0,
    /// 2 bits, 4-bit scale and minimum per 16, in blocks of 256.
    Q2_K,
    /// 3 bits, signed 6-bit scale per 16, in blocks of 256.
    Q3_K,
    /// 4 bits, 6-bit scale and minimum per 32, in blocks of 256.
    Q4_K,
    /// 5 bits, 6-bit scale and minimum per 32, in blocks of 256.
    Q5_K,
    /// 6 bits, signed 8-bit scale per 16, in blocks of 256.
    Q6_K,
    /// 4-bit index into a fixed curve, one scale per 32.
    IQ4_NL,
    /// 4-bit index into a fixed curve, signed 6-bit scale per 32, in blocks of 256.
    IQ4_XS,
}

/// One row of the format table.
struct Layout {
    id: u32,
    name: &'static str,
    block_elems: usize,
    block_bytes: usize,
}

const fn layout(id: u32, name: &'static str, block_elems: usize, block_bytes: usize) -> Layout {
    Layout { id, name, block_elems, block_bytes }
}

/// Formats of the file format that minfer names and measures but cannot compute with.
const UNSUPPORTED: &[Layout] = &[
    layout(9, "Q8_1", 32, 36),
    layout(15, "Q8_K", 256, 292),
    layout(16, "IQ2_XXS", 256, 66),
    layout(17, "IQ2_XS", 256, 74),
    layout(18, "IQ3_XXS", 256, 98),
    layout(19, "IQ1_S", 256, 50),
    layout(21, "IQ3_S", 256, 110),
    layout(22, "IQ2_S", 256, 82),
    layout(24, "I8", 1, 1),
    layout(25, "I16", 1, 2),
    layout(27, "I64", 1, 8),
    layout(28, "F64", 1, 8),
    layout(29, "IQ1_M", 256, 56),
    layout(34, "TQ1_0", 256, 54),
    layout(35, "TQ2_0", 256, 66),
    layout(39, "MXFP4", 32, 17),
    layout(40, "NVFP4", 64, 36),
    layout(41, "Q1_0", 128, 18),
];

impl DType {
    /// Every format, in declaration order.
    pub const ALL: &[DType] = &[
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I32,
        DType::Q4_0,
        DType::Q4_1,
        DType::Q5_0,
        DType::Q5_1,
        DType::Q8_0,
        DType::Q2_K,
        DType::Q3_K,
        DType::Q4_K,
        DType::Q5_K,
        DType::Q6_K,
        DType::IQ4_NL,
        DType::IQ4_XS,
    ];

    /// The one home of ids, names and sizes.
    const fn layout(self) -> Layout {
        match self {
            DType::F32 => layout(0, "F32", 1, 4),
            DType::F16 => layout(1, "F16", 1, 2),
            DType::BF16 => layout(30, "BF16", 1, 2),
            DType::I32 => layout(26, "I32", 1, 4),
            DType::Q4_0 => layout(2, "Q4_0", 32, 18),
            DType::Q4_1 => layout(3, "Q4_1", 32, 20),
            DType::Q5_0 => layout(6, "Q5_0", 32, 22),
            DType::Q5_1 => layout(7, "Q5_1", 32, 24),
            DType::Q8_0 => layout(8, "Q8_0", 32, 34),
            DType::Q2_K => layout(10, "Q2_K", 256, 84),
            DType::Q3_K => layout(11, "Q3_K", 256, 110),
            DType::Q4_K => layout(12, "Q4_K", 256, 144),
            DType::Q5_K => layout(13, "Q5_K", 256, 176),
            DType::Q6_K => layout(14, "Q6_K", 256, 210),
            DType::IQ4_NL => layout(20, "IQ4_NL", 32, 18),
            DType::IQ4_XS => layout(23, "IQ4_XS", 256, 136),
        }
    }

    /// Values per block; 1 for plain formats.
    pub const fn block_elems(self) -> usize {
        self.layout().block_elems
    }

    /// Bytes per block.
    pub const fn block_bytes(self) -> usize {
        self.layout().block_bytes
    }

    /// Bytes of a row of `elems` values. `None` when `elems` is not a whole
    /// number of blocks, or when the size does not fit a `usize`.
    pub const fn row_bytes(self, elems: usize) -> Option<usize> {
        let layout = self.layout();
        if !elems.is_multiple_of(layout.block_elems) {
            return None;
        }
        (elems / layout.block_elems).checked_mul(layout.block_bytes)
    }

    /// The name used by the file format, such as `Q4_K`.
    pub const fn name(self) -> &'static str {
        self.layout().name
    }

    /// The format with this type number in a file.
    pub fn from_ggml_id(id: u32) -> Option<DType> {
        DType::ALL.iter().copied().find(|dtype| dtype.ggml_id() == id)
    }

    /// The format with this name (`Q4_K`; case does not matter).
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.iter().copied().find(|dtype| dtype.name().eq_ignore_ascii_case(name))
    }

    /// The type number in a file.
    pub const fn ggml_id(self) -> u32 {
        self.layout().id
    }

    /// Whether several values share a block.
    pub const fn is_quantized(self) -> bool {
        self.layout().block_elems > 1
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a tensor table says about a tensor's format. A file may hold formats
/// that minfer cannot compute with; it still opens and can be inspected.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TensorType {
    /// A format minfer computes with.
    Known(DType),
    /// Any other type number.
    Other(u32),
}

impl TensorType {
    /// From the type number in a file.
    pub fn from_ggml_id(id: u32) -> TensorType {
        DType::from_ggml_id(id).map_or(TensorType::Other(id), TensorType::Known)
    }

    /// The type number in a file.
    pub fn ggml_id(self) -> u32 {
        match self {
            TensorType::Known(dtype) => dtype.ggml_id(),
            TensorType::Other(id) => id,
        }
    }

    /// The format's name, where it is known at all.
    pub fn name(self) -> Option<&'static str> {
        match self {
            TensorType::Known(dtype) => Some(dtype.name()),
            TensorType::Other(id) => unsupported(id).map(|layout| layout.name),
        }
    }

    /// `(values per block, bytes per block)`, where known.
    pub fn block(self) -> Option<(usize, usize)> {
        match self {
            TensorType::Known(dtype) => Some((dtype.block_elems(), dtype.block_bytes())),
            TensorType::Other(id) => unsupported(id).map(|layout| (layout.block_elems, layout.block_bytes)),
        }
    }
}

fn unsupported(id: u32) -> Option<&'static Layout> {
    UNSUPPORTED.iter().find(|layout| layout.id == id)
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => f.pad(&format!("type {}", self.ggml_id())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_are_unique_and_invertible() {
        for &dtype in DType::ALL {
            assert_eq!(DType::from_ggml_id(dtype.ggml_id()), Some(dtype));
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
            assert!(unsupported(dtype.ggml_id()).is_none(), "{dtype} is in both tables");
        }
        assert_eq!(TensorType::from_ggml_id(16).to_string(), "IQ2_XXS");
        assert_eq!(TensorType::from_ggml_id(999).to_string(), "type 999");
    }

    #[test]
    fn rows_are_whole_blocks() {
        assert_eq!(DType::Q4_K.row_bytes(512), Some(288));
        assert_eq!(DType::Q4_K.row_bytes(896), None);
        assert_eq!(DType::Q5_0.row_bytes(896), Some(28 * 22));
        assert_eq!(DType::F32.row_bytes(usize::MAX), None);
        assert_eq!(DType::F32.row_bytes(0), Some(0));
    }
}
