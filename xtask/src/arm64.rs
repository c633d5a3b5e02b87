//! `cargo xtask check-arm64`: minfer on 64-bit ARM processors, emulated.
//!
//! Takes a compiler, a linker and an emulator found on this machine; compiles the workspace and runs the tests of the
//! CPU backend on one processor for each level it has there. Must not know what the tests test.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{cargo, in_search_path, output, run, workspace};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";
/// What starts programs that use the target's C library. The linker's copy of that library is of another build, and
/// one's loader with the other's library hangs at the first thread.
const LOADER: &str = "/lib/ld-linux-aarch64.so.1";

/// Processors as the emulator calls them, with their best level. What they lack is an illegal instruction there too.
const PROCESSORS: [(&str, &str); 2] = [("neoverse-n1", "neondot"), ("cortex-a72", "neon")];

/// Compilers to try: the one that compiles us, which has the target where rustup brought it; then Debian's.
const COMPILERS: [&str; 2] = ["rustc", "/usr/bin/rustc"];

/// What brings everything on Debian 12. `rustc-web` is the current compiler, kept for browsers in the security updates.
const INSTALL: &str = "dpkg --add-architecture arm64 && apt-get update && apt-get install --no-install-recommends \
                       rustc-web libstd-rust-web-dev:arm64 libc6:arm64 gcc-aarch64-linux-gnu \
                       libc6-dev-arm64-cross qemu-user";

/// Compiles and runs.
pub fn check() -> Result<()> {
    let machine = Machine::find(std::env::var_os("PATH"), &COMPILERS, Path::new(LOADER))?;
    run(&mut machine.cargo(&["check", "--workspace", "--all-targets"]))?;
    let tests: &[&str] = &["test", "--package", "minfer-cpu"];
    for (processor, level) in PROCESSORS {
        eprintln!("emulating {processor}");
        let emulated = |which: &[&str]| {
            let mut tests = machine.cargo(&[tests, which].concat());
            tests.env(for_target("RUNNER"), machine.runner(processor));
            tests
        };
        run(&mut emulated(&["--lib", "--test", "ops"]))?;
        // The slow ones on this level only; what products of every shape add to the suite has nothing to do with ARM.
        eprintln!("every kernel on {level} against the reference: takes minutes");
        let which = ["--test", "conformance", "--test", "products"];
        let said = output(emulated(&which).args(["--", "--nocapture", level, "extreme_levels"]))?;
        let compared = said.lines().find(|line| line.contains(&format!("{level}: ")));
        eprintln!("{}", compared.with_context(|| format!("nothing ran on {level}:\n{said}"))?);
    }
    Ok(())
}

/// Everything it takes.
#[derive(Debug)]
struct Machine {
    compiler: PathBuf,
    linker: PathBuf,
    emulator: PathBuf,
}

impl Machine {
    /// What there is on this machine; all that is missing is said at once.
    fn find(search_path: Option<OsString>, compilers: &[&str], loader: &Path) -> Result<Self> {
        let mut missing = Vec::new();
        let found = compilers.iter().find_map(|name| match suits(Path::new(name)) {
            Ok(()) => Some(PathBuf::from(name)),
            Err(why) => {
                missing.push(format!("{why:#}"));
                None
            }
        });
        if found.is_some() {
            missing.clear();
        }
        let mut program = |name: &str| {
            let path = in_search_path(name, search_path.as_ref());
            if path.is_none() {
                missing.push(format!("no {name} in PATH"));
            }
            path
        };
        let (linker, emulator) = (program(LINKER), program(EMULATOR));
        if !loader.exists() {
            missing.push(format!("no C library for arm64: {} is missing", loader.display()));
        }
        match (found, linker, emulator) {
            (Some(compiler), Some(linker), Some(emulator)) if missing.is_empty() => {
                Ok(Self { compiler, linker, emulator })
            }
            _ => bail!("arm64 cannot be checked here:\n  {}\nOn Debian 12: {INSTALL}", missing.join("\n  ")),
        }
    }

    /// Cargo with this compiler and target, warnings refused; without debug assertions, which check every vector load.
    /// What it makes has a folder of its own, since two compilers would throw away each other's.
    fn cargo(&self, args: &[&str]) -> Command {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        let mut command = cargo(args);
        command
            .args(["--release", "--locked", "--target", TARGET])
            .env("CARGO_TARGET_DIR", workspace().join(target).join("arm64"))
            .env("RUSTC", &self.compiler)
            .env("RUSTFLAGS", "-D warnings")
            .env(for_target("LINKER"), &self.linker);
        command
    }

    /// What runs a program of the target.
    fn runner(&self, processor: &str) -> String {
        format!("{} -cpu {processor}", self.emulator.display())
    }
}

/// Cargo's variable for a setting of the target.
fn for_target(setting: &str) -> String {
    format!("CARGO_TARGET_{}_{setting}", TARGET.to_uppercase().replace('-', "_"))
}

/// Whether a compiler is there, new enough, and has the target's standard library; else why not.
fn suits(compiler: &Path) -> Result<()> {
    let name = compiler.display();
    let said = output(Command::new(compiler).arg("--version")).with_context(|| name.to_string())?;
    let manifest = fs::read_to_string(workspace().join("Cargo.toml"))?;
    let (_, needed) = manifest.split_once("rust-version = \"").context("Cargo.toml names no rust-version")?;
    if version(&said)? < version(needed)? {
        let needed = needed.split('"').next().unwrap_or(needed);
        bail!("{name} is {}, too old: minfer needs {needed}", said.trim());
    }
    let folder = output(Command::new(compiler).args(["--print", "target-libdir", "--target", TARGET]))?;
    let mut files = fs::read_dir(folder.trim()).into_iter().flatten().filter_map(Result::ok);
    if !files.any(|file| file.file_name().to_string_lossy().starts_with("libstd-")) {
        bail!("{name} ({}) has no standard library for {TARGET}", said.trim());
    }
    Ok(())
}

/// Major and minor of the first version in a text.
fn version(text: &str) -> Result<(u32, u32)> {
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let mut parts = digits.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => bail!("no version in {text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_said() {
        let found = Machine::find(Some("/nowhere".into()), &["/nowhere/rustc"], Path::new("/nowhere"));
        let error = found.unwrap_err().to_string();
        for word in ["/nowhere/rustc", LINKER, EMULATOR, "C library", "rustc-web", "libstd-rust-web-dev:arm64"] {
            assert!(error.contains(word), "{word}: {error}");
        }
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("rustc 1.96.0 (ac68faa20 2026-05-25)").unwrap(), (1, 96));
        assert!(version("1.100\"\n").unwrap() > version("rustc 1.95.2").unwrap());
        assert!(version("rustc").is_err());
    }
}
