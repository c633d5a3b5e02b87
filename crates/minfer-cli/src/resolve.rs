//! Raw values become settings. Takes what was typed and the environment; gives a command whose every number is in its
//! range; opens no file and does nothing else.

mod bench;

pub use bench::{Bench, Doctor};

use crate::args::{self, EvalOutput, FitSetting, GraphOutput, TableOutput, TextOutput, TokenOutput};
use crate::env::Environment;
use crate::exit::Failure;
use crate::memory::{Limit, PROGRAM_BYTES};
use crate::watch::WatchSettings;
use minfer::{BackendKind, CacheType, EngineConfig, Fusion, Generate, Sampler, SamplingParams, SimdLevel, Strategy};
use minfer_engine::Fit;
use minfer_graph::GraphKind;
use minfer_text::PreTokenizer;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most positions of a context.
const MAX_N_CTX: u64 = minfer_engine::MAX_N_CTX as u64;
/// Most tokens of a batch.
const MAX_UBATCH: u64 = minfer_engine::MAX_N_UBATCH as u64;

/// Most sequences at once.
const MAX_SLOTS: u64 = minfer_engine::MAX_N_SEQUENCES as u64;
/// Longest search for a placement: a day.
const MAX_TIMEOUT_SECONDS: u64 = 86_400;

type Resolved<T> = Result<T, Failure>;

/// What to do, with settings.
pub enum Command {
    Run(Run),
    Inspect(Inspect),
    Plan(Plan),
    Graph(Graph),
    Tokenize(Tokenize),
    Template(Template),
    Bench(Bench),
    Doctor(Doctor),
    Eval(Eval),
    Memplan(Memplan),
}

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

/// `minfer inspect`.
pub struct Inspect {
    pub model: PathBuf,
    pub tensors: bool,
    pub output: TextOutput,
}

/// `minfer plan`.
pub enum Plan {
    /// Of a model.
    Of(ModelPlan),
    /// Two outputs of `--json`, compared.
    Diff { before: PathBuf, after: PathBuf },
}

/// `minfer plan MODEL`.
pub struct ModelPlan {
    pub model: PathBuf,
    pub n_ctx: Option<u32>,
    pub fit: Option<Fit>,
    pub compute: Compute,
    pub explain: bool,
    pub svg: Option<PathBuf>,
    pub html: Option<PathBuf>,
    pub json: bool,
}

/// `minfer graph`.
pub struct Graph {
    pub model: PathBuf,
    pub kind: GraphKind,
    pub n_ctx: Option<u32>,
    pub compute: Compute,
    pub passes: bool,
    pub output: GraphOutput,
}

/// `minfer tokenize`.
pub struct Tokenize {
    pub model: PathBuf,
    pub what: TokenizeWhat,
    pub words: Words,
    pub output: TokenOutput,
}

/// What `minfer tokenize` turns into what.
pub enum TokenizeWhat {
    Text { source: TextSource, add_special: bool, parse_special: bool },
    Chat(PathBuf),
    Ids { source: TextSource, show_special: bool },
}

/// `minfer template`.
pub struct Template {
    pub model: PathBuf,
    pub list: bool,
    pub chat: Option<PathBuf>,
    /// A file or a name.
    pub chat_template: Option<String>,
}

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

/// `minfer memplan`.
pub struct Memplan {
    /// The problem, or the placement.
    pub source: TextSource,
    pub capacity: Option<u64>,
    pub action: MemplanAction,
}

/// What `minfer memplan` does.
pub enum MemplanAction {
    Solve { minimize: bool, limit: Duration, output: TableOutput },
    Check { problem: Option<PathBuf> },
    Render { limit: Duration, file: Option<PathBuf> },
}

/// Checks every value, and lets flags win over the environment.
pub fn resolve(raw: args::Command, environment: &Environment) -> Resolved<Command> {
    Ok(match raw {
        args::Command::Run(raw) => Command::Run(run(*raw, environment)?),
        args::Command::Inspect(raw) => {
            Command::Inspect(Inspect { model: raw.model, tensors: raw.tensors, output: raw.output })
        }
        args::Command::Plan(raw) => Command::Plan(plan(raw, environment)?),
        args::Command::Graph(raw) => Command::Graph(graph(raw, environment)?),
        args::Command::Tokenize(raw) => Command::Tokenize(tokenize(raw)?),
        args::Command::Template(raw) => Command::Template(Template {
            model: raw.model,
            list: raw.list,
            chat: raw.chat,
            chat_template: text("--chat-template", raw.chat_template)?,
        }),
        args::Command::Bench(raw) => Command::Bench(bench::bench(*raw, environment)?),
        args::Command::Doctor(raw) => Command::Doctor(bench::doctor(raw, environment)?),
        args::Command::Eval(raw) => Command::Eval(eval(raw, environment)?),
        args::Command::Memplan(raw) => Command::Memplan(memplan(raw)?),
    })
}

