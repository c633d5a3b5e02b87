//! A model, its context, its memory and its backend in words. Takes what the engine knows; gives lines.

use crate::limit::Bound;
use crate::output::{mib, mib_number, plain};
use minfer::{
    Change, ContextChoice, ContextReason, Fitted, Fusion, GgufFile, Ledger, Levers, MemoryFigures, Owner, Shortfall,
};
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

/// All of it, weights, KV cache, and the arena under every strategy.
pub fn memory(ledger: &Ledger, figures: MemoryFigures) -> String {
    format!(
        "{} in all: {} weights (mapped) + {} KV cache + {} arena + the rest; arena naive {}, pool {}, planned {}, lower \
         bound {} MiB",
        mib(ledger.total()),
        mib(ledger.sum(Owner::Weights)),
        mib(ledger.sum(Owner::Kv)),
        mib(figures.used_bytes),
        mib_number(figures.naive_bytes),
        mib_number(figures.pool_bytes),
        mib_number(figures.planned_bytes),
        mib_number(figures.lower_bound_bytes),
    )
}

/// A change as it is typed.
pub fn flag(change: Change) -> String {
    match change {
        Change::NCtx(n_ctx) => format!("--n-ctx {n_ctx}"),
        Change::Ubatch(n_ubatch) => format!("--ubatch {n_ubatch}"),
        Change::Slots(n_slots) => format!("--slots {n_slots}"),
        Change::CacheType(cache_type) => format!("--cache-type {}", cache_type.value_type()),
        Change::Strategy(strategy) => format!("--alloc {strategy}"),
        Change::Fusion(Fusion::ALL) => "no --no-fuse-… flag".into(),
        Change::Fusion(fusion) => {
            let flags = [
                (fusion.qkv, "--no-fuse-qkv"),
                (fusion.ffn, "--no-fuse-ffn"),
                (fusion.residual, "--no-fuse-residual"),
                (fusion.quantize, "--no-fuse-quantize"),
            ];
            flags.iter().filter(|(on, _)| !on).map(|&(_, flag)| flag).collect::<Vec<_>>().join(" ")
        }
    }
}

/// What `--fit` found.
pub fn fitted(flag: impl Fn(u32) -> String, fitted: &Fitted, bound: &Bound) -> String {
    let within = format!("in {}", bound.short_words());
    let needs = format!("{} bytes ({})", fitted.needed_bytes, mib(fitted.needed_bytes));
    match (fitted.value, fitted.next) {
        (None, _) => format!("not even {} fits {within}: it needs {needs}", flag(1)),
        (Some(value), Some((next, bytes))) => {
            format!("{} is the most that fits {within}: {needs}; {next} would need {bytes} bytes", flag(value))
        }
        (Some(value), None) => format!("{} is the most there is, and fits {within}: {needs}", flag(value)),
    }
}

/// Why a plan is refused and what would do, line by line. `levers` were there to find that; `flag` spells a change.
pub fn shortfall(shortfall: &Shortfall, levers: Levers, flag: fn(Change) -> String) -> Vec<String> {
    let Shortfall { budget, needed_bytes, .. } = *shortfall;
    let (needed, allowed) = (mib(needed_bytes), mib(budget.bytes));
    let missing = mib(needed_bytes.saturating_sub(budget.bytes));
    let mut lines = vec![match budget.weights {
        true => format!("does not fit: {needed} are needed, {allowed} are allowed, {missing} are missing"),
        false => {
            format!("does not fit: {needed} are needed beside the weights, there are {allowed}, {missing} are missing")
        }
    }];
    let owners = shortfall.owners.iter().map(|line| format!("{} {}", line.name, mib(line.bytes)));
    lines.push(format!("largest owners: {}", owners.collect::<Vec<_>>().join("; ")));
    for remedy in &shortfall.remedies {
        let enough = if remedy.suffices { "; that is enough" } else { "" };
        lines.push(format!("{} saves {}{enough}", flag(remedy.change), mib(remedy.saves_bytes)));
    }
    if let Some(together) = &shortfall.together {
        let flags: Vec<String> = together.changes.iter().map(|&change| flag(change)).collect();
        lines.push(format!("enough together: {}, which needs {}", flags.join(" "), mib(together.needed_bytes)));
    } else if !shortfall.remedies.first().is_some_and(|remedy| remedy.suffices) {
        let least = mib(shortfall.least_bytes);
        // Where a context need hold nothing, a smaller one was tried.
        let tokens = if levers.least_n_ctx == Some(1) { "" } else { ", or fewer tokens" };
        lines.push(format!(
            "no settings make it fit: {least} are needed at least; a smaller model or format may do{tokens}"
        ));
    }
    lines
}
