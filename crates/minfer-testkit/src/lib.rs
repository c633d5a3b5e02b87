//! Development only: tiny GGUF models, golden cases, tolerances, the folder of real models.
//!
//! Takes: a [`TinyModel`] (shape, formats, options, seed). Gives: the bytes of a small random GGUF with a tokenizer, the
//! same on every machine. Must not know the engine: the crates under test depend on this one for their tests. It writes
//! files, so it spells keys and tensor names on its own; reading them back with `minfer-model` is what keeps both honest.

pub mod golden;
mod models;
mod rng;
mod tiny;
mod tolerance;

pub use models::{model_path, models_dir};
pub use rng::Rng;
pub use tiny::{Formats, RopeScaling, TinyArch, TinyModel, VOCAB_CONTROLS, fnv1a64, tiny_model, tiny_models};
pub use tolerance::{
    KL_TOP, REFERENCE_TOLERANCE, Top, argmax, kl_divergence, logsumexp, relative_error, relative_error_top, top_k,
};