fn run(raw: args::RunArgs, environment: &Environment) -> Resolved<Run> {
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

fn plan(raw: args::LedgerArgs, environment: &Environment) -> Resolved<Plan> {
    let mut compute = compute(&raw.plan, environment)?;
    compute.config.n_ubatch = in_range("--ubatch", raw.ubatch, 1..=MAX_UBATCH)?;
    compute.config.n_sequences = in_range("--slots", raw.slots, 1..=MAX_SLOTS)?;
    compute.limit = limit(&raw.memory)?;
    if let [before, after] = &raw.diff[..] {
        return Ok(Plan::Diff { before: before.clone(), after: after.clone() });
    }
    let fit = raw.fit.map(|what| match what {
        FitSetting::NCtx => Fit::NCtx,
        FitSetting::Ubatch => Fit::Ubatch,
        FitSetting::Slots => Fit::Slots,
    });
    if fit == Some(Fit::NCtx) && raw.n_ctx.is_some() {
        return Err(Failure::new("--fit n-ctx looks for the context that --n-ctx gives").hint("leave one of them out"));
    }
    Ok(Plan::Of(ModelPlan {
        model: raw.model.unwrap_or_default(),
        n_ctx: n_ctx(raw.n_ctx)?,
        fit,
        compute,
        explain: raw.explain,
        svg: raw.svg,
        html: raw.html,
        json: raw.json,
    }))
}

fn tokenize(raw: args::TokenizeArgs) -> Resolved<Tokenize> {
    let given = text("--text", raw.text)?;
    let what = match raw.chat {
        Some(path) => TokenizeWhat::Chat(path),
        None if raw.decode => TokenizeWhat::Ids { source: source(given, raw.file), show_special: raw.show_special },
        None => TokenizeWhat::Text {
            source: source(given, raw.file),
            add_special: !raw.no_special,
            parse_special: raw.parse_special,
        },
    };
    Ok(Tokenize { model: raw.model, what, words: words(raw.words)?, output: raw.output })
}

fn words(raw: args::WordArgs) -> Resolved<Words> {
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

fn graph(raw: args::GraphArgs, environment: &Environment) -> Resolved<Graph> {
    let mut compute = compute(&raw.plan, environment)?;
    compute.config.n_ubatch = in_range("--tokens", raw.tokens, 1..=MAX_UBATCH)?;
    if raw.passes && raw.output != GraphOutput::Text {
        return Err(Failure::new("--passes prints text only").hint("leave out --output, or --passes"));
    }
    Ok(Graph {
        model: raw.model,
        kind: match raw.kind {
            args::GraphKind::Prefill => GraphKind::Prefill,
            args::GraphKind::Decode => GraphKind::Decode,
        },
        n_ctx: n_ctx(raw.n_ctx)?,
        compute,
        passes: raw.passes,
        output: raw.output,
    })
}

fn eval(raw: args::EvalArgs, environment: &Environment) -> Resolved<Eval> {
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

fn compute(raw: &args::PlanArgs, environment: &Environment) -> Resolved<Compute> {
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

fn limit(raw: &args::MemoryArgs) -> Resolved<Limit> {
    raw.memory.as_deref().map_or(Ok(Limit::default()), Limit::parse)
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

fn watch(trace: Option<PathBuf>, environment: &Environment) -> WatchSettings {
    WatchSettings { trace: trace.or_else(|| environment.trace.clone()), dump: environment.graph_dump.clone() }
}

fn n_ctx(raw: Option<u64>) -> Resolved<Option<u32>> {
    raw.map(|n_ctx| in_range("--n-ctx", n_ctx, 1..=MAX_N_CTX)).transpose()
}

fn in_range(name: &str, got: u64, range: RangeInclusive<u64>) -> Resolved<u32> {
    u32::try_from(got)
        .ok()
        .filter(|_| range.contains(&got))
        .ok_or_else(|| Failure::new(format!("{name} is {got}, expected {} to {}", range.start(), range.end())))
}

fn to_threads(name: &str, got: u64) -> Resolved<NonZeroUsize> {
    let threads = in_range(name, got, 1..=1024)?;
    Ok(NonZeroUsize::new(to_usize(threads)).unwrap_or(NonZeroUsize::MIN))
}

fn to_usize(n: u32) -> usize {
    // Lossless: no target of this program has pointers of fewer than 32 bits.
    n as usize
}

fn source(text: Option<String>, file: Option<PathBuf>) -> TextSource {
    match (text, file) {
        (Some(text), _) => TextSource::Given(text),
        (None, Some(file)) => TextSource::File(file),
        (None, None) => TextSource::Stdin,
    }
}

/// Words are bytes; text must be UTF-8.
fn text(what: &str, raw: Option<OsString>) -> Resolved<Option<String>> {
    let not_utf8 = |raw: OsString| Failure::new(format!("{what} is not valid UTF-8: `{}`", raw.display()));
    raw.map(OsString::into_string).transpose().map_err(not_utf8)
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

fn memplan(raw: args::MemplanArgs) -> Resolved<Memplan> {
    let of = |file: PathBuf| if file.as_os_str() == "-" { TextSource::Stdin } else { TextSource::File(file) };
    let limit = |seconds: f64| {
        let limit = Duration::try_from_secs_f64(seconds).ok().filter(|l| l.as_secs() <= MAX_TIMEOUT_SECONDS);
        limit.ok_or_else(|| {
            Failure::new(format!("--timeout {seconds}: expected seconds from 0 to {MAX_TIMEOUT_SECONDS}"))
        })
    };
    Ok(match raw {
        args::MemplanArgs::Solve { problem, minimize, output } => Memplan {
            source: of(problem.file),
            capacity: problem.capacity,
            action: MemplanAction::Solve { minimize, limit: limit(problem.timeout)?, output },
        },
        args::MemplanArgs::Check { file, problem, capacity } => {
            Memplan { source: of(file), capacity, action: MemplanAction::Check { problem } }
        }
        args::MemplanArgs::Render { problem, out } => Memplan {
            source: of(problem.file),
            capacity: problem.capacity,
            action: MemplanAction::Render { limit: limit(problem.timeout)?, file: out },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(words: &str, environment: &Environment) -> Resolved<Command> {
        let words = std::iter::once("minfer").chain(words.split(' ')).map(OsString::from);
        resolve(args::parse(words), environment)
    }

    fn run_of(words: &str, environment: &Environment) -> Run {
        match resolved(words, environment) {
            Ok(Command::Run(run)) => run,
            Ok(_) => panic!("{words} is another command"),
            Err(failure) => panic!("{words}: {failure}"),
        }
    }

    fn failure_of(words: &str) -> String {
        resolved(words, &Environment::default()).err().map(|failure| failure.to_string()).unwrap_or_default()
    }

    #[test]
    fn numbers_out_of_range_are_refused_by_name() {
        for (words, start) in [
            ("m.gguf hi --threads 0", "--threads is 0, expected 1 to 1024"),
            ("m.gguf hi --temp -1", "--temp is -1, expected"),
            ("m.gguf hi --temp NaN", "--temp is NaN, expected"),
            ("m.gguf hi --top-p 2", "--top-p is 2, expected"),
            ("m.gguf hi --min-p -0.5", "--min-p is -0.5, expected"),
            ("m.gguf hi --top-k -3", "--top-k is -3, expected"),
            ("m.gguf hi --repeat-penalty 0", "--repeat-penalty is 0, expected"),
            ("m.gguf hi --n-ctx 1099511627776", "--n-ctx is 1099511627776, expected 1 to 16777216"),
            ("m.gguf hi --n-ctx 0", "--n-ctx is 0, expected"),
            ("m.gguf hi --n-predict 0", "--n-predict is 0, expected"),
            ("m.gguf hi --ubatch 0", "--ubatch is 0, expected"),
            ("eval m.gguf --ids 1,x", "--ids has `x`, expected"),
            ("eval m.gguf --ids 1,-2", "--ids has `-2`, expected"),
            ("eval m.gguf --ids ,", "--ids has ``, expected"),
            ("eval m.gguf --ids 1,,2", "--ids has ``, expected"),
            ("m.gguf hi --pre next-year", "--pre does not know `next-year`"),
            ("graph m.gguf --passes --output dot", "--passes prints text only"),
        ] {
            let message = failure_of(words);
            assert!(message.starts_with(start), "{words}: {message}");
        }
    }

    #[test]
    fn flags_win_over_the_environment() {
        let environment = Environment {
            threads: Some(3),
            no_fuse_qkv: true,
            trace: Some("env.jsonl".into()),
            ..Environment::default()
        };
        let run = run_of("m.gguf hi", &environment);
        assert_eq!((run.compute.threads.get(), run.watch.trace), (3, Some("env.jsonl".into())));
        assert!(!run.compute.config.fusion.qkv && run.compute.config.fusion.ffn);
        let run = run_of("m.gguf hi --threads 1 --trace flag.jsonl --no-fuse-ffn", &environment);
        assert_eq!((run.compute.threads.get(), run.watch.trace), (1, Some("flag.jsonl".into())));
        assert!(!run.compute.config.fusion.qkv && !run.compute.config.fusion.ffn);
    }
}
