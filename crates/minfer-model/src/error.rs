//! What keeps a well-formed file from being a model minfer runs. Fields carry where, what was expected and what was
//! found; must not know how a file is read.

use crate::role::Slot;
use minfer_gguf::{DType, GgufError, TensorType};
use minfer_graph::GraphError;
use minfer_text::TextError;
use std::fmt;

/// Dimensions of a matrix; a vector has one row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape2 {
    /// Outer dimension.
    pub rows: u64,
    /// Row length.
    pub cols: u64,
}

impl fmt::Display for Shape2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}]", self.rows, self.cols)
    }
}

/// Everything that can go wrong between a file and a graph.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum ModelError {
    /// The file, or a key in it.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// A vocabulary that does not fit the tokenizer's tables.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The graph; a specification from [`load_spec`](crate::load_spec) with sensible parameters never gives one.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// An architecture that is not there.
    #[error("architecture `{}` is not supported; supported are {}", got.escape_debug(), supported.join(", "))]
    UnsupportedArchitecture {
        /// Name in the file.
        got: String,
        /// Names that are.
        supported: Vec<&'static str>,
    },
    /// A setting that would change the computation in a way that is not there.
    #[error("`{key}` is {got}, which minfer does not compute; it would answer nonsense")]
    UnsupportedSetting {
        /// The key.
        key: String,
        /// Its value.
        got: String,
    },
    /// A scaling of rope that is not there.
    #[error("`{key}` is `{}`, supported are {}", got.escape_debug(), supported.join(", "))]
    UnsupportedRopeScaling {
        /// The key.
        key: String,
        /// Its value.
        got: String,
        /// Values that are.
        supported: &'static [&'static str],
    },
    /// A value out of its range.
    #[error("`{key}` must be {expected} but is {got}; the file is damaged or was converted wrongly")]
    Value {
        /// The key.
        key: String,
        /// What it must be.
        expected: String,
        /// What it is.
        got: String,
    },
    /// An array with another number of items than what it belongs to.
    #[error("`{key}` must have {expected} items but has {got}; the file is damaged or was converted wrongly")]
    ArrayLength {
        /// The key.
        key: String,
        /// Items needed.
        expected: u64,
        /// Items there are.
        got: u64,
    },
    /// A tensor that must be there.
    #[error(
        "the {slot} is missing: there is no tensor `{tensor}`; the file is incomplete or of a variant that is not supported"
    )]
    MissingTensor {
        /// What it is for.
        slot: Slot,
        /// Its name.
        tensor: String,
    },
    /// A tensor that would be ignored.
    #[error("the tensor `{}` is no part of architecture {arch} as minfer computes it{}; it would answer nonsense", tensor.escape_debug(), and_more(*others))]
    UnknownTensor {
        /// The first such tensor.
        tensor: String,
        /// The architecture.
        arch: &'static str,
        /// How many more there are.
        others: usize,
    },
    /// A tensor of other dimensions.
    #[error("the {slot} (tensor `{tensor}`) must have the shape {expected} but is {got}")]
    TensorShape {
        /// What it is for.
        slot: Slot,
        /// Its name.
        tensor: String,
        /// Rows and columns it must have.
        expected: Shape2,
        /// Dimensions in the file, outermost first.
        got: String,
    },
    /// A tensor in a format that its role does not allow.
    #[error("the {slot} (tensor `{tensor}`) is stored as {got}; {expected}")]
    TensorFormat {
        /// What it is for.
        slot: Slot,
        /// Its name.
        tensor: String,
        /// What its role allows.
        expected: &'static str,
        /// Its format.
        got: TensorType,
    },
    /// A vocabulary and an embedding that do not belong together.
    #[error("the vocabulary has {n_tokens} tokens, the token embedding {n_rows} rows; they must be equal")]
    VocabularySize {
        /// Token texts in the file.
        n_tokens: u64,
        /// Rows of the embedding.
        n_rows: u64,
    },
    /// A tokenizer that is not there.
    #[error("the tokenizer `{}` (`{key}`) is not supported; supported are {}", got.escape_debug(), supported.join(", "))]
    UnsupportedTokenizer {
        /// The key.
        key: &'static str,
        /// Its value.
        got: String,
        /// Values that are.
        supported: Vec<&'static str>,
    },
    /// An array of the tokenizer with an item that makes no sense.
    #[error("item {index} of `{key}` must be {expected} but is {got}")]
    TokenizerItem {
        /// The key.
        key: &'static str,
        /// Which item.
        index: usize,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        got: String,
    },
}

fn and_more(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" (nor are {count} more)") }
}

/// Formats that a matrix may have: every one that has a decoder.
pub(crate) fn matrix_format(dtype: DType) -> bool {
    dtype != DType::I32
}
