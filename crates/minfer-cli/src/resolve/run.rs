//! `minfer run`. Takes what was typed and the environment; gives settings in their ranges.

use super::Resolved;
use super::shared::{
    Compute, MAX_UBATCH, TextSource, Words, compute, in_range, limit, n_ctx, source, text, to_usize, watch, words,
};
use crate::args;
use crate::env::Environment;
use crate::exit::Failure;
use crate::watch::WatchSettings;
use minfer::{Generate, Sampler, SamplingParams};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// `minfer run`.
pub struct Run {
    pub model: PathBuf,
    pub prompt: TextSource,
    pub system: Option<String>,
    pub raw: bool,
    pub words: Words,
    pub quiet: bool,
    pub n_ctx: Option<u32>,
    pub memory_report: bool,
    pub generate: Generate,
    pub compute: Compute,
    pub watch: WatchSettings,
    pub dump_graph: Option<PathBuf>,
    pub dump_graph_json: Option<PathBuf>,
}

pub(super) fn run(raw: args::RunArgs, environment: &Environment) -> Resolved<Run> {
    let mut compute = compute(&raw.plan, environment)?;
    compute.config.n_ubatch = in_range("--ubatch", raw.ubatch, 1..=MAX_UBATCH)?;
    compute.config.poison = raw.poison;
    compute.limit = limit(&raw.memory)?;
    Ok(Run {
        model: raw.model,
        prompt: source(text("the prompt", raw.prompt)?, None),
        system: text("--system", raw.system)?,
        raw: raw.raw,
        words: words(raw.words)?,
        quiet: raw.quiet,
        n_ctx: n_ctx(raw.n_ctx)?,
        memory_report: raw.memory_report,
        generate: Generate {
            sampling: sampling(&raw.sampling)?,
            n_predict: raw
                .n_predict
                .map(|n| in_range("--n-predict", n, 1..=u64::from(u32::MAX)))
                .transpose()?
                .map(to_usize),
            stop: stop(raw.stop)?,
        },
        compute,
        watch: watch(raw.trace, environment),
        dump_graph: raw.dump_graph,
        dump_graph_json: raw.dump_graph_json,
    })
}

fn sampling(raw: &args::SamplingArgs) -> Resolved<SamplingParams> {
    let top_k = u32::try_from(raw.top_k)
        .map_err(|_| Failure::new(format!("--top-k is {}, expected 0 to {}", raw.top_k, u32::MAX)))?;
    let params = SamplingParams {
        temperature: raw.temp,
        top_k,
        top_p: raw.top_p,
        min_p: raw.min_p,
        repeat_penalty: raw.repeat_penalty,
        seed: raw.seed.unwrap_or_else(seed_from_clock),
        ..SamplingParams::default()
    };
    // The sampler knows its ranges; it is asked now, before anything is opened.
    match Sampler::new(params) {
        Ok(_) => Ok(params),
        Err(error) => {
            let flag = if error.parameter == "temperature" { "temp" } else { error.parameter };
            Err(Failure::new(format!("--{flag} is {}, expected {}", error.got, error.expected)))
        }
    }
}

/// Texts that end an answer.
fn stop(raw: Vec<OsString>) -> Resolved<Vec<String>> {
    let texts = raw.into_iter().filter_map(|word| text("--stop", Some(word)).transpose());
    let texts = texts.collect::<Resolved<Vec<_>>>()?;
    if texts.iter().any(String::is_empty) {
        return Err(Failure::new("--stop is empty, expected the text that ends an answer"));
    }
    Ok(texts)
}

/// Small enough to be typed again.
fn seed_from_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_nanos() % 1_000_000_007) as u64
}
