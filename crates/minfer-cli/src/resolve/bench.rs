//! `minfer bench`. Takes what was typed and the environment; gives settings in their ranges.

use super::Resolved;
use super::shared::{Compute, MAX_N_CTX, MAX_UBATCH, compute, in_range, limit, n_ctx};
use crate::args::{self, BenchOutput};
use crate::env::Environment;
use crate::exit::Failure;
use std::path::PathBuf;

/// Most sequences of an engine.
const MAX_BATCH: u64 = 4096;
/// Most combinations of settings: each takes seconds.
const MAX_SETUPS: usize = 1000;

/// `minfer bench`.
pub struct Bench {
    pub model: PathBuf,
    /// Prompt and generated tokens, each timed apart.
    pub n_prompt: u32,
    pub n_gen: u32,
    /// Prompt and generated tokens that are timed as one.
    pub mixed: Vec<(u32, u32)>,
    pub depths: Vec<u32>,
    pub batches: Vec<u32>,
    pub rounds: u32,
    /// One per number of threads and type of cache.
    pub computes: Vec<Compute>,
    pub profile: bool,
    pub svg: Option<PathBuf>,
    pub output: BenchOutput,
}

impl Bench {
    /// Tokens of a sequence in the longest test.
    pub fn longest_tokens(&self) -> u64 {
        let tests = self.mixed.iter().copied().chain([(self.n_prompt, self.n_gen)]);
        let longest = tests.map(|(prompt, answer)| u64::from(prompt) + u64::from(answer)).max();
        self.depths.iter().copied().max().map_or(0, u64::from) + longest.unwrap_or(0)
    }

    /// Tokens of a sequence in all rounds at one depth: those that count, one more before them and perhaps one after.
    pub fn tokens_of_rounds(&self) -> u64 {
        let tests = self.mixed.iter().copied().chain([(self.n_prompt, self.n_gen)]);
        let n_tokens: u64 = tests.map(|(prompt, answer)| u64::from(prompt) + u64::from(answer)).sum();
        n_tokens * (u64::from(self.rounds) + 1 + u64::from(self.profile))
    }
}

pub(super) fn bench(raw: args::BenchArgs, environment: &Environment) -> Resolved<Bench> {
    let n_prompt = in_range("--n-prompt", raw.n_prompt, 0..=MAX_N_CTX)?;
    let n_gen = in_range("--n-gen", raw.n_gen, 0..=MAX_N_CTX)?;
    let mixed = raw.mixed.iter().map(|&(prompt, answer)| {
        Ok((in_range("P of --pg", prompt, 1..=MAX_N_CTX)?, in_range("G of --pg", answer, 1..=MAX_N_CTX)?))
    });
    let mixed = mixed.collect::<Resolved<Vec<_>>>()?;
    if n_prompt == 0 && n_gen == 0 && mixed.is_empty() {
        return Err(Failure::new("--n-prompt and --n-gen are 0: nothing is left to measure"));
    }
    let all = |name: &str, numbers: &[u64], range: std::ops::RangeInclusive<u64>| {
        numbers.iter().map(|&got| in_range(name, got, range.clone())).collect::<Resolved<Vec<_>>>()
    };
    let depths = all("--depth", &raw.depth, 0..=MAX_N_CTX)?;
    let batches = all("--batch", &raw.batch, 1..=MAX_BATCH)?;
    let rounds = in_range("--rounds", raw.rounds, 1..=1_000_000)?;

    let n_ubatch = in_range("--ubatch", raw.ubatch, 1..=MAX_UBATCH)?;
    let limit = limit(&raw.memory)?;

    if raw.profile && raw.output == BenchOutput::Csv {
        return Err(Failure::new("--profile makes tables of another shape than the results")
            .hint("--output table, markdown or json has both"));
    }
    // `None` is the default, or what the environment says.
    let threads: Vec<Option<u64>> = match &raw.threads[..] {
        [] => vec![None],
        list => list.iter().copied().map(Some).collect(),
    };
    let lists = [threads.len(), raw.cache_type.len(), depths.len(), batches.len()];
    let n_setups = lists.into_iter().fold(1usize, usize::saturating_mul);
    if n_setups > MAX_SETUPS {
        return Err(Failure::new(format!("these lists make {n_setups} combinations, expected at most {MAX_SETUPS}")));
    }
    let args::BenchArgs { model, profile, svg, output, .. } = raw;
    let mut bench =
        Bench { model, n_prompt, n_gen, mixed, depths, batches, rounds, computes: Vec::new(), profile, svg, output };
    let needed = in_range("--depth plus --n-prompt plus --n-gen", bench.longest_tokens(), 1..=MAX_N_CTX)?;
    let n_ctx = needed.max(n_ctx(raw.n_ctx)?.unwrap_or(1));
    for &threads in &threads {
        for &cache_type in &raw.cache_type {
            let plan =
                args::PlanArgs { backend: raw.backend, threads, cache_type, alloc: raw.alloc, fusion: raw.fusion };
            let mut compute = compute(&plan, environment)?;
            (compute.config.n_ctx, compute.config.n_ubatch) = (n_ctx, n_ubatch);
            compute.limit = limit;
            bench.computes.push(compute);
        }
    }
    Ok(bench)
}

