//! An open model: one file or a split set. Takes a path or bytes, gives metadata,
//! tensor table and mapped bytes. Must not know any architecture.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::GgufError;
use crate::mapped::MappedBytes;
use crate::metadata::{Metadata, find_sorted, sorted_unique};
use crate::parse::{Parsed, parse};
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
    file_bytes: u64,
    header_hash: u64,
}

/// How much of a file is mapped first where only its header is wanted: more than all but the largest vocabularies need.
const HEADER_BYTES: u64 = 32 << 20;

impl Part {
    /// Where the file lies; `None` for bytes from memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The whole file, or its first bytes if only the header was opened. A backend may keep this as its weights region.
    pub fn bytes(&self) -> Arc<MappedBytes> {
        Arc::clone(&self.bytes)
    }

    /// Size of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    fn new(path: Option<PathBuf>, parsed: &Parsed) -> Part {
        let (bytes, file_bytes) = (Arc::clone(&parsed.bytes), parsed.file_bytes);
        // Now, and not when it is compared: a mapping shows what is written to its file later.
        let mut hasher = DefaultHasher::new();
        bytes.get(..parsed.header_bytes).unwrap_or_default().hash(&mut hasher);
        Part { path, bytes, file_bytes, header_hash: hasher.finish() }
    }

    /// Whether all of the file is here, and not only its header.
    pub fn is_whole(&self) -> bool {
        self.bytes.len() as u64 == self.file_bytes
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
        GgufFile::open_first(path.as_ref(), u64::MAX)
    }

    /// The same checks, but no more of the files is mapped than their headers need: a file larger than all address space
    /// opens too. Weights are not there ([`GgufFile::tensor_bytes`] may be empty) until [`GgufFile::map_whole`].
    pub fn open_header(path: impl AsRef<Path>) -> Result<GgufFile, GgufError> {
        GgufFile::open_first(path.as_ref(), HEADER_BYTES)
    }

    /// Maps all of the files, of which [`GgufFile::open_header`] mapped the headers. They must still be the same.
    pub fn map_whole(self) -> Result<GgufFile, GgufError> {
        let Some(path) = self.parts.first().and_then(Part::path).map(Path::to_path_buf) else { return Ok(self) };
        if self.parts.iter().all(Part::is_whole) {
            return Ok(self);
        }
        let headers = self.headers();
        // Where addresses are scarce, there may be none for both.
        drop(self);
        let whole = GgufFile::open(&path)?;
        if whole.headers() != headers {
            return Err(GgufError::Changed.in_file(&path));
        }
        Ok(whole)
    }

    /// Of each file its size and the hash of its header when it was read, to be compared within this process.
    fn headers(&self) -> Vec<(u64, u64)> {
        self.parts.iter().map(|part| (part.file_bytes, part.header_hash)).collect()
    }

    /// At first maps `first_bytes` of each file, and more where that is not enough.
    fn open_first(path: &Path, first_bytes: u64) -> Result<GgufFile, GgufError> {
        let named = |error: GgufError| error.in_file(path);
        let first = parse_file(path, first_bytes, 0).map_err(named)?;
        let count = split::check_first(&first.metadata, Some(path)).map_err(named)?;
        let mut paths = vec![path.to_path_buf()];
        if count > 1 {
            paths = split::part_paths(path, count).map_err(named)?;
        }
        let mut parts = vec![first];
        for (index, path) in paths.iter().enumerate().skip(1) {
            let named = |error: GgufError| error.in_file(path);
            let parsed = parse_file(path, first_bytes, index).map_err(|error| match error {
                GgufError::Missing => GgufError::MissingPart { part: index as u64 + 1, count }.in_file(path),
                other => other.in_file(path),
            })?;
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
            let file_bytes = bytes.len() as u64;
            let one = parse(Arc::new(MappedBytes::from_vec(bytes)), file_bytes, index)?;
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

    fn assemble(parsed: Vec<Parsed>, paths: Vec<Option<PathBuf>>) -> Result<GgufFile, GgufError> {
        let mut parsed = parsed.into_iter().zip(paths);
        let (first, path) = parsed.next().ok_or(GgufError::Empty)?;
        let mut parts = vec![Part::new(path, &first)];
        let mut tensors = first.tensors;
        for (part, path) in parsed {
            parts.push(Part::new(path, &part));
            tensors.extend(part.tensors);
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
    /// fit this one, or if only headers are mapped.
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

/// Maps the first bytes of a file, and four times as many as long as what is mapped makes no sense and there are more.
fn parse_file(path: &Path, first_bytes: u64, part: usize) -> Result<Parsed, GgufError> {
    let mut most_bytes = first_bytes;
    loop {
        let (bytes, file_bytes) = MappedBytes::map_start(path, most_bytes)?;
        match parse(Arc::new(bytes), file_bytes, part) {
            Err(_) if most_bytes < file_bytes => most_bytes = most_bytes.saturating_mul(4),
            parsed => return parsed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, DType, GgufWriter};
    use std::io::Write;

    /// A model of two parts, in a directory of its own.
    fn write(name: &str) -> (PathBuf, Vec<PathBuf>) {
        let mut writer = GgufWriter::new();
        let words: Vec<String> = (0..500).map(|i| format!("word {i}")).collect();
        writer.set("general.architecture", "llama");
        writer.set("tokenizer.ggml.tokens", Array::from_strings(words.iter().map(String::as_bytes)));
        for index in 0..4 {
            let values = vec![index as f32; 64 * 64];
            writer.tensor_f32(format!("blk.{index}.weight"), &[64, 64], DType::F32, &values).unwrap();
        }
        let dir = std::env::temp_dir().join(format!("minfer-gguf-header-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let paths = writer.write_parts(&dir, "m", 2).unwrap();
        (dir, paths)
    }

    #[test]
    fn a_header_is_enough_until_weights_are_wanted() {
        let (dir, paths) = write("whole");
        let whole = GgufFile::open(&paths[0]).unwrap();
        for first_bytes in [1, 24, 1000, 8192, 1 << 20] {
            let file = GgufFile::open_first(&paths[0], first_bytes).unwrap();
            assert_eq!(file.tensors(), whole.tensors());
            assert_eq!(file.file_bytes(), whole.file_bytes());
            let last = whole.tensors().last().unwrap();
            assert_eq!(file.tensor_bytes(last).is_empty(), first_bytes < 1 << 20, "{first_bytes}");
            let file = file.map_whole().unwrap();
            assert!(file.parts().iter().all(Part::is_whole));
            assert_eq!(file.tensor_bytes(last), whole.tensor_bytes(last));
        }
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_refused() {
        let (dir, paths) = write("changed");
        let file = GgufFile::open_first(&paths[0], 8192).unwrap();
        let bytes = std::fs::read(&paths[1]).unwrap();
        let at = bytes.windows(5).position(|word| word == b"blk.2").unwrap();
        let mut other = bytes.clone();
        other[at] = b'c';
        std::fs::remove_file(&paths[1]).unwrap();
        std::fs::write(&paths[1], other).unwrap();
        let error = file.map_whole().unwrap_err();
        assert!(matches!(error.problem(), GgufError::Changed), "{error}");
        // Written in place, the change shows in the old mapping too.
        let file = GgufFile::open_first(&paths[0], 8192).unwrap();
        std::fs::OpenOptions::new().write(true).open(&paths[1]).unwrap().write_all(&bytes).unwrap();
        assert_eq!(file.parts()[1].bytes()[at], b'b');
        let error = file.map_whole().unwrap_err();
        assert!(matches!(error.problem(), GgufError::Changed), "{error}");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_is_broken_is_the_same_from_a_header() {
        let (dir, paths) = write("broken");
        let bytes = std::fs::read(&paths[0]).unwrap();
        for len in [3, 30, 5000, bytes.len() - 1] {
            std::fs::write(&paths[0], &bytes[..len]).unwrap();
            let [part, whole] = [1000, u64::MAX].map(|first| GgufFile::open_first(&paths[0], first).unwrap_err());
            assert_eq!(part.to_string(), whole.to_string());
        }
        std::fs::remove_dir_all(dir).unwrap();
    }
}
