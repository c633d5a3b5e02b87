//! `minfer eval`: the likelihood of given tokens, and the logits after the last.

use super::text::read_bytes;
use super::{admitted, backends, open, warn_of_paging};
use crate::args::EvalOutput;
use crate::describe;
use crate::exit::{Failure, Outcome};
use crate::memory;
use crate::output::{self, Table};
use crate::outputs::Outputs;
use crate::resolve::{Eval, EvalSource};
use crate::watch::Watch;
use anyhow::Result;
use minfer::{BatchToken, Engine, EngineConfig, EngineError, Levers};
use minfer_text::EncodeOptions;
use serde_json::json;
use std::sync::Arc;

/// What was found.
struct Score {
    n_tokens: usize,
    /// Mean of `-ln p(token | those before)` over all tokens but the first; `None` for a single one.
    mean_nll: Option<f64>,
    /// `ln Σ exp(logit)` of the last row.
    logsumexp: f64,
    /// The largest logits of the last row, in falling order.
    top: Vec<(u32, f32)>,
}

/// Prints the score of a text.
pub fn eval(settings: &Eval) -> Result<Outcome> {
    let model = open::model(&settings.model, None)?;
    let ids = match &settings.source {
        EvalSource::Ids(ids) => ids.clone(),
        EvalSource::Text(source) => {
            let text = read_bytes(source, "--text TEXT or --file FILE")?;
            model.tokenizer.encode(text, EncodeOptions { add_special: true, parse_special: false })
        }
    };
    let n_tokens = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let n_vocab = model.spec.n_vocab;
    if ids.is_empty() {
        return Err(Failure::new("the text is empty: there is nothing to score")
            .hint("--text TEXT, --file FILE or --ids IDS gives some")
            .into());
    }
    if let Some(&token) = ids.iter().find(|&&id| id >= n_vocab) {
        return Err(EngineError::TokenOutOfRange { token, n_vocab }.into());
    }
    // Refuses more than the model was trained for, before anything is allocated.
    minfer::choose_n_ctx(Some(n_tokens), ids.len(), Some(0), model.spec.n_ctx_train)?;
    // Every row of logits of a batch is kept, so batches are small.
    let n_batch = settings.compute.config.n_ubatch.min(n_tokens);
    let config = EngineConfig { n_ctx: n_tokens, n_ubatch: n_batch, n_outputs: n_batch, ..settings.compute.config };
    let levers = Levers { least_n_ctx: None, slots: false };
    let (config, blueprint) = admitted(&model, config, &settings.compute, levers, describe::flag)?;
    warn_of_paging(blueprint.ledger.total(), memory::memory());
    let outputs = Outputs::beside(&model.file);
    let mut outputs = match &settings.source {
        EvalSource::Ids(_) => outputs,
        EvalSource::Text(source) => outputs.keep_text(source, "the text"),
    };
    let watch = Watch::open(&settings.watch, &mut outputs)?;
    let mut engine =
        Engine::from_blueprint(Arc::new(model.map_weights()?), backends(&settings.compute)?, config, blueprint)?;
    watch.attach(&mut engine);
    let score = score(&mut engine, &ids, settings.top)?;
    watch.finish(&engine)?;
    print(&score, settings.output)?;
    Ok(Outcome::Done)
}

fn score(engine: &mut Engine, ids: &[u32], n_top: usize) -> Result<Score> {
    let sequence = engine.create_sequence()?;
    let n_batch = engine.config().token_capacity() as usize;
    let mut nll = 0.0;
    let mut last = Vec::new();
    let mut next = 1;
    for chunk in ids.chunks(n_batch) {
        let batch: Vec<BatchToken> = chunk.iter().map(|&token| BatchToken { token, sequence, output: true }).collect();
        let logits = engine.step(&batch)?;
        for row in logits.rows() {
            if !row.iter().any(|logit| logit.is_finite()) {
                return Err(EngineError::NoNumbers.into());
            }
            if let Some(&token) = ids.get(next) {
                nll += log_sum_exp(row) - f64::from(row[token as usize]);
            } else {
                last = row.to_vec();
            }
            next += 1;
        }
    }
    engine.release_sequence(sequence)?;
    let mut order: Vec<u32> = (0..last.len() as u32).collect();
    order.sort_by(|&a, &b| last[b as usize].total_cmp(&last[a as usize]).then(a.cmp(&b)));
    Ok(Score {
        n_tokens: ids.len(),
        mean_nll: (ids.len() > 1).then(|| nll / (ids.len() - 1) as f64),
        logsumexp: log_sum_exp(&last),
        top: order.iter().take(n_top).map(|&id| (id, last[id as usize])).collect(),
    })
}

/// `ln Σ exp(x)`, shifted by the largest so that nothing overflows.
fn log_sum_exp(row: &[f32]) -> f64 {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let largest = f64::from(largest);
    largest + row.iter().map(|&x| (f64::from(x) - largest).exp()).sum::<f64>().ln()
}

fn print(score: &Score, output: EvalOutput) -> Result<()> {
    let perplexity = score.mean_nll.map(f64::exp);
    match output {
        EvalOutput::Json => output::answer_json(&json!({
            "n_tokens": score.n_tokens,
            "mean_nll": score.mean_nll,
            "perplexity": perplexity,
            "logsumexp": score.logsumexp,
            "top": score.top,
        })),
        EvalOutput::Table => {
            let figure = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.6}"));
            let mut figures = Table::new(&[1]);
            figures.row(["tokens".to_owned(), score.n_tokens.to_string()]);
            figures.row(["mean nll".to_owned(), figure(score.mean_nll)]);
            figures.row(["perplexity".to_owned(), figure(perplexity)]);
            figures.row(["logsumexp".to_owned(), figure(Some(score.logsumexp))]);
            let mut top = Table::new(&[0, 1, 2]);
            top.row(["id", "logit", "probability"]);
            for &(id, logit) in &score.top {
                let p = (f64::from(logit) - score.logsumexp).exp();
                top.row([id.to_string(), format!("{logit:.5}"), format!("{p:.6}")]);
            }
            output::answer(|out| {
                figures.write(out, "")?;
                writeln!(out)?;
                top.write(out, "")
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::log_sum_exp;

    #[test]
    fn large_logits_do_not_overflow() {
        assert!((log_sum_exp(&[1000.0, 1000.0]) - (1000.0 + 2f64.ln())).abs() < 1e-12);
        assert!((log_sum_exp(&[0.0, 0.0, f32::NEG_INFINITY]) - 2f64.ln()).abs() < 1e-12);
    }
}
