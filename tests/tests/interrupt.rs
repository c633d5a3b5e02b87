//! An interrupt ends a run between two steps, and nobody notices afterwards.

use minfer_backend::{DeferringBackend, ReferenceBackend};
use minfer_engine::*;
use minfer_graph::KvSide;
use minfer_testkit::{TinyArch, TinyModel};
use minfer_tests::spy::{Call, Spy};
use minfer_tests::*;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Tokens of a batch: enough that the scheduler looks at the interrupt after every step.
const BATCH: u32 = 128;

fn prompt(n: u32) -> Vec<u32> {
    (0..n).map(|i| (i * 37 + 11) % 250).collect()
}

fn settings(poison: bool) -> EngineConfig {
    EngineConfig { n_ubatch: BATCH, poison, ..config(512) }
}

/// Counts steps and raises an interrupt after one of them.
struct Raiser {
    interrupt: Interrupt,
    after: usize,
    seen: Arc<AtomicUsize>,
}

impl Observer for Raiser {
    fn after_step(&mut self, _step: usize, _view: &mut RunView<'_>) -> Result<(), EngineError> {
        if self.seen.fetch_add(1, Relaxed) + 1 == self.after {
            self.interrupt.raise();
        }
        Ok(())
    }
}

/// Raises the engine's interrupt after so many steps from now on; gives the count of those that ran.
fn raise_after(engine: &mut Engine, after: usize) -> Arc<AtomicUsize> {
    let seen = Arc::new(AtomicUsize::new(0));
    let interrupt = engine.interrupt();
    engine.observe(Box::new(Raiser { interrupt, after, seen: Arc::clone(&seen) }));
    seen
}

