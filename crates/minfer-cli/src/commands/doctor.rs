//! `minfer doctor`: what this machine gives minfer. Measures for a few seconds; reads of a model its header only.

use super::{capabilities, limits, open};
use crate::args::TextOutput;
use crate::describe;
use crate::exit::Outcome;
use crate::limit::Limit;
use crate::memory::{self, Memory};
use crate::output::{self, Table, mib};
use crate::resolve::{Compute, Doctor};
use anyhow::Result;
use limits::Limits;
use minfer::{BackendKind, EngineConfig, GgufFile, SimdLevel};
use minfer_cpu::{Cache, Machine, Probe};
use minfer_engine::{Demand, Reach};
use minfer_graph::{BatchDims, GraphKind};
use minfer_model::{ModelSpec, build_graph, load_spec};
use minfer_plan::{PlanOptions, plan};
use serde_json::{Value, json};
use std::iter;
use std::num::NonZeroUsize;

/// Memory to read where no model tells how much: twice the last cache, within these bounds.
const LEAST_BYTES: u64 = 256 << 20;
const MOST_BYTES: u64 = 1 << 30;

/// A model, and what one token of it reads.
struct Bound {
    file: GgufFile,
    spec: ModelSpec,
    /// Positions in the cache, and the bytes that a token reads then.
    tokens: Vec<(u32, Demand)>,
}

/// All findings.
struct Findings {
    machine: Machine,
    memory: Option<Memory>,
    level: SimdLevel,
    default_threads: NonZeroUsize,
    /// Bytes that were read over and over.
    probe_bytes: u64,
    limits: Vec<Limits>,
    bound: Option<Bound>,
}

/// Looks at the machine, measures it, and says what that means for a model.
pub fn doctor(settings: &Doctor) -> Result<Outcome> {
    let bound = settings.model.as_ref().map(|path| Bound::of(open::header(path)?)).transpose()?;
    let (machine, memory) = (Machine::read(), memory::memory());
    let level = settings.simd.unwrap_or_else(SimdLevel::detect);
    let probe = Probe::new(level, limits::probe_bytes(wanted_bytes(&machine, bound.as_ref()), memory))
        .map_err(minfer::Error::from)?;
    let default_threads = machine.processors.default_threads();
    let most = settings.threads.unwrap_or(default_threads).get();
    let limits = thread_counts(most).map(|threads| Limits::measure(&probe, threads)).collect::<Result<Vec<_>>>()?;
    let findings = Findings { machine, memory, level, default_threads, probe_bytes: probe.bytes(), limits, bound };
    match settings.output {
        TextOutput::Text => findings.print()?,
        TextOutput::Json => output::answer_json(&findings.json())?,
    }
    Ok(Outcome::Done)
}

/// Each number up to eight, then only doublings and the last, so that large machines do not take minutes.
fn thread_counts(most: usize) -> impl Iterator<Item = NonZeroUsize> {
    (1..=most).filter(move |&n| n <= 8 || n == most || n.is_power_of_two()).filter_map(NonZeroUsize::new)
}

/// As many bytes as the model has, else more than the caches hold.
fn wanted_bytes(machine: &Machine, bound: Option<&Bound>) -> u64 {
    match bound {
        Some(bound) => limits::working_set(bound.file.file_bytes()),
        None => (2 * machine.last_cache_bytes().unwrap_or(0)).clamp(LEAST_BYTES, MOST_BYTES),
    }
}

impl Bound {
    /// Plans the model's decode graph; allocates none of it.
    fn of(file: GgufFile) -> Result<Self> {
        file.require_model()?;
        let spec = load_spec(&file)?;
        let n_ctx = minfer::choose_n_ctx(None, 0, Some(0), spec.n_ctx_train)?.n_ctx;
        let config = EngineConfig { n_ctx, ..EngineConfig::default() }.checked()?;
        let graph = build_graph(&spec, &config.graph_params(GraphKind::Decode, 0)?)?;
        let compute = Compute {
            backend: BackendKind::Cpu,
            threads: NonZeroUsize::MIN,
            simd: None,
            config,
            limit: Limit::default(),
        };
        let plan = plan(&graph, &capabilities(&compute), PlanOptions { strategy: config.strategy })?;
        let dims = BatchDims { n_tokens: 1, n_outputs: 1 };
        let demand = |depth: u32| {
            let reach = Reach::new(iter::once(depth..depth + 1));
            (depth, Demand::of_plan(&plan, &dims, &reach))
        };
        Ok(Self { file, spec, tokens: vec![demand(0), demand(n_ctx - 1)] })
    }
}

/// Tokens per second that no decode can exceed: every byte read once, at the bandwidth of reads alone.
fn bound_tps(limits: &Limits, demand: &Demand) -> f64 {
    limits.read_bytes_per_s / demand.read_bytes().max(1) as f64
}

