//! `minfer bench`: tokens per second. Reports, judges nothing.

use super::{admitted, backend_words, backends};
use crate::args::TableOutput;
use crate::describe;
use crate::exit::Outcome;
use crate::output::{self, Table};
use crate::resolve::Bench;
use anyhow::Result;
use minfer::{BatchToken, Engine, EngineConfig, Levers, Model, Session};
use serde_json::json;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// Tokens per second of one round.
struct Round {
    prefill: f64,
    decode: f64,
}

/// Median, smallest and largest.
#[derive(Clone, Copy, serde::Serialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

/// Measures prefill and decode.
pub fn bench(settings: &Bench) -> Result<Outcome> {
    let start = Instant::now();
    let model = Arc::new(Model::open(&settings.model)?);
    let n_tokens = settings.n_prompt as usize + settings.n_gen as usize;
    let n_ctx = settings.compute.config.n_ctx;
    let n_ctx = minfer::choose_n_ctx(Some(n_ctx), n_tokens, Some(0), model.spec.n_ctx_train)?.n_ctx;
    let config = EngineConfig { n_ctx, ..settings.compute.config };
    let levers = Levers { least_n_ctx: u32::try_from(n_tokens).ok(), slots: false };
    let (config, blueprint) = admitted(&model, config, &settings.compute, levers)?;
    let mut engine = Engine::from_blueprint(Arc::clone(&model), backends(&settings.compute)?, config, blueprint)?;
    let load_s = start.elapsed().as_secs_f64();
    one_round(&mut engine, settings, 1)?;
    let rounds = (0..settings.rounds)
        .map(|round| one_round(&mut engine, settings, u64::from(round) + 2))
        .collect::<Result<Vec<_>>>()?;
    let prefill = Spread::of(rounds.iter().map(|round| round.prefill).collect());
    let decode = Spread::of(rounds.iter().map(|round| round.decode).collect());
    let Bench { n_prompt, n_gen, .. } = *settings;
    match settings.output {
        TableOutput::Json => output::answer_json(&json!({
            "model": settings.model.file_name().map(|name| name.display().to_string()),
            "backend": settings.compute.backend.name(),
            "threads": settings.compute.threads,
            "n_prompt": n_prompt,
            "n_gen": n_gen,
            "rounds": settings.rounds,
            "load_s": load_s,
            "prefill_tps": prefill.median,
            "decode_tps": decode.median,
            "prefill": prefill,
            "decode": decode,
        }))?,
        TableOutput::Csv => output::answer(|out| {
            writeln!(out, "phase,n_tokens,rounds,median_tps,min_tps,max_tps")?;
            for (phase, n, spread) in [("prefill", n_prompt, prefill), ("decode", n_gen, decode)] {
                let Spread { median, min, max } = spread;
                writeln!(out, "{phase},{n},{},{median:.3},{min:.3},{max:.3}", settings.rounds)?;
            }
            Ok(())
        })?,
        TableOutput::Table => {
            let mut table = Table::new(&[1, 2, 3, 4]);
            table.row(["phase", "tokens", "median", "min", "max"]);
            for (phase, n, spread) in [("prefill", n_prompt, prefill), ("decode", n_gen, decode)] {
                let figures = [spread.median, spread.min, spread.max].map(|tps| format!("{tps:.2}"));
                table.row([phase.to_owned(), n.to_string()].into_iter().chain(figures));
            }
            output::answer(|out| {
                writeln!(out, "{}", describe::model(&model.spec, &model.file))?;
                writeln!(out, "{}; tokens/s over {} rounds", backend_words(&settings.compute), settings.rounds)?;
                table.write(out, "")
            })?;
        }
    }
    Ok(Outcome::Done)
}

/// Reads a prompt into an empty context, then decodes. The ids are those of the script that measures others.
fn one_round(engine: &mut Engine, settings: &Bench, seed: u64) -> Result<Round> {
    let n_vocab = u64::from(engine.model().spec.n_vocab.max(1));
    let id = |number: u64| (number % n_vocab) as u32;
    let prompt: Vec<u32> = (0..u64::from(settings.n_prompt)).map(|i| id(seed * 7919 + i * 104_729)).collect();
    let mut session = Session::new(engine)?;
    let start = Instant::now();
    session.read(engine, &prompt, &mut |_| ControlFlow::Continue(()))?;
    let prefill = f64::from(settings.n_prompt) / start.elapsed().as_secs_f64();
    let start = Instant::now();
    for i in 0..u64::from(settings.n_gen) {
        engine.step(&[BatchToken { token: id(seed + i * 31), sequence: session.sequence(), output: true }])?;
    }
    let decode = f64::from(settings.n_gen) / start.elapsed().as_secs_f64();
    session.close(engine)?;
    Ok(Round { prefill, decode })
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(0.0);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { at(middle) } else { (at(middle.saturating_sub(1)) + at(middle)) / 2.0 };
        Self { median, min: at(0), max: at(values.len().saturating_sub(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_median_is_in_the_middle() {
        let odd = Spread::of(vec![3.0, 1.0, 2.0]);
        assert_eq!((odd.median, odd.min, odd.max), (2.0, 1.0, 3.0));
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0, 3.0]).median, 2.5);
    }
}
