//! One file per command. Takes settings; opens, computes, prints.

mod bench;
mod doctor;
mod eval;
mod graph;
mod inspect;
mod limits;
mod memplan;
mod open;
mod plan;
mod run;
mod template;
mod text;
mod tokenize;

use crate::describe;
use crate::exit::{Outcome, Refused};
use crate::limit::{self, Bound};
use crate::memory::{self, Memory};
use crate::output;
use crate::resolve::{Command, Compute};
use minfer::{Blueprint, Change, EngineConfig, EngineError, Levers, Model, Owner, Replanner, Shortfall};
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

/// Plans, and refuses what a bound does not admit, before anything is allocated. Gives the settings as checked. `spell` is
/// how the command calls its settings.
fn admitted(
    model: &Model,
    config: EngineConfig,
    compute: &Compute,
    levers: Levers,
    spell: fn(Change) -> String,
) -> anyhow::Result<(EngineConfig, Blueprint)> {
    let config = config.checked()?;
    let capabilities = capabilities(compute);
    let blueprint = Blueprint::new(model, &config, &capabilities)?;
    let replanner = Replanner { model, config, backends: &capabilities };
    let bound = compute.limit.bound(memory::memory(), blueprint.ledger.sum(Owner::Weights))?;
    if let Some(shortfall) = shortfall(replanner, &blueprint, levers, bound)? {
        // Who allows no more comes first.
        let words = bound.and_then(|bound| bound.words()).into_iter();
        return Err(Refused(words.chain(describe::shortfall(&shortfall, levers, spell)).collect()).into());
    }
    Ok((config, blueprint))
}

/// What a bound misses, if anything.
fn shortfall(
    replanner: Replanner<'_>,
    blueprint: &Blueprint,
    levers: Levers,
    bound: Option<Bound>,
) -> anyhow::Result<Option<Shortfall>> {
    let config = EngineConfig { budget: bound.map(|bound| bound.budget), ..replanner.config };
    match minfer::admit(&Replanner { config, ..replanner }, blueprint, levers) {
        Ok(()) => Ok(None),
        Err(EngineError::OverBudget(shortfall)) => Ok(Some(*shortfall)),
        Err(error) => Err(error.into()),
    }
}

/// What is admitted may still be slow.
fn warn_of_paging(total_bytes: u64, machine: Option<Memory>) {
    if let Some(warning) = limit::paging_warning(total_bytes, machine) {
        output::warn(&warning);
    }
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
