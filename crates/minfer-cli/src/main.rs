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

use minfer_cpu::Heap;
use std::process::ExitCode;

#[global_allocator]
static HEAP: Heap = Heap::new(room::none_left);

fn main() -> ExitCode {
    minfer_cpu::one_heap();
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
