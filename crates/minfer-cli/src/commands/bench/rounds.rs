//! The measuring itself. Takes a model and settings; gives the times of every test, what it needed and where its time
//! went; prints nothing.

use super::profile::Profile;
use super::stats::Stats;
use crate::output;
use anyhow::Result;
use indicatif::ProgressBar;
use minfer::{BatchToken, CacheType, Engine, Logits, Session};
use minfer_engine::{Demand, Progress, Stopwatch};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    /// Reading a prompt.
    Prefill,
    /// Generating.
    Decode,
    /// A prompt and an answer as one.
    Mixed,
}

/// The settings of one result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setup {
    pub threads: NonZeroUsize,
    pub cache_type: CacheType,
    /// Sequences together.
    pub batch: u32,
    /// Tokens in each sequence's cache before the test.
    pub depth: u32,
    /// Tokens of the prompt and tokens generated, per sequence.
    pub n_prompt: u32,
    pub n_gen: u32,
}

/// One result.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    pub test: Test,
    pub setup: Setup,
    /// Tokens per second of all sequences, round by round.
    pub samples: Vec<f64>,
    pub tps: Stats,
    /// What one round needs.
    pub demand: Demand,
    /// One more round, step by step: its whole time, and where it went.
    pub profile: Option<(Duration, Profile)>,
}

impl Test {
    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Test::Prefill => "prefill",
            Test::Decode => "decode",
            Test::Mixed => "mixed",
        }
    }
}

impl Measured {
    fn new(test: Test, setup: Setup, times: &[Duration], demand: Demand, profile: Option<(Duration, Profile)>) -> Self {
        let n_tokens = f64::from(setup.batch) * (f64::from(setup.n_prompt) + f64::from(setup.n_gen));
        let samples: Vec<f64> = times.iter().map(|time| n_tokens / time.as_secs_f64().max(1e-9)).collect();
        Self { test, setup, tps: Stats::of(&samples), samples, demand, profile }
    }

    /// Such as `prefill 512` or `mixed 512+64`.
    pub fn label(&self) -> String {
        let Setup { n_prompt, n_gen, .. } = self.setup;
        match self.test {
            Test::Prefill => format!("prefill {n_prompt}"),
            Test::Decode => format!("decode {n_gen}"),
            Test::Mixed => format!("mixed {n_prompt}+{n_gen}"),
        }
    }

    /// Seconds of the round in the middle.
    pub fn median_s(&self) -> f64 {
        let n_tokens = f64::from(self.setup.batch) * (f64::from(self.setup.n_prompt) + f64::from(self.setup.n_gen));
        n_tokens / self.tps.median.max(1e-9)
    }
}

/// Sequences of an engine, all with the same number of tokens.
pub struct Bed {
    engine: Engine,
    sessions: Vec<Session>,
    /// Of each sequence: where its ids start.
    lanes: Vec<u64>,
    n_vocab: u64,
    /// Counts tokens.
    progress: ProgressBar,
}

/// Time of the prompts and of the generated tokens.
#[derive(Clone, Copy)]
struct Times {
    prefill: Duration,
    decode: Duration,
}

impl Bed {
    /// One sequence per lane; lanes with the same number read the same ids.
    pub fn new(mut engine: Engine, lanes: Vec<u64>) -> Result<Self> {
        let sessions = lanes.iter().map(|_| Ok(Session::new(&mut engine)?)).collect::<Result<Vec<_>>>()?;
        let n_vocab = u64::from(engine.model().spec.n_vocab.max(1));
        Ok(Self { engine, sessions, lanes, n_vocab, progress: ProgressBar::hidden() })
    }

    /// Tells every token that is read or generated.
    pub fn with_progress(self, progress: ProgressBar) -> Self {
        Self { progress, ..self }
    }

    /// What is measured from now on: in the bar, or where there is none as a line.
    pub fn say(&self, what: String) {
        if self.progress.is_hidden() {
            output::line(&format!("measuring {what}"));
        }
        self.progress.set_message(what);
    }

