//! Large files that take no room: a header, then a hole. Takes a description; gives a file of any size whose header is real
//! and whose weights are zeros that were never written.

use super::TinyModel;
use super::file::Hole;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Where tensor data may start: the alignment of files that name none.
const ALIGNMENT: u64 = 32;

impl TinyModel {
    /// Writes the header to `path` and makes the file as long as its tensors need, or `least_bytes` if that is more. Gives
    /// its length.
    ///
    /// # Errors
    /// Those of the file system; it must know sparse files for the hole to take no room.
    ///
    /// # Panics
    /// As [`to_bytes`](Self::to_bytes).
    pub fn write_sparse(&self, path: impl AsRef<Path>, least_bytes: u64) -> io::Result<u64> {
        let (writer, holes) = self.header();
        let mut head = writer.to_bytes();
        let (mut offset, mut searched) = (0u64, 0);
        // The writer knows no holes: every entry says offset 0, and is given its own here.
        for Hole { name, n_dims, bytes } in holes {
            let mut entry = (name.len() as u64).to_le_bytes().to_vec();
            entry.extend(name.as_bytes());
            let found = head[searched..].windows(entry.len()).position(|window| window == entry);
            let start = searched + found.unwrap_or_else(|| panic!("{name} is in the header"));
            // After the name: number of dimensions, dimensions, type.
            let at = start + entry.len() + 4 + 8 * n_dims + 4;
            searched = at;
            head[at..at + 8].copy_from_slice(&offset.to_le_bytes());
            offset += bytes.next_multiple_of(ALIGNMENT);
        }
        let len = (head.len() as u64 + offset).max(least_bytes);
        let mut file = File::create(path)?;
        file.write_all(&head)?;
        file.set_len(len)?;
        Ok(len)
    }
}