fn read(engine: &mut Engine, session: &mut Session, ids: &[u32]) -> Option<Vec<f32>> {
    session.read(engine, ids, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Also where layers have given cells of their window back for the tokens that are then not read.
#[test]
fn an_interrupt_ends_the_run_before_the_next_step() {
    let windowed = TinyModel { window: Some(20), ..TinyModel::new("windowed", TinyArch::Gemma3) };
    for (model, n_first) in [(tiny_named("qwen2-f32"), BATCH), (tiny(&windowed), 2 * BATCH + 32)] {
        let ids = prompt(n_first + 40);
        let (first, second) = ids.split_at(n_first as usize);
        for poison in [false, true] {
            let mut undisturbed = engine(&model, cpu(2), settings(poison));
            let mut session = Session::new(&mut undisturbed).unwrap();
            read(&mut undisturbed, &mut session, first).unwrap();
            let whole = read(&mut undisturbed, &mut session, second).unwrap();
            for after in [1, 2, 7, 15] {
                let mut engine = engine(&model, cpu(2), settings(poison));
                let mut session = Session::new(&mut engine).unwrap();
                read(&mut engine, &mut session, first).unwrap();

                let seen = raise_after(&mut engine, after);
                assert_eq!(read(&mut engine, &mut session, second), None);
                assert_eq!(seen.load(Relaxed), after, "no step after the interrupt");
                assert_eq!(session.tokens(), first);
                assert_eq!(engine.sequence_len(session.sequence()).unwrap(), n_first, "the cells are given back");

                // One wish ends one run, and what was half done leaves no trace.
                engine.stop_observing();
                let logits = read(&mut engine, &mut session, second).unwrap();
                assert_eq!(bits(&logits), bits(&whole), "interrupted after {after} steps, poison {poison}");
            }
        }
    }
}

/// Nobody watches: the workers walk several steps at a time, but of a long batch never more than one.
#[test]
fn long_batches_can_be_interrupted_after_every_step() {
    let model = tiny_named("qwen2-f32");
    let calls = Arc::new(Mutex::new(Vec::new()));
    let raise: Arc<Mutex<Option<(usize, Interrupt)>>> = Arc::default();
    let tell = {
        let (calls, raise) = (Arc::clone(&calls), Arc::clone(&raise));
        move |call: Call<'_>| {
            if let Call::Run(steps) = call {
                let mut calls = calls.lock().unwrap();
                calls.push(steps.len());
                let due = raise.lock().unwrap().take_if(|(n_calls, _)| *n_calls == calls.len());
                due.iter().for_each(|(_, interrupt)| interrupt.raise());
            }
        }
    };
    // Queued steps must have run before anything else does.
    let backend = Spy { inner: Box::new(DeferringBackend::new(ReferenceBackend::new())), tell };
    let mut engine = engine(&model, vec![Box::new(backend)], settings(false));
    let walks = || std::mem::take(&mut *calls.lock().unwrap());

    last_logits(&mut engine, &prompt(BATCH));
    let whole = walks();
    assert!(whole.len() > 10 && whole.iter().all(|&n_steps| n_steps == 1), "{whole:?}");
    let n_steps = whole.len();
    last_logits(&mut engine, &prompt(BATCH / 4));
    let quarter = walks();
    assert!(quarter.iter().all(|&n_steps| n_steps <= 4) && quarter.len() == n_steps.div_ceil(4), "{quarter:?}");
    last_logits(&mut engine, &[1]);
    assert_eq!(walks().len(), 1, "a single token is one walk");

    // Raised while a step runs: it is the last. The first layer's keys have been written by then.
    *raise.lock().unwrap() = Some((8, engine.interrupt()));
    let mut session = Session::new(&mut engine).unwrap();
    assert_eq!(read(&mut engine, &mut session, &prompt(BATCH)), None);
    assert_eq!(walks(), [1; 8]);
    assert_eq!(engine.read_kv(0, KvSide::K, &mut |_| {}).unwrap(), Some(()), "nothing is pending");
    assert_eq!(engine.sequence_len(session.sequence()).unwrap(), 0);
}

#[test]
fn an_interrupt_is_the_end_of_an_answer() {
    let model = tiny_named("qwen2-f32");
    let greedy = SamplingParams { temperature: 0.0, ..SamplingParams::default() };
    let mut engine = engine(&model, cpu(1), settings(false));
    let interrupt = engine.interrupt();

    // In the second batch of the prompt: what was read of it is told.
    let mut session = Session::new(&mut engine).unwrap();
    let mut sampler = Sampler::new(greedy).unwrap();
    let (end, timing) = session
        .generate(&mut engine, &prompt(BATCH + 40), &mut sampler, None, &mut |progress| {
            assert!(matches!(progress, Progress::Prompt { done: 128, .. }), "{progress:?}");
            interrupt.raise();
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((end, timing.n_prompt, timing.n_decode), (EndReason::Cancelled, BATCH as usize, 0));
    assert_eq!(session.tokens().len(), BATCH as usize);
    session.close(&mut engine).unwrap();

    // After the third token.
    let mut session = Session::new(&mut engine).unwrap();
    let mut n_tokens = 0;
    let (end, timing) = session
        .generate(&mut engine, &prompt(40), &mut sampler, Some(9), &mut |progress| {
            n_tokens += usize::from(matches!(progress, Progress::Token(_)));
            if n_tokens == 3 {
                interrupt.raise();
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((end, n_tokens, timing.n_decode), (EndReason::Cancelled, 3, 2));
    assert_eq!(session.tokens().len(), 40 + 2);
}

#[test]
fn an_interrupt_that_came_too_late_can_be_forgotten() {
    let model = tiny_named("qwen2-f32");
    let mut engine = engine(&model, cpu(1), settings(false));
    let mut session = Session::new(&mut engine).unwrap();
    let interrupt = engine.interrupt();
    interrupt.raise();
    interrupt.clear();
    assert!(read(&mut engine, &mut session, &prompt(9)).is_some());
    interrupt.raise();
    assert!(read(&mut engine, &mut session, &prompt(9)).is_none());
    assert!(read(&mut engine, &mut session, &prompt(9)).is_some());
}
