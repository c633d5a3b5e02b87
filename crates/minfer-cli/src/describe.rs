//! A model, its context, its memory and its backend in words. Takes what the engine knows; gives lines.

use crate::output::{mib, mib_number, plain};
use minfer::{ContextChoice, ContextReason, GgufFile, Ledger, MemoryFigures, Owner};
use minfer_gguf::TensorType;
use minfer_model::ModelSpec;
use std::collections::HashMap;
use std::num::NonZeroUsize;

/// The format that most bytes of a file are in, such as `Q4_K`.
pub fn quantisation(file: &GgufFile) -> Option<TensorType> {
    let mut bytes: HashMap<TensorType, u64> = HashMap::new();
    for tensor in file.tensors() {
        *bytes.entry(tensor.ty).or_default() += tensor.n_bytes;
    }
    bytes.into_iter().max_by_key(|&(ty, bytes)| (bytes, ty.ggml_id())).map(|(ty, _)| ty)
}

/// Architecture, name, format and size.
pub fn model(spec: &ModelSpec, file: &GgufFile) -> String {
    let name = spec.name.as_deref().map(|name| format!(" \"{}\"", plain(name))).unwrap_or_default();
    let format = quantisation(file).map(|ty| format!(", mostly {ty}")).unwrap_or_default();
    format!("{}{name}{format}, {} layers, {}", spec.arch, spec.n_layer, mib(file.file_bytes()))
}

/// A number of threads.
pub fn threads(n: NonZeroUsize) -> String {
    if n.get() == 1 { "1 thread".to_owned() } else { format!("{n} threads") }
}

/// The size of a context and why it has it.
pub fn context(choice: ContextChoice, n_ctx_train: u32) -> String {
    let n_ctx = choice.n_ctx;
    let reason = match choice.reason {
        ContextReason::ClampedToTraining => return format!("{n_ctx} tokens: as many as the model was trained for"),
        ContextReason::Asked => "as asked",
        ContextReason::Default => "the default",
        ContextReason::RaisedForPrompt => "raised to hold the prompt and the answer",
    };
    match n_ctx_train {
        0 => format!("{n_ctx} tokens: {reason}"),
        _ => format!("{n_ctx} tokens: {reason}; the model was trained for {n_ctx_train}"),
    }
}

/// Weights, KV cache, and the arena under every strategy.
pub fn memory(ledger: &Ledger, figures: MemoryFigures) -> String {
    format!(
        "{} weights (mapped) + {} KV cache + {} arena; arena naive {}, pool {}, planned {}, lower bound {} MiB",
        mib(ledger.sum(Owner::Weights)),
        mib(ledger.sum(Owner::Kv)),
        mib(figures.used_bytes),
        mib_number(figures.naive_bytes),
        mib_number(figures.pool_bytes),
        mib_number(figures.planned_bytes),
        mib_number(figures.lower_bound_bytes),
    )
}
