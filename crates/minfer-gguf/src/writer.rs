//! Tables and data to the bytes of a file, or of a split set. The counterpart of
//! `parse`; used by tests, generators and converters. Must not know any key but
//! those of the container itself.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::block::encode_row;
use crate::dtype::{DType, TensorType};
use crate::error::GgufError;
use crate::metadata::Entry;
use crate::parse::{DEFAULT_ALIGNMENT, MAGIC, is_alignment};
use crate::split::{KEY_COUNT, KEY_NO, KEY_TENSORS, part_name};
use crate::tensor::measure;
use crate::value::{Value, encode_string};

/// Collects metadata and tensors, then writes a file.
#[derive(Clone, Debug)]
pub struct GgufWriter {
    version: u32,
    alignment: u64,
    metadata: Vec<Entry>,
    tensors: Vec<Tensor>,
}

#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    dims: Vec<u64>,
    type_id: u32,
    bytes: Vec<u8>,
}

impl Default for GgufWriter {
    fn default() -> Self {
        GgufWriter::new()
    }
}

impl GgufWriter {
    /// Version 3, alignment 32, nothing in it.
    pub fn new() -> GgufWriter {
        GgufWriter { version: 3, alignment: DEFAULT_ALIGNMENT, metadata: Vec::new(), tensors: Vec::new() }
    }

    /// The version to write: 2 or 3. Others are written as asked, for tests.
    pub fn version(&mut self, version: u32) -> &mut Self {
        self.version = version;
        self
    }

    /// The alignment of tensor data in bytes; recorded as `general.alignment`.
    /// A value that readers refuse is recorded, but laid out as 32, for tests.
    pub fn alignment(&mut self, alignment: u32) -> &mut Self {
        self.set("general.alignment", alignment);
        let wanted = u64::from(alignment);
        self.alignment = if is_alignment(wanted) { wanted } else { DEFAULT_ALIGNMENT };
        self
    }

