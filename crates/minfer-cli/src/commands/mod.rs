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
use crate::memory::{self, Limit, Memory};
use crate::output;
use crate::resolve::{Command, Compute};
use minfer::{Blueprint, EngineConfig, EngineError, Levers, Model, Replanner, Shortfall};
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

/// Plans, and refuses what a budget does not admit, before anything is allocated. Gives the settings as checked.
fn admitted(
    model: &Model,
    config: EngineConfig,
    compute: &Compute,
    levers: Levers,
) -> anyhow::Result<(EngineConfig, Blueprint)> {
    let config = config.checked()?;
    let capabilities = capabilities(compute);
    let blueprint = Blueprint::new(model, &config, &capabilities)?;
    let replanner = Replanner { model, config, backends: &capabilities };
    match shortfall(replanner, &blueprint, levers, compute.limit, memory::memory())? {
        Some(shortfall) => Err(EngineError::OverBudget(Box::new(shortfall)).into()),
        None => Ok((config, blueprint)),
    }
}

/// What the first budget that does not admit a blueprint says; who set it, or what is admitted but slow, is told on stderr.
fn shortfall(
    replanner: Replanner<'_>,
    blueprint: &Blueprint,
    levers: Levers,
    limit: Limit,
    machine: Option<Memory>,
) -> anyhow::Result<Option<Shortfall>> {
    for budget in limit.budgets(machine)? {
        let config = EngineConfig { budget: Some(budget), ..replanner.config };
        match minfer::admit(&Replanner { config, ..replanner }, blueprint, levers) {
            Ok(()) => {}
            Err(EngineError::OverBudget(shortfall)) => {
                memory::who_limits(budget, limit, machine).iter().for_each(|words| output::line(words));
                return Ok(Some(*shortfall));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(warning) = memory::paging_warning(blueprint.ledger.total(), limit, machine) {
        output::warn(&warning);
    }
    Ok(None)
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
