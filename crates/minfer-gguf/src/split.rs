//! Models split over files named `stem-00001-of-0000N.gguf`. Takes metadata and
//! paths, gives the parts' paths or says what does not belong together.

use std::path::{Path, PathBuf};

use crate::error::{DisplayOption, GgufError};
use crate::metadata::Metadata;

pub(crate) const KEY_NO: &str = "split.no";
pub(crate) const KEY_COUNT: &str = "split.count";
pub(crate) const KEY_TENSORS: &str = "split.tensors.count";
/// Five digits in the file name.
const MAX_PARTS: u64 = 99_999;

/// The file name of a part, counted from 1.
pub fn part_name(stem: &str, part: u64, count: u64) -> String {
    format!("{stem}-{part:05}-of-{count:05}.gguf")
}

/// The stem of `stem-00001-of-0000N.gguf`, if the name has that form.
fn stem_of(path: &Path, part: u64, count: u64) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(&part_name("", part, count)).map(str::to_owned)
}

/// Parts in the set; 1 for an ordinary file. Refuses a part other than the first.
pub(crate) fn check_first(metadata: &Metadata, path: Option<&Path>) -> Result<u64, GgufError> {
    let count = metadata.u64(KEY_COUNT)?.unwrap_or(1);
    let no = metadata.u64(KEY_NO)?.unwrap_or(0);
    if count > MAX_PARTS {
        let got = DisplayOption(Some(count));
        return Err(GgufError::SplitMismatch { key: KEY_COUNT, part: 1, expected: MAX_PARTS, got });
    }
    if no > 0 {
        let part = no.saturating_add(1);
        let stem = path.and_then(|path| stem_of(path, part, count));
        let first = PathBuf::from(part_name(stem.as_deref().unwrap_or("*"), 1, count));
        return Err(GgufError::NotFirstPart { part, count, first });
    }
    Ok(count.max(1))
}

/// More parts given than the first one counts.
pub(crate) fn too_many(count: u64, given: u64) -> GgufError {
    let got = DisplayOption(Some(count));
    GgufError::SplitMismatch { key: KEY_COUNT, part: 1, expected: given, got }
}

/// The paths of all parts next to the first one.
pub(crate) fn part_paths(first: &Path, count: u64) -> Result<Vec<PathBuf>, GgufError> {
    let Some(stem) = stem_of(first, 1, count) else {
        let stem = first.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        return Err(GgufError::SplitName { count, expected: PathBuf::from(part_name(&stem, 1, count)) });
    };
    Ok((1..=count).map(|part| first.with_file_name(part_name(&stem, part, count))).collect())
}

/// Checks that part `index` (from 0) says that it is part `index` of `count`.
pub(crate) fn check_part(metadata: &Metadata, index: u64, count: u64) -> Result<(), GgufError> {
    for (key, expected) in [(KEY_NO, index), (KEY_COUNT, count)] {
        let got = metadata.u64(key)?;
        if got != Some(expected) {
            let got = DisplayOption(got);
            return Err(GgufError::SplitMismatch { key, part: index.saturating_add(1), expected, got });
        }
    }
    Ok(())
}

/// Checks the number of tensors over all parts, where the first part states it.
pub(crate) fn check_tensor_count(metadata: &Metadata, found: u64) -> Result<(), GgufError> {
    match metadata.u64(KEY_TENSORS)? {
        Some(stated) if stated != found => Err(GgufError::SplitMismatch {
            key: KEY_TENSORS,
            part: 1,
            expected: found,
            got: DisplayOption(Some(stated)),
        }),
        _ => Ok(()),
    }
}
