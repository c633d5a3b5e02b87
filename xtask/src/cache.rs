//! The cache folder and the stamps in it.
//!
//! Takes paths and hashes; says what is installed. A stamp is a text file with one
//! line `sha256 size_bytes path` per installed file. Must not know where files come from.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

/// One installed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Hex digest of the whole file.
    pub sha256: String,
    /// Length in bytes.
    pub size_bytes: u64,
    /// Path below the cache folder, with `/`.
    pub path: String,
}

/// The folder that holds fetched files.
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Opens (and creates) the cache folder of this user.
    pub fn open() -> Result<Self> {
        let vars: HashMap<String, String> = std::env::vars().collect();
        let root = locate(std::env::consts::OS, |name| vars.get(name).cloned())
            .context("no cache folder: set MINFER_CACHE to a folder")?;
        Self::at(root)
    }

    /// Opens (and creates) the cache in `root`.
    pub fn at(root: PathBuf) -> Result<Self> {
        fs::create_dir_all(root.join(".stamps"))
            .with_context(|| format!("cannot create the cache folder {}", root.display()))?;
        Ok(Self { root: root.canonicalize()? })
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path below the folder.
    pub fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// Waits until no other fetch works in this folder; unlocked when dropped.
    pub fn lock(&self) -> Result<File> {
        let file = File::create(self.path(".lock"))?;
        if file.try_lock().is_err() {
            eprintln!("waiting for another fetch in {}", self.root.display());
            file.lock()?;
        }
        Ok(file)
    }

    /// Whether everything under stamp `name` is installed; with `rehash`, also whether the bytes are right.
    pub fn is_installed(&self, name: &str, rehash: bool) -> Result<bool> {
        let Some(entries) = self.read_stamp(name)? else {
            return Ok(false);
        };
        for entry in entries {
            let path = self.path(&entry.path);
            match fs::metadata(&path) {
                Ok(meta) if meta.len() == entry.size_bytes => {}
                Ok(_) => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error).context(path.display().to_string()),
            }
            if rehash {
                let got = hash_file(&path)?.sha256;
                if got != entry.sha256 {
                    eprintln!("{}: expected sha256 {}, got {got}: fetching it again", entry.path, entry.sha256);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Records `entries` as installed under `name`.
    pub fn write_stamp(&self, name: &str, entries: &[Entry]) -> Result<()> {
        let path = self.path(".stamps").join(name);
        let text: String = entries.iter().map(|e| format!("{} {} {}\n", e.sha256, e.size_bytes, e.path)).collect();
        let part = path.with_extension("part");
        fs::write(&part, text)?;
        fs::rename(&part, &path)?;
        Ok(())
    }

    fn read_stamp(&self, name: &str) -> Result<Option<Vec<Entry>>> {
        let path = self.path(".stamps").join(name);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context(path.display().to_string()),
        };
        let mut entries = Vec::new();
        for line in text.lines() {
            let mut fields = line.splitn(3, ' ');
            let (Some(sha256), Some(size), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
                return Ok(None);
            };
            let Ok(size_bytes) = size.parse() else {
                return Ok(None);
            };
            entries.push(Entry { sha256: sha256.into(), size_bytes, path: path.into() });
        }
        Ok(if entries.is_empty() { None } else { Some(entries) })
    }
}

/// What copying or reading a stream gave.
pub struct Copied {
    /// Hex digest of the bytes.
    pub sha256: String,
    /// Their count.
    pub size_bytes: u64,
}

/// Copies `from` into `to`, hashing on the way.
pub fn copy_hashed(from: &mut dyn Read, to: &mut dyn Write, hasher: &mut Sha256) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 18];
    let mut size_bytes = 0;
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => return Ok(size_bytes),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..n]);
        to.write_all(&buffer[..n])?;
        size_bytes += n as u64;
    }
}

/// Hashes a file.
pub fn hash_file(path: &Path) -> Result<Copied> {
    let mut hasher = Sha256::new();
    let mut file = File::open(path).with_context(|| path.display().to_string())?;
    let size_bytes = copy_hashed(&mut file, &mut io::sink(), &mut hasher)?;
    Ok(Copied { sha256: finish(hasher), size_bytes })
}

/// The digest as lower-case hex.
pub fn finish(hasher: Sha256) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses a file whose digest is not the pinned one.
pub fn expect_hash(what: &str, expected: &str, got: &str) -> Result<()> {
    if expected != got {
        bail!(
            "{what}: wrong content, so it was not installed\n  expected sha256 {expected}\n  got      sha256 {got}\n\
             Run the same command again to fetch it anew. If it stays wrong, the package was changed or \
             something on the way alters downloads (a proxy, a mirror)."
        );
    }
    Ok(())
}

/// Where the cache lies: `$MINFER_CACHE`, else the platform's cache folder + `minfer`.
fn locate(os: &str, var: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let var = |name: &str| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(root) = var("MINFER_CACHE") {
        return Some(root);
    }
    let base = match os {
        "windows" => var("LOCALAPPDATA"),
        "macos" => var("HOME").map(|home| home.join("Library/Caches")),
        _ => var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|home| home.join(".cache"))),
    };
    base.map(|base| base.join("minfer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(vars: &[(&str, &str)], os: &str) -> Option<PathBuf> {
        locate(os, |name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn the_cache_folder_follows_the_platform() {
        assert_eq!(with(&[("MINFER_CACHE", "/m"), ("HOME", "/h")], "linux"), Some("/m".into()));
        assert_eq!(with(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")], "linux"), Some("/x/minfer".into()));
        assert_eq!(with(&[("MINFER_CACHE", ""), ("HOME", "/h")], "linux"), Some("/h/.cache/minfer".into()));
        assert_eq!(with(&[("HOME", "/h")], "macos"), Some("/h/Library/Caches/minfer".into()));
        assert_eq!(with(&[], "linux"), None);
    }

    #[test]
    fn a_changed_file_is_not_installed() {
        let folder = std::env::temp_dir().join(format!("minfer-cache-{}", std::process::id()));
        let cache = Cache::at(folder.clone()).unwrap();
        assert!(!cache.is_installed("set", false).unwrap());
        fs::write(cache.path("file"), "abc").unwrap();
        let Copied { sha256, size_bytes } = hash_file(&cache.path("file")).unwrap();
        assert_eq!(sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        cache.write_stamp("set", &[Entry { sha256, size_bytes, path: "file".into() }]).unwrap();
        assert!(cache.is_installed("set", true).unwrap());
        fs::write(cache.path("file"), "abd").unwrap();
        assert!(cache.is_installed("set", false).unwrap());
        assert!(!cache.is_installed("set", true).unwrap());
        fs::write(cache.path("file"), "ab").unwrap();
        assert!(!cache.is_installed("set", false).unwrap());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_wrong_hash_says_what_to_do() {
        let error = expect_hash("x.gguf", "aa", "bb").unwrap_err().to_string();
        assert!(error.contains("expected sha256 aa") && error.contains("got      sha256 bb"));
        assert!(error.contains("again"));
    }
}
