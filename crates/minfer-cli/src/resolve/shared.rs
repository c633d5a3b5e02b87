//! Settings that several commands have. Takes raw values; gives them in their ranges; opens nothing.

use super::Resolved;
use crate::args;
use crate::env::Environment;
use crate::exit::Failure;
use crate::limit::Limit;
use crate::memory::PROGRAM_BYTES;
use crate::watch::WatchSettings;
use minfer::{BackendKind, CacheType, EngineConfig, Fusion, SimdLevel, Strategy};
use minfer_text::PreTokenizer;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Most positions of a context.
pub const MAX_N_CTX: u64 = minfer_engine::MAX_N_CTX as u64;
/// Most tokens of a batch.
pub const MAX_UBATCH: u64 = minfer_engine::MAX_N_UBATCH as u64;

/// Who computes, and how graphs are planned.
#[derive(Clone, Copy)]
pub struct Compute {
    pub backend: BackendKind,
    pub threads: NonZeroUsize,
    pub simd: Option<SimdLevel>,
    /// How much memory may be used.
    pub limit: Limit,
    /// Its sizes are set by each command.
    pub config: EngineConfig,
}

/// Where text comes from.
pub enum TextSource {
    Given(String),
    File(PathBuf),
    Stdin,
}

/// Other words than the file's.
pub struct Words {
    pub pre: Option<PreTokenizer>,
    /// A file or a name.
    pub chat_template: Option<String>,
}

pub(super) fn compute(raw: &args::PlanArgs, environment: &Environment) -> Resolved<Compute> {
    let threads = match (raw.threads, environment.threads) {
        (Some(threads), _) => to_threads("--threads", threads)?,
        (None, Some(threads)) => to_threads("MINFER_THREADS", threads)?,
        (None, None) => minfer::default_threads(),
    };
    let fusion = Fusion {
        qkv: !(raw.fusion.no_fuse_qkv || environment.no_fuse_qkv),
        ffn: !(raw.fusion.no_fuse_ffn || environment.no_fuse_ffn),
        residual: !(raw.fusion.no_fuse_residual || environment.no_fuse_residual),
        quantize: !(raw.fusion.no_fuse_quantize || environment.no_fuse_quantize),
    };
    Ok(Compute {
        backend: match raw.backend {
            args::Backend::Cpu => BackendKind::Cpu,
            args::Backend::Reference => BackendKind::Reference,
        },
        threads,
        simd: environment.simd,
        limit: Limit::default(),
        config: EngineConfig {
            cache_type: match raw.cache_type {
                args::CacheType::F32 => CacheType::F32,
                args::CacheType::F16 => CacheType::F16,
                args::CacheType::Q8_0 => CacheType::Q8_0,
            },
            strategy: match raw.alloc {
                args::Alloc::Naive => Strategy::Naive,
                args::Alloc::Pool => Strategy::Pool,
                args::Alloc::Planned => Strategy::Planned,
            },
            fusion,
            program_bytes: PROGRAM_BYTES,
            ..EngineConfig::default()
        },
    })
}

pub(super) fn limit(raw: &args::MemoryArgs) -> Resolved<Limit> {
    raw.memory.as_deref().map_or(Ok(Limit::default()), Limit::parse)
}

pub(super) fn words(raw: args::WordArgs) -> Resolved<Words> {
    let pre = |name: String| {
        PreTokenizer::from_name(&name).ok_or_else(|| {
            let known: Vec<&str> = PreTokenizer::names().collect();
            Failure::new(format!("--pre does not know `{name}`")).hint(format!("it knows {}", known.join(", ")))
        })
    };
    Ok(Words {
        pre: text("--pre", raw.pre)?.map(pre).transpose()?,
        chat_template: text("--chat-template", raw.chat_template)?,
    })
}

pub(super) fn watch(trace: Option<PathBuf>, environment: &Environment) -> WatchSettings {
    WatchSettings { trace: trace.or_else(|| environment.trace.clone()), dump: environment.graph_dump.clone() }
}

pub(super) fn n_ctx(raw: Option<u64>) -> Resolved<Option<u32>> {
    raw.map(|n_ctx| in_range("--n-ctx", n_ctx, 1..=MAX_N_CTX)).transpose()
}

pub(super) fn in_range(name: &str, got: u64, range: RangeInclusive<u64>) -> Resolved<u32> {
    u32::try_from(got)
        .ok()
        .filter(|_| range.contains(&got))
        .ok_or_else(|| Failure::new(format!("{name} is {got}, expected {} to {}", range.start(), range.end())))
}

pub(super) fn to_threads(name: &str, got: u64) -> Resolved<NonZeroUsize> {
    let threads = in_range(name, got, 1..=1024)?;
    Ok(NonZeroUsize::new(to_usize(threads)).unwrap_or(NonZeroUsize::MIN))
}

pub(super) fn to_usize(n: u32) -> usize {
    // Lossless: no target of this program has pointers of fewer than 32 bits.
    n as usize
}

pub(super) fn source(text: Option<String>, file: Option<PathBuf>) -> TextSource {
    match (text, file) {
        (Some(text), _) => TextSource::Given(text),
        (None, Some(file)) => TextSource::File(file),
        (None, None) => TextSource::Stdin,
    }
}

/// Words are bytes; text must be UTF-8.
pub(super) fn text(what: &str, raw: Option<OsString>) -> Resolved<Option<String>> {
    let not_utf8 = |raw: OsString| Failure::new(format!("{what} is not valid UTF-8: `{}`", raw.display()));
    raw.map(OsString::into_string).transpose().map_err(not_utf8)
}
