//! An open model: one file or a split set. Takes a path or bytes, gives metadata,
//! tensor table and mapped bytes. Must not know any architecture.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::GgufError;
use crate::mapped::MappedBytes;
use crate::metadata::{Metadata, find_sorted, sorted_unique};
use crate::parse::parse;
use crate::split;
use crate::tensor::TensorInfo;

/// An open model file, or the set of files of a split model.
///
/// Tensor data stay in the mapped file; only the tables are built in memory.
#[derive(Debug)]
pub struct GgufFile {
    version: u32,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    /// Indices into `tensors`, sorted by name.
    by_name: Vec<u32>,
    parts: Vec<Part>,
}

/// One file of a model.
#[derive(Clone, Debug)]
pub struct Part {
    path: Option<PathBuf>,
    bytes: Arc<MappedBytes>,
}

impl Part {
    /// Where the file lies; `None` for bytes from memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The whole file. A backend may keep this as its weights region.
    pub fn bytes(&self) -> Arc<MappedBytes> {
        Arc::clone(&self.bytes)
    }

    /// Size of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl GgufFile {
    /// Maps and checks a file. If it is the first part of a split model
    /// (`name-00001-of-0000N.gguf`), maps and checks all parts.
    ///
    /// Every error names the file it is about. Weights are not read: a fresh file
    /// opens in milliseconds whatever its size.
    ///
    /// The file must not be truncated while it is open. Reading mapped bytes past
    /// the new end ends the process (SIGBUS on Unix), as with any mapped file.
    /// Replace a model by renaming a new file over it, not by rewriting it.
    pub fn open(path: impl AsRef<Path>) -> Result<GgufFile, GgufError> {
        let path = path.as_ref();
        let named = |error: GgufError| error.in_file(path);
        let first = parse(Arc::new(MappedBytes::map(path).map_err(named)?), 0).map_err(named)?;
        let count = split::check_first(&first.metadata, Some(path)).map_err(named)?;
        let mut paths = vec![path.to_path_buf()];
        if count > 1 {
            paths = split::part_paths(path, count).map_err(named)?;
        }
        let mut parts = vec![first];
        for (index, path) in paths.iter().enumerate().skip(1) {
            let named = |error: GgufError| error.in_file(path);
            let bytes = MappedBytes::map(path).map_err(|error| match error {
                GgufError::Missing => GgufError::MissingPart { part: index as u64 + 1, count }.in_file(path),
                other => other.in_file(path),
            })?;
            let parsed = parse(Arc::new(bytes), index).map_err(named)?;
            split::check_part(&parsed.metadata, index as u64, count).map_err(named)?;
            parts.push(parsed);
        }
        GgufFile::assemble(parts, paths.into_iter().map(Some).collect()).map_err(named)
    }

    /// The same checks on bytes in memory. A split model needs `from_parts`.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<GgufFile, GgufError> {
        GgufFile::from_parts(vec![bytes])
    }

    /// The same checks on the parts of a split model in memory, first part first.
    pub fn from_parts(parts: Vec<Vec<u8>>) -> Result<GgufFile, GgufError> {
        let mut parsed = Vec::new();
        let mut count = 1;
        let given = parts.len() as u64;
        for (index, bytes) in parts.into_iter().enumerate() {
            let one = parse(Arc::new(MappedBytes::from_vec(bytes)), index)?;
            if index == 0 {
                count = split::check_first(&one.metadata, None)?;
                if count > given {
                    return Err(GgufError::MissingPart { part: given + 1, count });
                }
                if count < given {
                    return Err(split::too_many(count, given));
                }
            } else {
                split::check_part(&one.metadata, index as u64, count)?;
            }
            parsed.push(one);
        }
        let paths = vec![None; parsed.len()];
        GgufFile::assemble(parsed, paths)
    }

    fn assemble(parsed: Vec<crate::parse::Parsed>, paths: Vec<Option<PathBuf>>) -> Result<GgufFile, GgufError> {
        let mut parsed = parsed.into_iter().zip(paths);
        let (first, path) = parsed.next().ok_or(GgufError::Empty)?;
        let mut tensors = first.tensors;
        let mut parts = vec![Part { path, bytes: first.bytes }];
        for (part, path) in parsed {
            tensors.extend(part.tensors);
            parts.push(Part { path, bytes: part.bytes });
        }
        split::check_tensor_count(&first.metadata, tensors.len() as u64)?;
        let by_name = sorted_unique(&tensors, |info| &info.name)
            .map_err(|info| GgufError::DuplicateTensor { tensor: info.name.clone() })?;
        Ok(GgufFile { version: first.version, metadata: first.metadata, tensors, by_name, parts })
    }

    /// The version of the (first) file: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The metadata of the (first) file.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// All tensors, in file order, part after part.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        find_sorted(&self.tensors, &self.by_name, name, |info| &info.name)
    }

    /// The data of one of this file's tensors. Empty if the format's size is
    /// unknown (`n_bytes` is 0), or if the entry is of another file and does not
    /// fit this one.
    pub fn tensor_bytes(&self, tensor: &TensorInfo) -> &[u8] {
        let range = || {
            let part = self.parts.get(tensor.part)?;
            let start = usize::try_from(tensor.offset).ok()?;
            let end = start.checked_add(usize::try_from(tensor.n_bytes).ok()?)?;
            part.bytes.get(start..end)
        };
        range().unwrap_or_default()
    }

    /// The files, first part first.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Size of all files in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.parts.iter().map(Part::file_bytes).sum()
    }
}