    /// Cuts or extends every sequence to this many tokens. Where layers with a window have passed what the next token would
    /// see, all of them are read again: nobody keeps cells that no sequence may ever see.
    pub fn settle(&mut self, depth: u32) -> Result<()> {
        for (session, lane) in self.sessions.iter_mut().zip(&self.lanes) {
            session.cut(&mut self.engine, depth as usize)?;
            let have = session.tokens().len() as u64;
            let ids: Vec<u32> = (have..u64::from(depth)).map(|i| id(lane * 31 + i * 104_723, self.n_vocab)).collect();
            if !ids.is_empty() {
                self.progress.inc_length(ids.len() as u64);
                session.read(&mut self.engine, &ids, &mut count(&self.progress))?;
            }
        }
        Ok(())
    }

    /// Measures a prompt of `n_prompt` tokens and `n_gen` more at this depth: as one test, or each as its own.
    pub fn measure(&mut self, setup: Setup, as_one: bool, rounds: u32, profiled: bool) -> Result<Vec<Measured>> {
        let mut times = Vec::new();
        // The round that is not counted tells what a round needs.
        let (_, needs) = self.observed_round(&setup, 1)?;
        for round in 0..u64::from(rounds) {
            times.push(self.round(&setup, round + 2, &mut || ())?);
        }
        let profile = if profiled { Some(self.observed_round(&setup, u64::from(rounds) + 2)?) } else { None };
        let demands = needs.map(|profile| profile.demand());
        if as_one {
            let whole: Vec<Duration> = times.iter().map(|time| time.prefill + time.decode).collect();
            let mut demand = demands[0];
            demand += demands[1];
            let profile = profile.map(|(time, [prefill, decode])| (time.prefill + time.decode, prefill.with(decode)));
            return Ok(vec![Measured::new(Test::Mixed, setup, &whole, demand, profile)]);
        }
        let (first, second) = match profile {
            Some((time, [prefill, decode])) => (Some((time.prefill, prefill)), Some((time.decode, decode))),
            None => (None, None),
        };
        let mut measured = Vec::new();
        if setup.n_prompt > 0 {
            let times: Vec<Duration> = times.iter().map(|time| time.prefill).collect();
            let setup = Setup { n_gen: 0, ..setup };
            measured.push(Measured::new(Test::Prefill, setup, &times, demands[0], first));
        }
        if setup.n_gen > 0 {
            let times: Vec<Duration> = times.iter().map(|time| time.decode).collect();
            let setup = Setup { depth: setup.depth + setup.n_prompt, n_prompt: 0, ..setup };
            measured.push(Measured::new(Test::Decode, setup, &times, demands[1], second));
        }
        Ok(measured)
    }

    /// One round; `between` is called after the prompts and after the generated tokens.
    fn round(&mut self, setup: &Setup, seed: u64, between: &mut dyn FnMut()) -> Result<Times> {
        let start = Instant::now();
        self.read_prompts(setup.n_prompt, seed)?;
        let prefill = start.elapsed();
        between();
        let start = Instant::now();
        for step in 0..setup.n_gen {
            self.decode_step(step, seed)?;
        }
        let decode = start.elapsed();
        between();
        self.settle(setup.depth)?;
        Ok(Times { prefill, decode })
    }

    /// The same step by step, with a book of each half.
    fn observed_round(&mut self, setup: &Setup, seed: u64) -> Result<(Times, [Profile; 2])> {
        let book = Arc::new(Mutex::new(Profile::default()));
        let writer = Arc::clone(&book);
        self.engine.observe(Box::new(Stopwatch::new(move |step| {
            writer.lock().unwrap_or_else(PoisonError::into_inner).add(&step);
        })));
        let mut books = Vec::new();
        let mut close = || books.push(std::mem::take(&mut *book.lock().unwrap_or_else(PoisonError::into_inner)));
        let times = self.round(setup, seed, &mut close);
        self.engine.stop_observing();
        let mut books = books.into_iter();
        Ok((times?, [books.next().unwrap_or_default(), books.next().unwrap_or_default()]))
    }

