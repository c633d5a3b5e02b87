//! What the whole-engine tests share. Takes tiny or real models; gives engines on the backends a test names; must not
//! assert anything itself.

pub mod spy;

use minfer_backend::{Backend, ReferenceBackend};
use minfer_cpu::{CpuBackend, CpuOptions};
use minfer_engine::{BatchToken, Engine, EngineConfig, Logits, Model, Session};
use minfer_gguf::{DType, GgufFile};
use minfer_graph::CacheType;
use minfer_testkit::{Formats, TinyArch, TinyModel};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

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

/// The model that the tests do not fetch: a header of its shape with a hole behind, and the real file where it is at hand.
pub fn qwen_one_and_a_half_b() -> Vec<Arc<Model>> {
    let formats = Formats { v: DType::Q6_K, down: DType::Q6_K, output: DType::Q6_K, ..Formats::all(DType::Q4_K) };
    let shape = TinyModel {
        n_layer: 28,
        n_embd: 1536,
        n_head: 12,
        n_kv_head: 2,
        head_dim: 128,
        n_ff: 8960,
        n_vocab: 151_936,
        n_ctx_train: 32_768,
        formats,
        rope_base: 1_000_000.0,
        ..TinyModel::new("qwen2.5-1.5b", TinyArch::Qwen2)
    };
    let path = std::env::temp_dir().join(format!("minfer-{}-{}.gguf", shape.name, unique()));
    shape.write_sparse(&path, 0).expect("a sparse file can be written");
    let twin = Model::open(&path).expect("the testkit writes models that load");
    // The mapping keeps the file's bytes; its name is needed no more.
    let _ = std::fs::remove_file(&path);
    let real = minfer_testkit::models_dir().join("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf");
    let real = real.is_file().then(|| Arc::new(Model::open(&real).expect("a real model loads")));
    [Arc::new(twin)].into_iter().chain(real).collect()
}

/// A number that no other test of this machine has now.
pub fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
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
