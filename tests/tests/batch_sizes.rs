//! Rule 17 on real models: how far apart the logits of one prompt are when it is read in batches of other sizes. The
//! tolerances stand in ARCHITECTURE.md under "Threads and batches", with what was seen.

use minfer_engine::{EngineConfig, Model};
use minfer_testkit::golden::{Golden, from_json};
use minfer_testkit::logsumexp;
use minfer_tests::*;
use std::sync::Arc;

/// The least share of positions whose largest logit must be the same.
const LEAST_AGREEMENT: f64 = 0.96;

/// The first ids of the long prompt that the oracle's golden cases have for every model.
fn model_and_prompt(file: &str, n_tokens: usize) -> (Arc<Model>, Vec<u32>) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(file);
    let golden: Golden = from_json(&std::fs::read_to_string(path).unwrap()).unwrap();
    let case = golden.cases.into_iter().find(|case| case.name == "prose_long").unwrap();
    (real(&golden.model), case.ids[..n_tokens].to_vec())
}

/// Logits after every id, read in batches of `n_ubatch`.
fn logits(model: &Arc<Model>, threads: usize, n_ubatch: u32, ids: &[u32]) -> Vec<Vec<f32>> {
    let n_outputs = n_ubatch.min(ids.len() as u32);
    let config = EngineConfig { n_ctx: 256, n_ubatch, n_outputs, ..EngineConfig::default() };
    all_logits(&mut engine(model, cpu(threads), config), ids)
}

/// `Σ p (ln p - ln q)` over the whole vocabulary, in nats.
fn divergence(p: &[f32], q: &[f32]) -> f64 {
    let (norm_p, norm_q) = (logsumexp(p), logsumexp(q));
    let term = |(&p, &q): (&f32, &f32)| {
        let (log_p, log_q) = (f64::from(p) - norm_p, f64::from(q) - norm_q);
        log_p.exp() * (log_p - log_q)
    };
    p.iter().zip(q).map(term).sum()
}

/// The id of the largest logit; no sorting of a whole vocabulary.
fn largest(row: &[f32]) -> Option<usize> {
    (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]))
}

/// Reads the prompt at once, in batches of `large` tokens, and in small ones of each of these sizes.
fn check(file: &str, n_tokens: usize, large: u32, sizes: &[u32], most_divergence: f64) {
    let (model, ids) = model_and_prompt(file, n_tokens);
    let whole = logits(&model, 2, 512, &ids);
    assert_eq!(n_tokens as u32 % large, 0, "no small batch behind the large ones");
    assert!(logits(&model, 2, large, &ids) == whole, "{file}: {large} at once");
    assert!(logits(&model, 1, 512, &ids) == whole, "{file}: 1 thread");
    for &n_ubatch in sizes {
        let rows = logits(&model, 2, n_ubatch, &ids);
        let pairs = || whole.iter().zip(&rows);
        let mean = pairs().map(|(want, got)| divergence(want, got)).sum::<f64>() / n_tokens as f64;
        let n_same = pairs().filter(|(want, got)| largest(want) == largest(got)).count();
        let norms = pairs().map(|(want, got)| (logsumexp(want) - logsumexp(got)).abs()).fold(0.0, f64::max);
        println!("{file}, {n_ubatch} at once: mean KL {mean:.2e}, {n_same} of {n_tokens} alike, logsumexp {norms:.2}");
        assert_eq!(rows.len(), whole.len());
        assert!(mean <= most_divergence, "{file}, {n_ubatch} at once: mean KL {mean:e}");
        assert!(n_same as f64 >= LEAST_AGREEMENT * n_tokens as f64, "{file}, {n_ubatch} at once: {n_same} alike");
    }
}

#[test]
fn batch_sizes_agree_on_smollm2() {
    check("smollm2-135m-instruct-q4_1.public.json", 128, 64, &[1, 2, 4, 7], 3.5e-3);
}

/// A larger model, so fewer tokens; one and two at once have one kernel.
#[test]
fn batch_sizes_agree_on_qwen2() {
    check("qwen2.5-coder-0.5b-instruct-q4_k_m.public.json", 48, 16, &[1, 4, 7], 6e-4);
}