    /// Reads a prompt in every sequence, one after the other. The ids of lane 0 are those of the script that measures
    /// others.
    fn read_prompts(&mut self, n_prompt: u32, seed: u64) -> Result<()> {
        if n_prompt == 0 {
            return Ok(());
        }
        for (session, lane) in self.sessions.iter_mut().zip(&self.lanes) {
            let start = seed * 7919 + lane * 1_000_003;
            let prompt: Vec<u32> = (0..u64::from(n_prompt)).map(|i| id(start + i * 104_729, self.n_vocab)).collect();
            session.read(&mut self.engine, &prompt, &mut count(&self.progress))?;
        }
        Ok(())
    }

    /// One more token in every sequence, all in one batch.
    fn decode_step(&mut self, step: u32, seed: u64) -> Result<Logits> {
        let lanes = self.sessions.iter().zip(&self.lanes);
        let batch: Vec<BatchToken> = lanes
            .map(|(session, lane)| BatchToken {
                token: id(seed + lane * 17 + u64::from(step) * 31, self.n_vocab),
                sequence: session.sequence(),
                output: true,
            })
            .collect();
        let logits = self.engine.step(&batch)?;
        self.progress.inc(batch.len() as u64);
        Ok(logits)
    }
}

/// Tells how many tokens of a prompt each batch reads.
fn count(bar: &ProgressBar) -> impl FnMut(Progress) -> ControlFlow<()> + '_ {
    let mut counted = 0;
    move |progress| {
        if let Progress::Prompt { done, .. } = progress {
            bar.inc((done - counted) as u64);
            counted = done;
        }
        ControlFlow::Continue(())
    }
}

