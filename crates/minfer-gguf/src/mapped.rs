//! Bytes of a file, mapped or owned, shared by reference count.
//! Must not know what the bytes mean.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use memmap2::{Mmap, MmapOptions};

use crate::error::GgufError;

/// Owned bytes start at a multiple of this, so that any tensor the file format
/// calls aligned is aligned in memory too. Mapped bytes start at a page.
pub const REGION_ALIGN_BYTES: usize = 64;

/// A read-only stretch of bytes that stays at one address while it lives.
///
/// Its start is at least 64-byte aligned.
pub struct MappedBytes(Inner);

enum Inner {
    Mapped(Mmap),
    Owned { buffer: Vec<u8>, start: usize },
}

impl MappedBytes {
    /// Maps a regular file. Refuses directories, pipes and empty files.
    pub fn map(path: &Path) -> Result<MappedBytes, GgufError> {
        Ok(Self::map_start(path, u64::MAX)?.0)
    }

    /// The same with the first `most_bytes` of a longer file. Also gives the size of the whole file.
    pub(crate) fn map_start(path: &Path, most_bytes: u64) -> Result<(MappedBytes, u64), GgufError> {
        let meta = std::fs::metadata(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => GgufError::Missing,
            _ => GgufError::Io { action: "open the file", source },
        })?;
        if meta.is_dir() {
            return Err(GgufError::Directory);
        }
        if !meta.is_file() {
            return Err(GgufError::NotRegular);
        }
        let file = File::open(path).map_err(|source| GgufError::Io { action: "open the file", source })?;
        let len_bytes = file.metadata().map_err(|source| GgufError::Io { action: "size the file", source })?.len();
        if len_bytes == 0 {
            return Err(GgufError::Empty);
        }
        let failed = |source| GgufError::Io { action: "map the file", source };
        let mapped_bytes =
            usize::try_from(len_bytes.min(most_bytes)).map_err(|_| failed(ErrorKind::OutOfMemory.into()))?;
        // SAFETY: the mapping is read-only, this process never writes to the file, and the slice is bounded by
        // the length at this moment. The mapping is shared: what another process writes to the file meanwhile
        // shows in it, and that cannot be ruled out. Changed bytes are harmless to the parser, which copies what
        // it decides on and bounds-checks every later access, and weights are plain numbers. If the file is
        // truncated, touching a page past its new end raises SIGBUS and ends the process; it never reads foreign
        // memory. Callers are told so in the documentation of `GgufFile::open`.
        let map = unsafe { MmapOptions::new().len(mapped_bytes).map(&file) }.map_err(failed)?;
        Ok((MappedBytes(Inner::Mapped(map)), len_bytes))
    }

    /// Takes bytes from memory; copies them once if they are not aligned.
    pub fn from_vec(bytes: Vec<u8>) -> MappedBytes {
        if bytes.as_ptr().align_offset(REGION_ALIGN_BYTES) == 0 {
            return MappedBytes(Inner::Owned { buffer: bytes, start: 0 });
        }
        let mut buffer: Vec<u8> = Vec::with_capacity(bytes.len() + REGION_ALIGN_BYTES);
        let start = buffer.as_ptr().align_offset(REGION_ALIGN_BYTES).min(REGION_ALIGN_BYTES);
        buffer.resize(start, 0);
        buffer.extend_from_slice(&bytes);
        MappedBytes(Inner::Owned { buffer, start })
    }

    /// Whether the bytes are pages of a file, rather than memory of this process.
    pub fn is_mapped(&self) -> bool {
        matches!(self.0, Inner::Mapped(_))
    }
}

impl AsRef<[u8]> for MappedBytes {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Inner::Mapped(map) => map,
            Inner::Owned { buffer, start } => buffer.get(*start..).unwrap_or_default(),
        }
    }
}

impl std::ops::Deref for MappedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_ref()
    }
}

impl std::fmt::Debug for MappedBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.is_mapped() { "mapped" } else { "owned" };
        write!(f, "MappedBytes({} bytes, {kind})", self.as_ref().len())
    }
}

/// A range of shared bytes: a string or an array inside a file.
#[derive(Clone)]
pub(crate) struct View {
    bytes: Arc<MappedBytes>,
    range: Range<usize>,
}

impl View {
    /// The range must lie within the bytes; otherwise the view is empty.
    pub(crate) fn new(bytes: &Arc<MappedBytes>, range: Range<usize>) -> View {
        View { bytes: Arc::clone(bytes), range }
    }

    pub(crate) fn from_vec(bytes: Vec<u8>) -> View {
        let range = 0..bytes.len();
        View { bytes: Arc::new(MappedBytes::from_vec(bytes)), range }
    }

    /// A range of this view, relative to its start; empty if it does not fit.
    pub(crate) fn slice(&self, range: Range<usize>) -> View {
        let inside = range.start <= range.end && range.end <= self.range.len();
        let range = if inside { self.range.start + range.start..self.range.start + range.end } else { 0..0 };
        View { bytes: Arc::clone(&self.bytes), range }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref().as_ref().get(self.range.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_bytes_are_aligned_and_equal() {
        for len in [0usize, 1, 63, 64, 1000] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let region = MappedBytes::from_vec(bytes.clone());
            assert_eq!(region.as_ref(), bytes);
            assert!(bytes.is_empty() || (region.as_ref().as_ptr() as usize).is_multiple_of(REGION_ALIGN_BYTES));
            assert!(!region.is_mapped());
        }
    }

    #[test]
    fn region_can_be_shared_between_threads() {
        fn check<T: AsRef<[u8]> + Send + Sync + 'static>() {}
        check::<MappedBytes>();
    }
}
