//! `minfer bench`: tokens per second, and the share of what the machine could do. Reports, judges nothing.

mod picture;
mod profile;
mod report;
mod rounds;
mod stats;

use super::{admitted, backends, capabilities, limits, open, warn_of_paging};
use crate::describe;
use crate::exit::{Failure, Outcome};
use crate::memory;
use crate::outputs::{Outputs, cannot_write};
use crate::resolve::{Bench, Compute};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use limits::Limits;
use minfer::{Blueprint, Change, Engine, EngineConfig, Levers, Model};
use minfer_cpu::{Probe, SimdLevel};
use rounds::{Bed, Measured, Setup};
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// All that was measured.
struct Report<'a> {
    settings: &'a Bench,
    model: &'a Model,
    /// Until the first engine was ready.
    load_s: f64,
    /// What the machine can do with each number of threads.
    limits: Vec<Limits>,
    results: Vec<Measured>,
}

/// Measures every combination of the settings.
pub fn bench(settings: &Bench) -> Result<Outcome> {
    let start = Instant::now();
    let model = open::model(&settings.model, None)?;
    let mut load_s = start.elapsed().as_secs_f64();
    let svg = settings.svg.as_ref().map(|path| Outputs::beside(&model.file).create(path)).transpose()?;
    let n_ctx = n_ctx(settings, &model)?;
    // All of them, before the first takes any memory. Their plans are made again when their turn comes: many kept at once
    // would be memory that no ledger counts.
    let (mut setups, mut most_bytes) = (Vec::new(), 0);
    for compute in &settings.computes {
        for &batch in &settings.batches {
            let config = EngineConfig { n_ctx, n_sequences: batch, ..compute.config };
            let levers = Levers { least_n_ctx: u32::try_from(settings.longest_tokens()).ok(), slots: true };
            let (config, blueprint) = admitted(&model, config, compute, levers, flag)?;
            most_bytes = most_bytes.max(blueprint.ledger.total());
            setups.push((compute, config));
        }
    }
    warn_of_paging(most_bytes, memory::memory());
    let limits = measure_limits(settings, &model)?;
    let opening = Instant::now();
    let model = Arc::new(model.map_weights()?);

    let mut results = Vec::new();
    let progress = progress(settings);
    for (compute, config) in setups {
        let blueprint = Blueprint::new(&model, &config, &capabilities(compute))?;
        let engine = Engine::from_blueprint(Arc::clone(&model), backends(compute)?, config, blueprint)?;
        if results.is_empty() {
            load_s += opening.elapsed().as_secs_f64();
        }
        let batch = config.n_sequences;
        let mut bed = Bed::new(engine, (0..u64::from(batch)).collect())?.with_progress(progress.clone());
        for &depth in &settings.depths {
            results.extend(measure(&mut bed, settings, compute, batch, depth)?);
        }
    }
    progress.finish_and_clear();

    let report = Report { settings, model: &model, load_s, limits, results };
    if let (Some(mut file), Some(path)) = (svg, &settings.svg) {
        file.write_all(report.picture().as_bytes()).map_err(|error| cannot_write(path, &error))?;
    }
    report.print()?;
    Ok(Outcome::Done)
}

/// A change as it is typed here.
fn flag(change: Change) -> String {
    match change {
        Change::Slots(n_sequences) => format!("--batch {n_sequences}"),
        other => describe::flag(other),
    }
}

/// Tokens of all rounds, on a terminal as a bar. Redrawn so seldom that no figure shows it.
fn progress(settings: &Bench) -> ProgressBar {
    let n_tokens: u64 = settings.batches.iter().map(|&batch| u64::from(batch) * settings.tokens_of_rounds()).sum();
    let n_setups = settings.computes.len() as u64 * settings.depths.len() as u64;
    let target = ProgressDrawTarget::stderr_with_hz(2);
    let bar = ProgressBar::with_draw_target(Some(n_tokens.saturating_mul(n_setups)), target);
    let style = ProgressStyle::with_template("{msg}: {percent} % of {human_len} tokens, {elapsed}, {eta} to go");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// All tests of one setup.
fn measure(bed: &mut Bed, settings: &Bench, compute: &Compute, batch: u32, depth: u32) -> Result<Vec<Measured>> {
    let Bench { n_prompt, n_gen, rounds, profile, .. } = *settings;
    let (threads, cache_type) = (compute.threads, compute.config.cache_type);
    let (cache, threads_words) = (cache_type.value_type(), describe::threads(threads));
    bed.say(format!("batch {batch}, depth {depth}, {threads_words}, cache {cache}"));
    bed.settle(depth)?;
    let setup = Setup { threads, cache_type, batch, depth, n_prompt, n_gen };
    let mut results = Vec::new();
    if n_prompt > 0 || n_gen > 0 {
        results.extend(bed.measure(setup, false, rounds, profile)?);
    }
    for &(n_prompt, n_gen) in &settings.mixed {
        results.extend(bed.measure(Setup { n_prompt, n_gen, ..setup }, true, rounds, profile)?);
    }
    Ok(results)
}

/// Positions of every context. More than the model was trained for are refused before anything is measured.
fn n_ctx(settings: &Bench, model: &Model) -> Result<u32> {
    let asked = settings.computes.first().map(|compute| compute.config.n_ctx);
    let n_tokens = settings.longest_tokens();
    let choice = minfer::choose_n_ctx(asked, n_tokens as usize, Some(0), model.spec.n_ctx_train).map_err(|_| {
        let n_ctx_train = model.spec.n_ctx_train;
        Failure::new(format!("the longest test takes {n_tokens} positions, the model was trained for {n_ctx_train}"))
            .hint("a smaller --depth, --n-prompt or --n-gen")
    })?;
    Ok(choice.n_ctx)
}

/// What the machine can do with each number of threads, once.
fn measure_limits(settings: &Bench, model: &Model) -> Result<Vec<Limits>> {
    let Some(first) = settings.computes.first() else { return Ok(Vec::new()) };
    let level = first.simd.unwrap_or_else(SimdLevel::detect);
    let bytes = limits::probe_bytes(limits::working_set(model.file.file_bytes()), memory::memory());
    let probe = Probe::new(level, bytes).map_err(minfer::Error::from)?;
    let mut found: Vec<Limits> = Vec::new();
    for compute in &settings.computes {
        if !found.iter().any(|limits| limits.threads == compute.threads) {
            found.push(Limits::measure(&probe, compute.threads)?);
        }
    }
    Ok(found)
}

impl Report<'_> {
    /// What the machine can do with so many threads.
    fn limits_of(&self, setup: &Setup) -> Limits {
        let found = self.limits.iter().find(|limits| limits.threads == setup.threads);
        // Every number of threads was measured.
        found.copied().unwrap_or(Limits { threads: setup.threads, read_bytes_per_s: 0.0, int8_ops_per_s: 0.0 })
    }
}
