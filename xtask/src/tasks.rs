//! The tasks that run cargo: demo, test, bless, fuzz-start, ci; and fetch.
//!
//! Takes arguments; runs programs in order and stops at the first that fails. Must not know
//! how files are fetched or rules are checked.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::cache::Cache;
use crate::fetch::{self, sets::SMOLLM2, sets::SetName};
use crate::process::{cargo, run, succeeds, workspace};
use crate::tidy;

/// How many mutations each fuzz target gets when it is only started.
const FUZZ_START_RUNS: &str = "2000";

/// `cargo xtask fetch`; gives the cache folder on stdout.
pub fn fetch(sets: &[SetName], verify: bool) -> Result<()> {
    let root = install(sets, verify)?;
    println!("{}", root.display());
    Ok(())
}

/// `cargo xtask demo`.
pub fn demo(prompt: &str) -> Result<()> {
    let root = install(&[SetName::Smollm2], false)?;
    run(&mut cargo(&[
        "build",
        "--release",
        "--package",
        "minfer-cli",
    ]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace().join("target"), PathBuf::from);
    let binary = target
        .join("release")
        .join(format!("minfer{}", std::env::consts::EXE_SUFFIX));
    run(Command::new(workspace().join(binary))
        .arg("run")
        .arg(root.join(SMOLLM2.file))
        .arg(prompt))
}

/// `cargo xtask test`.
pub fn test(args: &[String]) -> Result<()> {
    run_tests(args, false)
}

/// `cargo xtask bless`.
pub fn bless(filter: Option<&str>) -> Result<()> {
    let args: Vec<String> = filter.iter().map(|text| text.to_string()).collect();
    run_tests(&args, true)
}

/// `cargo xtask fuzz-start`: the targets as plain programs, see `fuzz/src/lib.rs`.
pub fn fuzz_start() -> Result<()> {
    let manifest = "fuzz/Cargo.toml";
    run(&mut cargo(&[
        "build",
        "--manifest-path",
        manifest,
        "--bins",
    ]))?;
    for target in tidy::tree::fuzz_targets(&workspace())? {
        run(&mut cargo(&[
            "run",
            "--quiet",
            "--manifest-path",
            manifest,
            "--bin",
            &target,
            "--",
            FUZZ_START_RUNS,
        ]))?;
    }
    Ok(())
}

/// `cargo xtask ci`.
pub fn ci() -> Result<()> {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    run(&mut cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))?;
    tidy::run()?;
    run(cargo(&["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    fuzz_start()?;
    test(&[])
}

fn install(sets: &[SetName], verify: bool) -> Result<PathBuf> {
    let cache = Cache::open()?;
    let _lock = cache.lock()?;
    for set in sets.iter().flat_map(|set| set.members()) {
        fetch::install(&cache, *set, verify)?;
    }
    Ok(cache.root().to_path_buf())
}

/// Every test of the workspace, then the examples in the docs, with the models at hand.
fn run_tests(args: &[String], bless: bool) -> Result<()> {
    let models = install(&[SetName::Test], false)?;
    let with_models = |mut command: Command| {
        command.env("MINFER_MODELS", &models).args(args);
        if bless {
            command.env("MINFER_BLESS", "1");
        }
        command
    };
    let has_nextest = succeeds(&mut cargo(&["nextest", "--version"]));
    let runner: &[&str] = if has_nextest {
        &["nextest", "run", "--workspace"]
    } else {
        &["test", "--workspace", "--all-targets"]
    };
    // Nextest runs no doc tests; `--all-targets` leaves them out of the other runner too.
    let tests = run(&mut with_models(cargo(runner)));
    if args.is_empty() && !bless {
        tests.and_then(|()| run(&mut with_models(cargo(&["test", "--workspace", "--doc"]))))
    } else {
        tests
    }
}
