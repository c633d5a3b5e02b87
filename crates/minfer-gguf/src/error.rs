//! What can be wrong with a file. Fields carry where, what was expected and what
//! was found; the sentence says what to do. Knows no file layout.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::dtype::TensorType;

/// The part of a file an error is about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Place {
    /// The fixed fields at the start.
    Header,
    /// The key of the metadata entry with this index.
    Key(u64),
    /// The value of this metadata key.
    Value(String),
    /// The tensor table entry with this index.
    TensorInfo(u64),
    /// The data of this tensor.
    Tensor(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Header => f.write_str("the header"),
            Place::Key(index) => write!(f, "the key of metadata entry {index}"),
            Place::Value(key) => write!(f, "the value of `{}`", key.escape_debug()),
            Place::TensorInfo(index) => write!(f, "entry {index} of the tensor table"),
            Place::Tensor(name) => write!(f, "tensor `{}`", name.escape_debug()),
        }
    }
}

/// Everything that can go wrong between a path and a usable tensor table.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum GgufError {
    /// A problem, and the file it was found in.
    #[error("{}: {problem}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it; never itself an `InFile`.
        problem: Box<GgufError>,
    },
    /// No file at the path.
    #[error("there is no such file; check the path")]
    Missing,
    /// The path is a directory.
    #[error("this is a directory; give the path of a .gguf file inside it")]
    Directory,
    /// The path is a pipe, a socket or a device.
    #[error("this is not a regular file and cannot be mapped; copy it to a file first")]
    NotRegular,
    /// The operating system refused.
    #[error("cannot {action}: {source}")]
    Io {
        /// `open`, `map`, ...
        action: &'static str,
        /// Its reason.
        source: io::Error,
    },
    /// The header goes on behind what is mapped, and so much of the file cannot be.
    #[error(
        "{place} needs the first {needs} bytes of the file, which cannot be mapped ({source}); the header is damaged, or \
         the limit on addresses (`ulimit -v`) is too small for it"
    )]
    HeaderTooLong {
        /// What runs past the mapped bytes.
        place: Place,
        /// Bytes from the start of the file that it needs.
        needs: u64,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The header is no longer the one that was read.
    #[error("the file was changed while it was being opened; try again")]
    Changed,
    /// No bytes at all.
    #[error("the file is empty; download it again")]
    Empty,
    /// The first four bytes are not the magic.
    #[error("not a GGUF file: it must start with `GGUF` but starts with `{}`; {guess}", found.escape_ascii())]
    NotGguf {
        /// The first bytes, at most four.
        found: Vec<u8>,
        /// What it looks like, and what to do.
        guess: &'static str,
    },
    /// Written on a big-endian machine.
    #[error("the file is big endian (version {version}); get or convert to a little-endian file")]
    BigEndian {
        /// The version after swapping its bytes.
        version: u32,
    },
    /// A version other than 2 and 3.
    #[error("GGUF version {version} is not supported (2 and 3 are); convert the model again")]
    UnsupportedVersion {
        /// The version found.
        version: u32,
    },
    /// Bytes are missing at the end.
    #[error("truncated: the file has {has} bytes, {place} needs {needs}; download it again")]
    Truncated {
        /// What runs past the end.
        place: Place,
        /// File size in bytes.
        has: u64,
        /// File size in bytes that `place` needs, saturated.
        needs: u64,
    },
    /// A count that the rest of the file cannot hold.
    #[error(
        "truncated or damaged: {place} declares {count} items, the {remaining} bytes left hold at most {most}; \
         download it again"
    )]
    Count {
        /// Who declares.
        place: Place,
        /// Declared items.
        count: u64,
        /// The most items the rest of the file can hold.
        most: u64,
        /// Bytes left behind the count.
        remaining: u64,
    },
    /// More of something than any real file has.
    #[error("damaged: the header declares {count} {what}, at most {limit} are accepted")]
    TooMany {
        /// `tensors` or `metadata entries`.
        what: &'static str,
        /// Declared.
        count: u64,
        /// Accepted.
        limit: u64,
    },
    /// A key or name longer than the format allows.
    #[error("damaged: {place} is {got} bytes long, at most {limit} are allowed")]
    TooLong {
        /// The string.
        place: Place,
        /// Its length in bytes.
        got: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A key or tensor name without characters.
    #[error("damaged: {place} has an empty name")]
    EmptyName {
        /// Where.
        place: Place,
    },
    /// Text that must be UTF-8 and is not.
    #[error("damaged: {place} is not valid UTF-8")]
    NotUtf8 {
        /// Where.
        place: Place,
    },
    /// A key or tensor name with a control character.
    #[error("damaged: {place} contains a control character")]
    ControlInName {
        /// Where.
        place: Place,
    },
    /// Two metadata entries with one key.
    #[error("the metadata key `{key}` occurs twice; convert the model again")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// Two tensors with one name.
    #[error("the tensor name `{tensor}` occurs twice; convert the model again")]
    DuplicateTensor {
        /// The name.
        tensor: String,
    },
    /// A value type number nobody defined.
    #[error("damaged: {place} has the unknown value type {id} (0 to 12 are defined)")]
    UnknownValueType {
        /// Where.
        place: Place,
        /// The number found.
        id: u32,
    },
    /// Arrays inside arrays inside arrays.
    #[error("{place} nests arrays deeper than {limit} levels")]
    TooDeep {
        /// Where.
        place: Place,
        /// Levels allowed.
        limit: u32,
    },
    /// A bool that is neither 0 nor 1.
    #[error("damaged: {place} is a bool and must be 0 or 1 but is {got}")]
    BadBool {
        /// Where.
        place: Place,
        /// The byte found.
        got: u8,
    },
    /// A metadata key that must be there and is not.
    #[error("the metadata key `{key}` is missing; convert the model again")]
    MissingKey {
        /// The key.
        key: String,
    },
    /// A metadata value of another type than asked for.
    #[error("the metadata key `{key}` must be {expected} but is {got}; convert the model again")]
    WrongType {
        /// The key.
        key: String,
        /// The type asked for.
        expected: &'static str,
        /// The type or value found.
        got: String,
    },
    /// An alignment that is no power of two or out of bounds.
    #[error("`general.alignment` must be a power of two from {least} to {most} but is {got}")]
    Alignment {
        /// The value found.
        got: u64,
        /// Smallest accepted value.
        least: u64,
        /// Largest accepted value.
        most: u64,
    },
    /// Too many dimensions, or none.
    #[error("tensor `{tensor}` has {got} dimensions, 1 to {most} are allowed")]
    DimCount {
        /// The tensor.
        tensor: String,
        /// Dimensions found.
        got: u32,
        /// The most allowed.
        most: u32,
    },
    /// A dimension of size zero.
    #[error("tensor `{tensor}` has no elements: its dimensions are {dims:?}; convert the model again")]
    ZeroDim {
        /// The tensor.
        tensor: String,
        /// Its dimensions, innermost first.
        dims: Vec<u64>,
    },
    /// The product of the dimensions does not fit 64 bits.
    #[error("tensor `{tensor}` of dimensions {dims:?} is larger than any file")]
    TooLarge {
        /// The tensor.
        tensor: String,
        /// Its dimensions, innermost first.
        dims: Vec<u64>,
    },
    /// A row that is not a whole number of blocks.
    #[error(
        "tensor `{tensor}` has rows of {row} elements, {ty} needs a multiple of {block}; quantise it to another type"
    )]
    RowLength {
        /// The tensor.
        tensor: String,
        /// Elements per row.
        row: u64,
        /// Its format.
        ty: TensorType,
        /// Elements per block of that format.
        block: u64,
    },
    /// Tensor data of another size than its dimensions say (writer only).
    #[error("tensor `{tensor}` needs {expected} bytes, got {got}")]
    DataSize {
        /// The tensor.
        tensor: String,
        /// Bytes its dimensions and format need.
        expected: u64,
        /// Bytes given.
        got: u64,
    },
    /// Values that a format cannot hold (writer only).
    #[error("tensor `{tensor}`: {problem}")]
    Encode {
        /// The tensor.
        tensor: String,
        /// Why.
        problem: crate::block::BlockError,
    },
    /// An offset that is not a multiple of the alignment.
    #[error("damaged: tensor `{tensor}` starts at offset {offset}, which is not a multiple of {alignment}")]
    Misaligned {
        /// The tensor.
        tensor: String,
        /// Its offset within the data section, in bytes.
        offset: u64,
        /// The file's alignment in bytes.
        alignment: u64,
    },
    /// Two tensors that share bytes.
    #[error("damaged: the data of tensors `{first}` and `{second}` overlap")]
    Overlap {
        /// The one that starts first.
        first: String,
        /// The one that starts inside it.
        second: String,
    },
    /// A tensor in a format minfer cannot compute with.
    #[error(
        "tensor `{tensor}` has type {ty} (number {id}), which minfer cannot compute with; use another quantisation"
    )]
    UnsupportedTensorType {
        /// The tensor.
        tensor: String,
        /// The type number in the file.
        id: u32,
        /// The type, named where the name is known.
        ty: TensorType,
    },
    /// A GGUF file that is no language model.
    #[error("this file holds {kind}, not a whole model; {advice}")]
    NotAModel {
        /// What it holds.
        kind: crate::kind::FileKind,
        /// What to do.
        advice: &'static str,
    },
    /// Opened in the middle of a set.
    #[error("this is part {part} of {count} of a split model; open part 1 instead: {}", first.display())]
    NotFirstPart {
        /// This part, counted from 1.
        part: u64,
        /// Parts in the set.
        count: u64,
        /// The first part's file name.
        first: PathBuf,
    },
    /// A first part whose name does not tell the names of the others.
    #[error("this is part 1 of a model split in {count}; name the parts like {} so that they can be found", expected.display())]
    SplitName {
        /// Parts in the set.
        count: u64,
        /// What the name should look like.
        expected: PathBuf,
    },
    /// A part that is not there.
    #[error("part {part} of {count} is missing; download it next to part 1")]
    MissingPart {
        /// The part, counted from 1.
        part: u64,
        /// Parts in the set.
        count: u64,
    },
    /// A part that belongs elsewhere.
    #[error("the parts do not belong together: `{key}` of part {part} must be {expected} but is {got}")]
    SplitMismatch {
        /// The metadata key that differs.
        key: &'static str,
        /// The part, counted from 1.
        part: u64,
        /// The value it must have.
        expected: u64,
        /// The value it has; absent if `None` was found.
        got: DisplayOption,
    },
}

/// A number that may be absent, for messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DisplayOption(pub Option<u64>);

impl fmt::Display for DisplayOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{value}"),
            None => f.write_str("absent"),
        }
    }
}

impl GgufError {
    /// The problem without the file it was found in.
    pub fn problem(&self) -> &GgufError {
        match self {
            GgufError::InFile { problem, .. } => problem.problem(),
            other => other,
        }
    }

    /// Names the file, unless a file is named already.
    pub(crate) fn in_file(self, path: &std::path::Path) -> GgufError {
        match self {
            GgufError::InFile { .. } => self,
            problem => GgufError::InFile { path: path.to_path_buf(), problem: Box::new(problem) },
        }
    }
}