impl Findings {
    fn print(&self) -> Result<()> {
        let machine = &self.machine;
        let unknown = || "not told by this system".to_owned();
        let mut table = Table::new(&[]);
        table.row(["processor".to_owned(), machine.processor.clone().unwrap_or_else(unknown)]);
        table.row(["simd".to_owned(), format!("{}; this processor has {}", self.level, available().join(", "))]);
        table.row(["threads".to_owned(), self.threads_words()]);
        let caches: Vec<String> = machine.caches.iter().map(cache_words).collect();
        table.row(["caches".to_owned(), if caches.is_empty() { unknown() } else { caches.join(", ") }]);
        table.row(["memory".to_owned(), self.memory_words().unwrap_or_else(unknown)]);

        let mut rates = Table::new(&[0, 1, 2]);
        rates.row(["threads", "reads GB/s", "8-bit GOP/s"]);
        for limits in &self.limits {
            let (read, int8) = (limits.read_bytes_per_s / 1e9, limits.int8_ops_per_s / 1e9);
            rates.row([limits.threads.to_string(), format!("{read:.1}"), format!("{int8:.0}")]);
        }
        output::answer(|out| {
            table.write(out, "")?;
            writeln!(
                out,
                "\nmeasured now, reading {} over and over, and multiplying in registers:\n",
                mib(self.probe_bytes)
            )?;
            rates.write(out, "")?;
            let Some(bound) = &self.bound else { return Ok(()) };
            writeln!(out, "\n{}", describe::model(&bound.spec, &bound.file))?;
            for (depth, demand) in &bound.tokens {
                let (weights, kv) = (mib(demand.weight_bytes), mib(demand.kv_read_bytes));
                writeln!(out, "a token after {depth} others reads {weights} of weights and {kv} of KV cache (f16)")?;
                for limits in &self.limits {
                    let (threads, tps) = (describe::threads(limits.threads), bound_tps(limits, demand));
                    writeln!(out, "  at most {tps:.1} tokens/s with {threads}")?;
                }
            }
            Ok(())
        })
    }

    /// How many threads compute by default, and why.
    fn threads_words(&self) -> String {
        let processors = &self.machine.processors;
        let cores = match processors.cores {
            Some(cores) => format!("{cores} physical"),
            None => "an unknown number of physical".to_owned(),
        };
        let allowed = processors.allowed.unwrap_or(processors.available.get());
        let quota = match processors.quota {
            Some(quota) => format!("a cgroup quota of {quota:.2} processors"),
            None => "no cgroup quota".to_owned(),
        };
        format!(
            "{} by default: {cores} cores among the {allowed} processors of the affinity mask, {quota}",
            self.default_threads
        )
    }

    fn memory_words(&self) -> Option<String> {
        let memory = self.memory?;
        let limit = match memory.group {
            Some(group) => format!("cgroup limit {}", mib(group.limit_bytes)),
            None => "no cgroup limit".to_owned(),
        };
        Some(format!("{}, {} available, {limit}", mib(memory.total_bytes), mib(memory.available_bytes)))
    }

    fn json(&self) -> Value {
        let (machine, processors) = (&self.machine, &self.machine.processors);
        let cache = |cache: &Cache| json!({ "level": cache.level, "kind": cache.kind, "bytes": cache.bytes, "processors": cache.n_shared });
        let limits = |limits: &Limits| {
            json!({
                "threads": limits.threads,
                "read_gb_s": limits.read_bytes_per_s / 1e9,
                "int8_gop_s": limits.int8_ops_per_s / 1e9,
            })
        };
        let bound = self.bound.as_ref().map(|bound| {
            let token = |(depth, demand): &(u32, Demand)| {
                json!({
                    "depth": depth,
                    "weight_bytes": demand.weight_bytes,
                    "kv_read_bytes": demand.kv_read_bytes,
                    "at_most_tps": self.limits.iter().map(|limits| bound_tps(limits, demand)).collect::<Vec<_>>(),
                })
            };
            json!({ "arch": bound.spec.arch, "decode": bound.tokens.iter().map(token).collect::<Vec<_>>() })
        });
        json!({
            "processor": machine.processor,
            "simd": self.level.name(),
            "simd_available": available(),
            "threads": {
                "default": self.default_threads,
                "physical_cores": processors.cores,
                "affinity_processors": processors.allowed,
                "available_processors": processors.available,
                "cgroup_quota": processors.quota,
            },
            "caches": machine.caches.iter().map(cache).collect::<Vec<_>>(),
            "memory_bytes": self.memory.map(|memory| memory.total_bytes),
            "available_bytes": self.memory.map(|memory| memory.available_bytes),
            "cgroup_memory_bytes": self.memory.and_then(|memory| memory.group).map(|group| group.limit_bytes),
            "probe_bytes": self.probe_bytes,
            "limits": self.limits.iter().map(limits).collect::<Vec<_>>(),
            "model": bound,
        })
    }
}

fn available() -> Vec<&'static str> {
    SimdLevel::ALL.into_iter().filter(|level| level.is_available()).map(SimdLevel::name).collect()
}

fn cache_words(cache: &Cache) -> String {
    let kind = match &cache.kind[..] {
        "Data" => "d",
        "Instruction" => "i",
        _ => "",
    };
    let size = if cache.bytes < 1 << 20 { format!("{} KiB", cache.bytes >> 10) } else { mib(cache.bytes) };
    let shared = if cache.n_shared > 1 { format!(" for {} processors", cache.n_shared) } else { String::new() };
    format!("L{}{kind} {size}{shared}", cache.level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_machines_are_measured_at_some_numbers_of_threads() {
        let counts = |most| thread_counts(most).map(NonZeroUsize::get).collect::<Vec<_>>();
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(3), [1, 2, 3]);
        assert_eq!(counts(48), [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 48]);
    }

    #[test]
    fn a_token_reads_the_weights_and_the_cells_before_it() {
        let file = GgufFile::from_bytes(minfer_testkit::tiny_model("gemma3-f32").to_bytes()).unwrap();
        let bound = Bound::of(file).unwrap();
        let [(0, first), (_, last)] = bound.tokens[..] else { panic!("{:?}", bound.tokens) };
        assert_eq!(first.weight_bytes, last.weight_bytes);
        assert!(first.weight_bytes > 0 && first.weight_bytes < 2 * bound.file.file_bytes());
        assert!(first.kv_read_bytes > 0 && last.kv_read_bytes > first.kv_read_bytes);
    }
}
