//! What the rules look at: files, packages and licences, read once.
//!
//! Takes the workspace folder; gives a [`Tree`] of plain values. Must not know any rule.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::source::Source;
use crate::process::{cargo, output};

/// The workspace as plain values; paths are relative, with `/`.
#[derive(Debug, Default)]
pub struct Tree {
    /// Every `.rs` file.
    pub files: Vec<SourceFile>,
    /// The packages of the workspace, and `fuzz`.
    pub packages: Vec<Package>,
    /// ARCHITECTURE.md, if there is one.
    pub architecture: Option<String>,
    /// Every package in Cargo.lock.
    pub licences: Vec<Licence>,
}

/// One `.rs` file.
#[derive(Debug)]
pub struct SourceFile {
    /// Where.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Its tokens, or why there are none.
    pub source: Result<Source, String>,
}

impl SourceFile {
    /// From path and text.
    pub fn new(path: &str, text: &str) -> Self {
        let source = Source::parse(text).map_err(|error| error.to_string());
        Self { path: path.into(), text: text.into(), source }
    }
}

/// One package of ours.
#[derive(Debug, Default)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: String,
    /// The root files of its targets.
    pub roots: Vec<String>,
    /// Dependencies on packages of ours, without dev-dependencies.
    pub edges: Vec<String>,
}

/// The licence of a dependency.
#[derive(Debug)]
pub struct Licence {
    /// Package and version.
    pub package: String,
    /// SPDX expression.
    pub expression: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetaPackage>,
    workspace_members: Vec<String>,
}

#[derive(Deserialize)]
struct MetaPackage {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: String,
    targets: Vec<MetaTarget>,
    dependencies: Vec<MetaDependency>,
}

#[derive(Deserialize)]
struct MetaTarget {
    name: String,
    src_path: String,
}

#[derive(Deserialize)]
struct MetaDependency {
    name: String,
    kind: Option<String>,
    path: Option<String>,
}

impl Tree {
    /// Reads the workspace in `root`.
    pub fn read(root: &Path) -> Result<Self> {
        let mut tree = Tree::default();
        let metadata = metadata(&["metadata", "--format-version", "1", "--locked"])?;
        for package in &metadata.packages {
            if metadata.workspace_members.contains(&package.id) {
                tree.packages.push(ours(root, package));
            }
            let expression = package.license.clone();
            tree.licences.push(Licence { package: format!("{} {}", package.name, package.version), expression });
        }
        // Its own workspace, so that its fuzzer runtime stays out of our lock file.
        tree.packages.extend(fuzz_metadata(root)?.packages.iter().map(|package| ours(root, package)));
        read_sources(root, root, &mut tree.files)?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        tree.architecture = match fs::read_to_string(root.join("ARCHITECTURE.md")) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error).context("ARCHITECTURE.md"),
        };
        Ok(tree)
    }
}

/// The names of the fuzz targets.
pub fn fuzz_targets(root: &Path) -> Result<Vec<String>> {
    let metadata = fuzz_metadata(root)?;
    let targets = metadata.packages.into_iter().flat_map(|package| package.targets);
    Ok(targets.filter(|target| target.src_path.contains("fuzz_targets")).map(|target| target.name).collect())
}

fn fuzz_metadata(root: &Path) -> Result<Metadata> {
    if !root.join("fuzz/Cargo.toml").exists() {
        return Ok(Metadata { packages: Vec::new(), workspace_members: Vec::new() });
    }
    metadata(&["metadata", "--format-version", "1", "--no-deps", "--manifest-path", "fuzz/Cargo.toml"])
}

fn metadata(args: &[&str]) -> Result<Metadata> {
    serde_json::from_str(&output(&mut cargo(args))?).context("cargo metadata")
}

fn ours(root: &Path, package: &MetaPackage) -> Package {
    let manifest = Path::new(&package.manifest_path);
    let edges = package.dependencies.iter().filter(|d| d.path.is_some() && d.kind.as_deref() != Some("dev"));
    Package {
        name: package.name.clone(),
        folder: relative(root, manifest.parent().unwrap_or(manifest)),
        roots: package.targets.iter().map(|target| relative(root, Path::new(&target.src_path))).collect(),
        edges: edges.map(|d| d.name.clone()).collect(),
    }
}

/// Every `.rs` file below `folder`, without hidden folders and build output.
fn read_sources(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            // `target` only beside a manifest: a module folder of that name is source.
            let is_output = name == "target" && folder.join("Cargo.toml").exists();
            if !name.starts_with('.') && !is_output {
                read_sources(root, &entry.path(), files)?;
            }
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(entry.path()).with_context(|| name.clone())?;
            files.push(SourceFile::new(&relative(root, &entry.path()), &text));
        }
    }
    Ok(())
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}