    /// Sets a metadata key, replacing an earlier value.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<Value>) -> &mut Self {
        let (key, value) = (key.into(), value.into());
        match self.metadata.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => entry.value = value,
            None => self.metadata.push(Entry { key, value }),
        }
        self
    }

    /// Adds a tensor from data in the file layout; `dims` innermost first.
    /// The size is checked.
    pub fn tensor(
        &mut self,
        name: impl Into<String>,
        dims: &[u64],
        dtype: DType,
        bytes: Vec<u8>,
    ) -> Result<&mut Self, GgufError> {
        let name = name.into();
        let expected = measure(&name, dims, TensorType::Known(dtype))?;
        let got = bytes.len() as u64;
        if got != expected {
            return Err(GgufError::DataSize { tensor: name, expected, got });
        }
        Ok(self.tensor_unchecked(name, dims, dtype.ggml_id(), bytes))
    }

    /// Adds a tensor from values, encoded row by row; `dims` innermost first.
    pub fn tensor_f32(
        &mut self,
        name: impl Into<String>,
        dims: &[u64],
        dtype: DType,
        values: &[f32],
    ) -> Result<&mut Self, GgufError> {
        let name = name.into();
        measure(&name, dims, TensorType::Known(dtype))?;
        let expected = dims.iter().product::<u64>().saturating_mul(4);
        let got = values.len() as u64 * 4;
        if got != expected {
            return Err(GgufError::DataSize { tensor: name, expected, got });
        }
        let mut bytes = Vec::new();
        encode_row(dtype, values, &mut bytes).map_err(|problem| GgufError::Encode { tensor: name.clone(), problem })?;
        self.tensor(name, dims, dtype, bytes)
    }

    /// Adds a tensor as it is, whatever its type number and size; for tests of
    /// readers.
    pub fn tensor_unchecked(
        &mut self,
        name: impl Into<String>,
        dims: &[u64],
        type_id: u32,
        bytes: Vec<u8>,
    ) -> &mut Self {
        self.tensors.push(Tensor { name: name.into(), dims: dims.to_vec(), type_id, bytes });
        self
    }

    /// The file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.head(&self.metadata, &self.tensors, &mut out);
        for tensor in &self.tensors {
            out.extend_from_slice(&tensor.bytes);
            pad(&mut out, self.alignment);
        }
        out
    }

    /// Writes the file without a second copy of the tensor data.
    pub fn write_to(&self, mut out: impl Write) -> io::Result<()> {
        self.write_part(&self.metadata, &self.tensors, &mut out)?;
        out.flush()
    }

    /// Writes the file to a path.
    pub fn write_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.write_to(io::BufWriter::new(std::fs::File::create(path)?))
    }

    /// The files of a set of `count` parts, tensors dealt out in order.
    pub fn to_parts(&self, count: u16) -> Vec<Vec<u8>> {
        let per_part = self.tensors.len().div_ceil(usize::from(count.max(1))).max(1);
        let mut groups = self.tensors.chunks(per_part);
        (0..count)
            .map(|no| {
                let mut out = Vec::new();
                // Writing to memory cannot fail.
                let _ = self.write_part(&self.part_metadata(no, count), groups.next().unwrap_or_default(), &mut out);
                out
            })
            .collect()
    }

    /// Writes a set of `count` files `stem-00001-of-0000N.gguf` to a directory.
    pub fn write_parts(&self, dir: impl AsRef<Path>, stem: &str, count: u16) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for (index, bytes) in self.to_parts(count).into_iter().enumerate() {
            let path = dir.as_ref().join(part_name(stem, index as u64 + 1, count.into()));
            std::fs::write(&path, bytes)?;
            paths.push(path);
        }
        Ok(paths)
    }

    /// Everything in the first part; the others carry only what the container needs.
    fn part_metadata(&self, no: u16, count: u16) -> Vec<Entry> {
        let container = |entry: &&Entry| no == 0 || entry.key == "general.alignment";
        let mut metadata: Vec<Entry> = self.metadata.iter().filter(container).cloned().collect();
        let mut add = |key: &str, value: Value| metadata.push(Entry { key: key.to_owned(), value });
        add(KEY_NO, no.into());
        add(KEY_COUNT, count.into());
        add(KEY_TENSORS, i32::try_from(self.tensors.len()).unwrap_or(i32::MAX).into());
        metadata
    }

    fn write_part(&self, metadata: &[Entry], tensors: &[Tensor], out: &mut impl Write) -> io::Result<()> {
        let mut head = Vec::new();
        self.head(metadata, tensors, &mut head);
        out.write_all(&head)?;
        for tensor in tensors {
            out.write_all(&tensor.bytes)?;
            let padding = padded(tensor.bytes.len() as u64, self.alignment) - tensor.bytes.len() as u64;
            io::copy(&mut io::Read::take(io::repeat(0), padding), out)?;
        }
        Ok(())
    }

    /// Header, metadata and tensor table, padded to where the data start.
    fn head(&self, metadata: &[Entry], tensors: &[Tensor], out: &mut Vec<u8>) {
        out.extend(MAGIC);
        out.extend(self.version.to_le_bytes());
        out.extend((tensors.len() as u64).to_le_bytes());
        out.extend((metadata.len() as u64).to_le_bytes());
        for entry in metadata {
            encode_string(entry.key.as_bytes(), out);
            out.extend(entry.value.value_type().id().to_le_bytes());
            entry.value.encode(out);
        }
        let mut offset = 0u64;
        for tensor in tensors {
            encode_string(tensor.name.as_bytes(), out);
            out.extend((tensor.dims.len() as u32).to_le_bytes());
            for dim in &tensor.dims {
                out.extend(dim.to_le_bytes());
            }
            out.extend(tensor.type_id.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset += padded(tensor.bytes.len() as u64, self.alignment);
        }
        pad(out, self.alignment);
    }
}

fn padded(len: u64, alignment: u64) -> u64 {
    len.next_multiple_of(alignment)
}

fn pad(out: &mut Vec<u8>, alignment: u64) {
    let len = padded(out.len() as u64, alignment);
    out.resize(usize::try_from(len).unwrap_or(out.len()), 0);
}
