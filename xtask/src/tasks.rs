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

/// The fuzz targets are a workspace of their own.
const FUZZ: &str = "fuzz/Cargo.toml";

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
    run(&mut cargo(&["build", "--release", "--package", "minfer-cli"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from);
    let binary = target.join("release").join(format!("minfer{}", std::env::consts::EXE_SUFFIX));
    run(Command::new(workspace().join(binary)).arg("run").arg(root.join(SMOLLM2.file)).arg(prompt))
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
    run(&mut cargo(&["build", "--manifest-path", FUZZ, "--bins"]))?;
    for target in tidy::tree::fuzz_targets(&workspace())? {
        run(&mut cargo(&["run", "--quiet", "--manifest-path", FUZZ, "--bin", &target, "--", FUZZ_START_RUNS]))?;
    }
    Ok(())
}

/// `cargo xtask ci`: cheap checks first, the tests last.
pub fn ci() -> Result<()> {
    let deny: &[&str] = &["--", "-D", "warnings"];
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    run(&mut cargo(&["fmt", "--manifest-path", FUZZ, "--check"]))?;
    tidy::run()?;
    run(cargo(&["clippy", "--workspace", "--all-targets", "--locked"]).args(deny))?;
    run(cargo(&["clippy", "--manifest-path", FUZZ, "--all-targets"]).args(deny))?;
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

/// The examples in the docs, then every test of the workspace, with the models at hand.
///
/// The tests come last, so that the output ends with their summary. With `args` or `bless` the
/// examples are left out: they take no filter and have no golden files.
fn run_tests(args: &[String], bless: bool) -> Result<()> {
    let models = install(&[SetName::Test], false)?;
    if args.is_empty() && !bless {
        run(cargo(&["test", "--workspace", "--doc"]).env("MINFER_MODELS", &models))?;
    }
    let nextest: &[&str] = &["nextest", "run", "--workspace"];
    let libtest: &[&str] = &["test", "--workspace", "--all-targets"];
    let has_nextest = succeeds(&mut cargo(&["nextest", "--version"]));
    let mut tests = cargo(if has_nextest { nextest } else { libtest });
    tests.env("MINFER_MODELS", &models).args(args);
    if bless {
        tests.env("MINFER_BLESS", "1");
    }
    run(&mut tests)
}
