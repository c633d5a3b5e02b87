//! Golden cases: what the exact oracle says of a model. Takes JSON; gives plain data; must not know how a model is run.

use serde::{Deserialize, Serialize};

/// Cases of a real model, as in `tests/golden/*.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Golden {
    /// File name of the model.
    pub model: String,
    /// Its cases.
    pub cases: Vec<GoldenCase>,
}

/// One prompt of a real model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoldenCase {
    /// Name of the case.
    pub name: String,
    /// The text.
    pub prompt: String,
    /// Its ids, special tokens included.
    pub ids: Vec<u32>,
    /// The 32 largest logits after the last id, largest first: `(id, logit)`.
    pub top: Vec<(u32, f64)>,
    /// `ln Σ exp(logit)` over the whole vocabulary.
    pub logsumexp: f64,
    /// Mean of `-ln p` of each id but the first.
    pub mean_nll: f64,
    /// The ids that follow when always the largest logit is taken.
    pub greedy: Vec<u32>,
    /// For each of them, the largest logit minus the second largest.
    pub margins: Vec<f64>,
}

/// What the oracle says of a [`TinyModel`](crate::TinyModel), as in `tests/golden/tiny/*.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TinyGolden {
    /// Name of the model.
    pub model: String,
    /// [`fnv1a64`](crate::fnv1a64) of its bytes, in hex: tells a changed generator from a wrong engine.
    pub fnv1a64: String,
    /// The prompt.
    pub ids: Vec<u32>,
    /// All logits after the last id, rounded to nine digits.
    pub logits: Vec<f32>,
    /// The ids that follow when always the largest logit is taken.
    pub greedy: Vec<u32>,
    /// For each of them, the largest logit minus the second largest.
    pub margins: Vec<f64>,
}

/// Reads golden cases of either kind.
pub fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text)
}

/// The prompt that the golden cases of tiny models use: 45 ids, which cross the end of a KV block of 32 cells, without
/// those of control tokens.
pub fn tiny_prompt(n_vocab: u32) -> Vec<u32> {
    let plain = n_vocab.saturating_sub(crate::VOCAB_CONTROLS);
    let mut rng = crate::Rng::named(0, "prompt");
    (0..45).map(|_| rng.below(plain)).collect()
}