#[cfg(test)]
mod tests {
    use super::super::{Command, resolve};
    use super::*;

    fn bench_of(words: &str) -> Result<Bench, String> {
        let words = ["minfer", "bench", "m.gguf"].into_iter().chain(words.split_whitespace()).map(Into::into);
        match resolve(args::parse(words), &Environment::default()) {
            Ok(Command::Bench(bench)) => Ok(bench),
            Ok(_) => panic!("another command"),
            Err(failure) => Err(failure.to_string()),
        }
    }

    #[test]
    fn the_contexts_of_a_benchmark_hold_it() {
        for (words, n_ctx) in [
            ("-p 100 -n 28", 128),
            ("-p 100 -n 28 --n-ctx 512", 512),
            ("-p 100 -n 28 -d 0,1000", 1128),
            ("-p 100 -n 28 -pg 200,3 --pg 10,10 -d 7", 210),
            ("-p 0 -n 5", 5),
        ] {
            let bench = bench_of(words).unwrap();
            assert!(bench.computes.iter().all(|compute| compute.config.n_ctx == n_ctx), "{words}");
        }
    }

    #[test]
    fn lists_are_combined() {
        let bench = bench_of("--threads 1,2 --cache-type f16,f32 --batch 1,4,8 -d 0,64 -pg 8,2").unwrap();
        let setups: Vec<_> =
            bench.computes.iter().map(|compute| (compute.threads.get(), compute.config.cache_type)).collect();
        use minfer::CacheType::{F16, F32};
        assert_eq!(setups, [(1, F16), (1, F32), (2, F16), (2, F32)]);
        assert_eq!((bench.batches, bench.depths, bench.mixed), (vec![1, 4, 8], vec![0, 64], vec![(8, 2)]));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (words, start) in [
            ("-p 16777216", "--depth plus --n-prompt plus --n-gen is"),
            ("-p 16777217", "--n-prompt is 16777217, expected 0 to"),
            ("-r 0", "--rounds is 0, expected"),
            ("-p 0 -n 0", "--n-prompt and --n-gen are 0"),
            ("--batch 1,0", "--batch is 0, expected 1 to 4096"),
            ("--threads 2,0", "--threads is 0, expected 1 to 1024"),
            ("-pg 0,4", "P of --pg is 0, expected"),
            ("--pg 4,0", "G of --pg is 0, expected"),
            ("-d 16777217", "--depth is"),
            ("--profile --output csv", "--profile makes tables"),
        ] {
            let message = bench_of(words).err().unwrap_or_default();
            assert!(message.starts_with(start), "{words}: {message}");
        }
        let many = vec!["1"; 40].join(",");
        let message = bench_of(&format!("--batch {many} -d {many}")).err().unwrap_or_default();
        assert!(message.contains("1600 combinations"), "{message}");
    }
}
