//! What the whole-engine tests share. Takes tiny or real models; gives engines on the backends a test names; must not
//! assert anything itself.

use minfer_backend::{Backend, ReferenceBackend};
use minfer_cpu::{CpuBackend, CpuOptions};
use minfer_engine::{BatchToken, Engine, EngineConfig, Logits, Model, Session};
use minfer_gguf::GgufFile;
use minfer_graph::CacheType;
use minfer_testkit::TinyModel;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A list of backends for one engine.
pub type Backends = Vec<Box<dyn Backend>>;

/// The oracle's stand-in.
pub fn reference() -> Backends {
    vec![Box::new(ReferenceBackend::new())]
}

/// The fast backend with this many threads.
pub fn cpu(threads: usize) -> Backends {
    let threads = NonZeroUsize::new(threads).expect("at least one thread");
    let options = CpuOptions { threads, ..CpuOptions::default() };
    vec![Box::new(CpuBackend::new(options).expect("threads can be started"))]
}

/// A generated model, loaded.
pub fn tiny(model: &TinyModel) -> Arc<Model> {
    let file = GgufFile::from_bytes(model.to_bytes()).expect("the testkit writes valid files");
    Arc::new(Model::from_file(file).expect("the testkit writes models that load"))
}

/// A generated model by name.
pub fn tiny_named(name: &str) -> Arc<Model> {
    tiny(&minfer_testkit::tiny_model(name))
}

/// A downloaded model.
pub fn real(file_name: &str) -> Arc<Model> {
    let path = minfer_testkit::model_path(file_name);
    Arc::new(Model::open(path).expect("a real model loads"))
}

/// Settings for short tests.
pub fn config(n_ctx: u32) -> EngineConfig {
    EngineConfig { n_ctx, n_ubatch: 64, cache_type: CacheType::F32, ..EngineConfig::default() }
}

/// An engine, or the test ends.
pub fn engine(model: &Arc<Model>, backends: Backends, config: EngineConfig) -> Engine {
    Engine::new(model.clone(), backends, config).expect("the engine starts")
}

/// Logits after the last of these ids, in a fresh sequence.
pub fn last_logits(engine: &mut Engine, ids: &[u32]) -> Vec<f32> {
    let mut session = Session::new(engine).expect("a free sequence");
    let logits = session.read(engine, ids, &mut |_| ControlFlow::Continue(())).expect("the prompt is read");
    session.close(engine).expect("the sequence is released");
    logits.expect("nobody cancels")
}

/// The ids that follow when always the largest logit is taken.
pub fn greedy(engine: &mut Engine, ids: &[u32], n: usize) -> Vec<u32> {
    let mut session = Session::new(engine).expect("a free sequence");
    let mut logits = session.read(engine, ids, &mut |_| ControlFlow::Continue(())).expect("the prompt is read");
    let mut out = Vec::new();
    while let Some(row) = logits.filter(|_| out.len() < n) {
        let next = minfer_testkit::argmax(&row).expect("a row of logits");
        out.push(next);
        logits = session.read(engine, &[next], &mut |_| ControlFlow::Continue(())).expect("a step");
    }
    session.close(engine).expect("the sequence is released");
    out
}

/// Logits after every one of these ids, read in batches of `n_outputs` of the engine's settings.
pub fn all_logits(engine: &mut Engine, ids: &[u32]) -> Vec<Vec<f32>> {
    let sequence = engine.create_sequence().expect("a free sequence");
    let mut rows = Vec::new();
    for chunk in ids.chunks(engine.config().n_outputs as usize) {
        let batch: Vec<BatchToken> = chunk.iter().map(|&token| BatchToken { token, sequence, output: true }).collect();
        let logits: Logits = engine.step(&batch).expect("a step");
        rows.extend(logits.rows().map(<[f32]>::to_vec));
    }
    engine.release_sequence(sequence).expect("the sequence is released");
    rows
}

/// Bit patterns, for comparing NaNs and signed zeros too.
pub fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
