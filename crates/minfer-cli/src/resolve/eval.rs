//! `minfer eval`, and lists of token ids. Takes what was typed and the environment; gives settings in their ranges.

use super::Resolved;
use super::shared::{Compute, MAX_UBATCH, TextSource, compute, in_range, limit, source, text, to_usize, watch};
use crate::args::{self, EvalOutput};
use crate::env::Environment;
use crate::exit::Failure;
use crate::watch::WatchSettings;
use std::path::PathBuf;

/// `minfer eval`.
pub struct Eval {
    pub model: PathBuf,
    pub source: EvalSource,
    pub top: usize,
    pub compute: Compute,
    pub watch: WatchSettings,
    pub output: EvalOutput,
}

/// What `minfer eval` scores.
pub enum EvalSource {
    Ids(Vec<u32>),
    Text(TextSource),
}

pub(super) fn eval(raw: args::EvalArgs, environment: &Environment) -> Resolved<Eval> {
    let mut compute = compute(&raw.plan, environment)?;
    compute.config.n_ubatch = in_range("--ubatch", raw.ubatch, 1..=MAX_UBATCH)?;
    compute.config.poison = raw.poison;
    compute.limit = limit(&raw.memory)?;
    let given = text("--text", raw.text)?;
    let source = match text("--ids", raw.ids)? {
        Some(list) => EvalSource::Ids(ids(&list)?),
        None => EvalSource::Text(source(given, raw.file)),
    };
    let top = to_usize(in_range("--top", raw.top, 1..=u64::from(u32::MAX))?);
    Ok(Eval { model: raw.model, source, top, compute, watch: watch(raw.trace, environment), output: raw.output })
}

/// Ids separated by commas or white space.
pub fn ids_of(what: &str, list: &str) -> Resolved<Vec<u32>> {
    if list.trim().is_empty() {
        return Ok(Vec::new());
    }
    let id = |word: &str| {
        let wrong = || Failure::new(format!("{what} has `{word}`, expected token ids such as 1,2,3"));
        word.parse().map_err(|_| wrong())
    };
    // Between commas there is something.
    let words = list.split(',').flat_map(|part| {
        let nothing = part.trim().is_empty().then_some("");
        nothing.into_iter().chain(part.split_whitespace())
    });
    words.map(id).collect()
}

fn ids(list: &str) -> Resolved<Vec<u32>> {
    let ids = ids_of("--ids", list)?;
    if ids.is_empty() {
        return Err(Failure::new("--ids is empty, expected token ids such as 1,2,3"));
    }
    Ok(ids)
}
