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

fn parse_file(path: &Path, first_bytes: u64, part: usize) -> Result<Parsed, GgufError> {
    parse_growing(first_bytes, part, |most_bytes| MappedBytes::map_start(path, most_bytes))
}

/// Maps the first bytes of a file, and at least four times as many where its header goes on behind them. A damaged header is
/// refused from what is mapped: for more there may be no addresses, and then that would be said of it. `map` takes the
/// most bytes wanted and also gives the size of the whole file.
fn parse_growing(
    first_bytes: u64,
    part: usize,
    mut map: impl FnMut(u64) -> Result<(MappedBytes, u64), GgufError>,
) -> Result<Parsed, GgufError> {
    let mut most_bytes = first_bytes;
    let (mut bytes, mut file_bytes) = map(most_bytes)?;
    loop {
        let (place, needs) = match parse(Arc::new(bytes), file_bytes, part) {
            Err(GgufError::Truncated { place, needs, .. }) if needs <= file_bytes => (place, needs),
            parsed => return parsed,
        };
        most_bytes = most_bytes.saturating_mul(4).max(needs);
        (bytes, file_bytes) = map(most_bytes).map_err(|error| match error {
            GgufError::Io { source, .. } => GgufError::HeaderTooLong { place, needs, source },
            other => other,
        })?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Place;
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

    /// Of a file far too large to be mapped.
    const HUGE_BYTES: u64 = 1 << 40;

    /// A header of one entry, `a`, of this type and value, and of no tensor.
    fn one_entry(ty: u32, value: &[u64]) -> Vec<u8> {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        [0u64, 1, 1].iter().for_each(|field| bytes.extend(field.to_le_bytes()));
        bytes.push(b'a');
        bytes.extend(ty.to_le_bytes());
        value.iter().for_each(|field| bytes.extend(field.to_le_bytes()));
        bytes
    }

    /// What is wrong with a file of `HUGE_BYTES` that starts so, and how many bytes were to be mapped each time. More than
    /// 64 KiB cannot be.
    fn damage(start: &[u8]) -> (GgufError, Vec<u64>) {
        let mut asked = Vec::new();
        let error = parse_growing(4096, 0, |most_bytes| {
            asked.push(most_bytes);
            if most_bytes > 1 << 16 {
                return Err(GgufError::Io { action: "map the file", source: std::io::ErrorKind::OutOfMemory.into() });
            }
            let mut bytes = start.to_vec();
            bytes.resize(most_bytes as usize, 0);
            Ok((MappedBytes::from_vec(bytes), HUGE_BYTES))
        });
        (error.unwrap_err(), asked)
    }

    #[test]
    fn damage_is_told_from_the_first_bytes() {
        let edited = |at: usize, with: &[u8]| {
            let mut bytes = one_entry(0, &[0]);
            bytes[at..at + with.len()].copy_from_slice(with);
            bytes
        };
        let count = |count: u64| edited(16, &count.to_le_bytes());
        let key_len = |len: u64| edited(24, &len.to_le_bytes());
        // An array's value: its element type in the lower half of the first field, then the count.
        let array = |elem: u32, n: u64| {
            let mut bytes = one_entry(9, &[]);
            bytes.extend(elem.to_le_bytes());
            bytes.extend(n.to_le_bytes());
            bytes
        };
        type IsExpected = fn(&GgufError) -> bool;
        let cases: [(Vec<u8>, IsExpected); 12] = [
            (edited(0, b"gguf"), |e| matches!(e, GgufError::NotGguf { .. })),
            (vec![0; 64], |e| matches!(e, GgufError::NotGguf { .. })),
            (edited(4, &[9]), |e| matches!(e, GgufError::UnsupportedVersion { version: 9 })),
            (count(HUGE_BYTES / 8), |e| matches!(e, GgufError::Count { .. })),
            (count(1 << 20), |e| matches!(e, GgufError::TooMany { .. })),
            (key_len(HUGE_BYTES), |e| matches!(e, GgufError::Truncated { place: Place::Key(0), has: HUGE_BYTES, .. })),
            (key_len(1 << 30), |e| matches!(e, GgufError::TooLong { got, .. } if *got == 1 << 30)),
            (key_len(0), |e| matches!(e, GgufError::EmptyName { .. })),
            (one_entry(77, &[0]), |e| matches!(e, GgufError::UnknownValueType { id: 77, .. })),
            (one_entry(8, &[u64::MAX]), |e| matches!(e, GgufError::Truncated { place: Place::Value(_), .. })),
            (array(8, HUGE_BYTES / 4), |e| matches!(e, GgufError::Count { .. })),
            (array(99, 3), |e| matches!(e, GgufError::UnknownValueType { id: 99, .. })),
        ];
        for (start, is_expected) in cases {
            let (error, asked) = damage(&start);
            assert!(is_expected(&error), "{error:?}");
            assert_eq!(asked, [4096], "{error}");
        }
    }

    #[test]
    fn a_header_longer_than_addresses_reach_is_told_by_what_needs_them() {
        let (error, asked) = damage(&one_entry(8, &[1 << 30]));
        let needs = 24 + 9 + 4 + 8 + (1 << 30);
        assert_eq!(asked, [4096, needs]);
        let GgufError::HeaderTooLong { place: Place::Value(key), needs: told, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!((key.as_str(), *told), ("a", needs));
        assert!(error.to_string().contains("the value of `a` needs the first"), "{error}");
    }
}