fn id(number: u64, n_vocab: u64) -> u32 {
    (number % n_vocab) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use minfer::{BackendKind, Blueprint, EngineConfig, GgufFile, Model};
    use minfer_graph::GraphKind;
    use std::collections::BTreeSet;

    fn engine(model: &Arc<Model>, config: EngineConfig) -> Engine {
        engine_on(BackendKind::Cpu, model, config)
    }

    fn engine_on(kind: BackendKind, model: &Arc<Model>, config: EngineConfig) -> Engine {
        let backends = minfer::backends(kind, NonZeroUsize::new(2), None).unwrap();
        Engine::new(Arc::clone(model), backends, config).unwrap()
    }

    fn tiny(name: &str) -> Arc<Model> {
        let file = GgufFile::from_bytes(minfer_testkit::tiny_model(name).to_bytes()).unwrap();
        Arc::new(Model::from_file(file).unwrap())
    }

    fn setup(batch: u32, depth: u32, n_prompt: u32, n_gen: u32) -> Setup {
        let threads = NonZeroUsize::new(2).unwrap();
        Setup { threads, cache_type: CacheType::F16, batch, depth, n_prompt, n_gen }
    }

    /// What is timed together is what would be computed apart. The fast backend sums in another order for several tokens,
    /// which quantised activations would round to other values: it is asked with a model of floats.
    #[test]
    fn sequences_decoded_together_give_what_each_gives_alone() {
        let cases = [("qwen2-q4_k_m", BackendKind::Reference, 0.0), ("qwen2-f32", BackendKind::Cpu, 1e-5)];
        for (name, kind, tolerance) in cases {
            let model = tiny(name);
            let cache_type = CacheType::F32;
            let config = EngineConfig { n_ctx: 96, n_sequences: 3, cache_type, ..EngineConfig::default() };
            let logits = |lanes: Vec<u64>| {
                let mut bed = Bed::new(engine_on(kind, &model, config), lanes).unwrap();
                bed.settle(20).unwrap();
                bed.read_prompts(9, 5).unwrap();
                (0..4).map(|step| bed.decode_step(step, 5).unwrap()).last().unwrap()
            };
            let together = logits(vec![0, 1, 2]);
            assert_ne!(together.row(0), together.row(1));
            for lane in 0..3u64 {
                let error = minfer_testkit::relative_error(together.row(lane as usize), logits(vec![lane]).row(0));
                assert!(error <= tolerance, "{name}, lane {lane}: {error}");
            }
        }
    }

    #[test]
    fn a_profile_covers_every_step_of_the_plan() {
        let model = tiny("gemma3-f32");
        let config = EngineConfig { n_ctx: 64, n_ubatch: 16, ..EngineConfig::default() };
        let mut bed = Bed::new(engine(&model, config), vec![0]).unwrap();
        let measured = bed.measure(setup(1, 0, 32, 3), false, 1, true).unwrap();
        let capabilities = minfer::capabilities(BackendKind::Cpu, NonZeroUsize::new(2), None);
        let blueprint = Blueprint::new(&model, &config.checked().unwrap(), &capabilities).unwrap();
        assert_eq!(blueprint.plan.graph.params.kind, GraphKind::Prefill);
        let planned: BTreeSet<&str> = blueprint.plan.steps.iter().map(|step| step.kernel.op.name()).collect();
        // The prompt takes two batches, the answer three.
        for (measured, runs) in measured.iter().zip([2, 3]) {
            let (whole, profile) = measured.profile.as_ref().unwrap();
            let rows = profile.rows();
            assert_eq!(rows.iter().map(|row| row.op).collect::<BTreeSet<_>>(), planned, "{:?}", measured.test);
            let calls: u64 = rows.iter().map(|row| row.calls).sum();
            assert_eq!(calls, runs * blueprint.plan.steps.len() as u64);
            assert!(profile.time() <= *whole);
        }
    }

    #[test]
    fn a_round_needs_what_the_plan_says() {
        let model = tiny("qwen2-q4_k_m");
        let config = EngineConfig { n_ctx: 64, n_sequences: 2, ..EngineConfig::default() };
        let need = |depth, n_gen, lanes: Vec<u64>| {
            let mut bed = Bed::new(engine(&model, config), lanes.clone()).unwrap();
            bed.settle(depth).unwrap();
            bed.measure(setup(lanes.len() as u32, depth, 0, n_gen), false, 1, false).unwrap()[0].demand
        };
        let (one, two) = (need(0, 1, vec![0]), need(0, 2, vec![0]));
        assert!(one.product_ops > 0 && one.planned_product_ops >= one.product_ops);
        // Every matrix of the file once, the embedding only where it is the output matrix too.
        let tensors = model.file.tensors();
        let is_output = |name: &str| name == "token_embd.weight" && !tensors.iter().any(|t| t.name == "output.weight");
        let matrices = tensors.iter().filter(|t| t.dims.len() == 2);
        let multiplied = matrices.filter(|t| t.name != "token_embd.weight" || is_output(&t.name));
        assert_eq!(one.product_ops, 2 * multiplied.map(|t| t.n_elems()).sum::<u64>());
        assert_eq!(two.weight_bytes, 2 * one.weight_bytes);
        // The second token sees two cells, the first one.
        assert_eq!(two.kv_read_bytes, 3 * one.kv_read_bytes);
        assert_eq!(need(20, 1, vec![0]).kv_read_bytes, 21 * one.kv_read_bytes);
        // Two sequences share the weights, all but the rows of their tokens; each has its own cells.
        let together = need(0, 1, vec![0, 1]);
        assert_eq!(together.product_ops, 2 * one.product_ops);
        assert_eq!(together.kv_read_bytes, 2 * one.kv_read_bytes);
        assert!(together.weight_bytes < one.weight_bytes * 11 / 10, "{together:?} {one:?}");
    }

    #[test]
    fn every_test_starts_at_its_depth() {
        let model = tiny("gemma3-f32");
        let config = EngineConfig { n_ctx: 64, ..EngineConfig::default() };
        let mut bed = Bed::new(engine(&model, config), vec![0]).unwrap();
        for depth in [7, 40, 0] {
            bed.settle(depth).unwrap();
            let measured = bed.measure(setup(1, depth, 5, 3), false, 2, false).unwrap();
            let seen: Vec<_> = measured.iter().map(|m| (m.test, m.setup.depth, m.samples.len())).collect();
            assert_eq!(seen, [(Test::Prefill, depth, 2), (Test::Decode, depth + 5, 2)]);
            let mixed = bed.measure(setup(1, depth, 5, 3), true, 1, true).unwrap();
            assert_eq!((mixed.len(), mixed[0].label()), (1, "mixed 5+3".to_owned()));
            let mut sum = measured[0].demand;
            sum += measured[1].demand;
            assert_eq!(mixed[0].demand, sum);
            assert_eq!(bed.sessions[0].tokens().len(), depth as usize);
        }
    }
}
