//! Project tasks, run as `cargo xtask <task>`.
//!
//! Takes a task name and its flags; runs cargo, pip or the tidy rules. Must not
//! know anything of the engine: it links no minfer crate.

mod arm64;
mod cache;
mod fetch;
mod picture;
mod process;
mod tasks;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use fetch::sets::SetName;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Project tasks of minfer.")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Fetch the small default model, build the release binary and run a prompt.
    Demo {
        /// The prompt to run.
        #[arg(default_value = "Name three primary colors.")]
        prompt: String,
    },
    /// Fetch what the tests need, then run every test of the workspace.
    Test {
        /// Passed on to the test runner, for example a filter.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Bring models and vocabularies into the cache folder; resumes, and checks hashes.
    ///
    /// The cache folder is $MINFER_CACHE, else the platform's cache folder + `minfer`.
    Fetch {
        /// What to fetch; `test` is what `cargo xtask test` needs.
        #[arg(required = true)]
        sets: Vec<SetName>,
        /// Hash files again that are already there.
        #[arg(long)]
        verify: bool,
    },
    /// Rewrite the golden files that the tests compare against (MINFER_BLESS=1).
    Bless {
        /// Only tests whose name contains this.
        filter: Option<String>,
    },
    /// Check the rules of the house: crate edges, file sizes, unsafe, licences, ...
    Tidy,
    /// Draw a small plan and use its page in a real browser; leaves screenshots. Needs Chromium.
    CheckPicture,
    /// Compile for 64-bit ARM and run the CPU backend's tests on emulated processors. Says what it needs.
    CheckArm64,
    /// Start each fuzz target on its seeds and a fixed number of mutations (stable toolchain).
    FuzzStart,
    /// Everything that continuous integration runs.
    Ci,
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Demo { prompt } => tasks::demo(&prompt),
        Task::Test { args } => tasks::test(&args),
        Task::Fetch { sets, verify } => tasks::fetch(&sets, verify),
        Task::Bless { filter } => tasks::bless(filter.as_deref()),
        Task::Tidy => tidy::run(),
        Task::CheckPicture => picture::check(),
        Task::CheckArm64 => arm64::check(),
        Task::FuzzStart => tasks::fuzz_start(),
        Task::Ci => tasks::ci(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
