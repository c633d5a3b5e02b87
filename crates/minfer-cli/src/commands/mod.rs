//! One file per command. Takes settings; opens, computes, prints.

mod bench;
mod eval;
mod graph;
mod inspect;
mod memplan;
mod run;
mod text;
mod tokenize;

use crate::exit::Outcome;
use crate::output;
use crate::resolve::{Command, Compute};
use minfer_backend::{Backend, Capabilities};
use std::sync::Arc;

/// Does what was asked.
pub fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Run(settings) => run::run(settings),
        Command::Inspect(settings) => inspect::inspect(&settings),
        Command::Graph(settings) => graph::graph(&settings),
        Command::Tokenize(settings) => tokenize::tokenize(&settings),
        Command::Bench(settings) => bench::bench(&settings),
        Command::Eval(settings) => eval::eval(&settings),
        Command::Memplan(settings) => memplan::memplan(&settings),
    }
}

/// The backends asked for.
fn backends(compute: &Compute) -> anyhow::Result<Vec<Box<dyn Backend>>> {
    let threads = compute.threads.get();
    if let Ok(cores) = std::thread::available_parallelism()
        && threads > cores.get()
    {
        output::warn(&format!("{threads} threads on {cores} processors: they will wait for each other"));
    }
    Ok(minfer::backends(compute.backend, Some(compute.threads), compute.simd)?)
}

/// What they would answer a planner; nothing is started or allocated.
fn capabilities(compute: &Compute) -> Vec<Arc<dyn Capabilities>> {
    minfer::capabilities(compute.backend, Some(compute.threads), compute.simd)
}

/// Backend, threads and instructions in words.
fn backend_words(compute: &Compute) -> String {
    let threads = match compute.threads.get() {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    };
    match compute.backend {
        minfer::BackendKind::Cpu => {
            format!("cpu, {threads}, {}", compute.simd.unwrap_or_else(minfer::SimdLevel::detect))
        }
        other => format!("{}, {threads}", other.name()),
    }
}
