//! GGUF files: bytes to metadata and tensor table, and back; block formats.
//!
//! Takes a path (or bytes), gives a [`GgufFile`]: typed metadata, a checked tensor
//! table, and the mapped bytes of the tensors. Knows no architecture and no
//! metadata key but those of the container itself.
//!
//! - **Nothing is trusted.** Every count is held against the bytes that are left
//!   before anything is allocated; arithmetic is checked; no bytes make it panic.
//!   What is wrong, where, and what to do about it is a [`GgufError`].
//! - **Nothing is copied.** Tensor data, strings and arrays are views onto the
//!   mapped file. A vocabulary of 262,144 tokens is walked, not built.
//! - **Split models** open through their first part.
//! - **Formats that minfer cannot compute with** still open and can be inspected;
//!   [`TensorInfo::dtype`] is where they are refused.
//!
//! ```
//! use minfer_gguf::{Array, DType, GgufFile, GgufWriter, Metadata, decode_row};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut writer = GgufWriter::new();
//! writer.set("general.architecture", "llama");
//! writer.set("llama.block_count", 2u32);
//! writer.set("tokenizer.ggml.tokens", Array::from_strings(["<s>", "hello"]));
//! let values: Vec<f32> = (0..64).map(|i| i as f32 / 64.0).collect();
//! writer.tensor_f32("token_embd.weight", &[32, 2], DType::Q8_0, &values)?;
//!
//! let file = GgufFile::from_bytes(writer.to_bytes())?;
//! let metadata = file.metadata();
//! assert_eq!(metadata.require("llama.block_count", Metadata::u32)?, 2);
//! assert_eq!(metadata.f32("llama.rope.freq_base")?, None); // absent, not broken
//! let tokens = metadata.require("tokenizer.ggml.tokens", Metadata::strings)?;
//! assert_eq!(tokens.last(), Some(&b"hello"[..]));
//!
//! let tensor = file.tensor("token_embd.weight").ok_or("no embedding")?;
//! let dtype = tensor.dtype()?; // refuses formats minfer cannot compute with
//! let row_bytes = dtype.row_bytes(32).ok_or("rows of whole blocks")?;
//! let second_row = &file.tensor_bytes(tensor)[row_bytes..];
//! let mut row = [0.0; 32];
//! decode_row(dtype, second_row, &mut row)?;
//! assert!((row[0] - 0.5).abs() < 0.01);
//! # Ok(())
//! # }
//! ```

mod array;
pub mod block;
mod dtype;
mod error;
mod file;
mod kind;
mod mapped;
mod metadata;
mod parse;
mod reader;
mod sniff;
mod split;
mod tensor;
mod value;
mod writer;

pub use array::{Array, Scalars, Strings};
pub use block::{BlockError, decode_row, encode_row};
pub use dtype::{DType, TensorType};
pub use error::{DisplayOption, GgufError, Place};
pub use file::{GgufFile, Part};
pub use kind::FileKind;
pub use mapped::{MappedBytes, REGION_ALIGN_BYTES};
pub use metadata::{Entry, Metadata};
pub use split::part_name;
pub use tensor::TensorInfo;
pub use value::{Text, Value, ValueType};
pub use writer::GgufWriter;
