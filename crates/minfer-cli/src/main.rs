//! The `minfer` command: reads flags and environment, picks backends, prints. The only crate that does.
//!
//! Takes arguments; gives raw values (`args`), then settings (`resolve`, with `env`), then one command's work
//! (`commands`). Nothing is done while parsing.

mod args;
mod commands;
mod describe;
mod env;
mod exit;
mod limit;
mod measure;
mod memory;
mod output;
mod outputs;
mod resolve;
mod room;
mod watch;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    minfer_cpu::one_heap();
    if !room::to_start() {
        // No heap is needed to say so.
        let _ = std::io::stderr().write_all(b"error: too little memory: minfer needs 1 MiB to start; see ulimit -a\n");
        return ExitCode::from(2);
    }
    let raw = args::parse(std::env::args_os());
    exit::code(run(raw))
}

fn run(raw: args::Command) -> anyhow::Result<exit::Outcome> {
    let (environment, warnings) = env::read(std::env::vars_os())?;
    for warning in warnings {
        output::warn(&warning);
    }
    commands::run(resolve::resolve(raw, &environment)?)
}
