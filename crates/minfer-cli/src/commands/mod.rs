//! One file per command. Takes settings; opens, computes, prints.

mod bench;
mod doctor;
mod eval;
mod graph;
mod inspect;
mod limits;
mod memplan;
mod plan;
mod run;
mod template;
mod text;
mod tokenize;

use crate::describe;
use crate::exit::Outcome;
use crate::memory;
use crate::output;
use crate::resolve::{Command, Compute};
use minfer::{Blueprint, EngineConfig, Levers, Model, Replanner};
use minfer_backend::{Backend, Capabilities};
use minfer_cpu::Processors;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Does what was asked.
pub fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Run(settings) => run::run(settings),
        Command::Inspect(settings) => inspect::inspect(&settings),
        Command::Plan(settings) => plan::plan(&settings),
        Command::Graph(settings) => graph::graph(&settings),
        Command::Tokenize(settings) => tokenize::tokenize(&settings),
        Command::Template(settings) => template::template(&settings),
        Command::Bench(settings) => bench::bench(&settings),
        Command::Doctor(settings) => doctor::doctor(&settings),
        Command::Eval(settings) => eval::eval(&settings),
        Command::Memplan(settings) => memplan::memplan(&settings),
    }
}

/// The backends asked for.
fn backends(compute: &Compute) -> anyhow::Result<Vec<Box<dyn Backend>>> {
    warn_of_crowd(compute.threads, &Processors::read());
    Ok(minfer::backends(compute.backend, Some(compute.threads), compute.simd)?)
}

/// More threads than there are cores for is no failure, but hardly what was meant.
fn warn_of_crowd(threads: NonZeroUsize, processors: &Processors) {
    let (cores, available) = (processors.default_threads(), processors.available);
    if threads > available {
        output::warn(&format!("{threads} threads on {available} processors: they will wait for each other"));
    } else if threads > cores {
        output::warn(&format!("{threads} threads on {cores} physical cores: two on a core share its units"));
    }
}

/// What they would answer a planner; nothing is started or allocated.
fn capabilities(compute: &Compute) -> Vec<Arc<dyn Capabilities>> {
    minfer::capabilities(compute.backend, Some(compute.threads), compute.simd)
}

/// Plans, and refuses what the budget does not admit, before anything is allocated. Gives the settings with their budget.
fn admitted(
    model: &Model,
    config: EngineConfig,
    compute: &Compute,
    levers: Levers,
) -> anyhow::Result<(EngineConfig, Blueprint)> {
    let machine = memory::memory();
    let budget = compute.limit.budget(machine)?;
    let config = EngineConfig { budget, ..config }.checked()?;
    let capabilities = capabilities(compute);
    let blueprint = Blueprint::new(model, &config, &capabilities)?;
    let admission = minfer::admit(&Replanner { model, config, backends: &capabilities }, &blueprint, levers);
    if let (Err(_), Some(words)) = (&admission, memory::who_limits(compute.limit, machine)) {
        output::line(&words);
    }
    admission?;
    if let Some(warning) = memory::paging_warning(blueprint.ledger.total(), compute.limit, machine) {
        output::warn(&warning);
    }
    Ok((config, blueprint))
}

/// Backend, threads and instructions in words.
fn backend_words(compute: &Compute) -> String {
    let threads = describe::threads(compute.threads);
    match compute.backend {
        minfer::BackendKind::Cpu => {
            format!("cpu, {threads}, {}", compute.simd.unwrap_or_else(minfer::SimdLevel::detect))
        }
        other => format!("{}, {threads}", other.name()),
    }
}
