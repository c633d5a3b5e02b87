//! The memory figures of the design, on the shape of Qwen2.5-0.5B. Only the file's header is read.

use minfer_backend::{Backend, ReferenceBackend};
use minfer_cpu::{CpuBackend, CpuOptions};
use minfer_engine::{Blueprint, EngineConfig, Model};
use minfer_graph::{Fusion, GraphKind, GraphParams};
use minfer_model::build_graph;
use minfer_plan::{ArenaPlan, Owner, PlanOptions, Verdict, plan};
use minfer_tests::{qwen_one_and_a_half_b, real};
use std::time::{Duration, Instant};

const MB: u64 = 1_000_000;

fn arena(model: &Model, backend: &dyn Backend, kind: GraphKind, n_tokens: u32, fusion: Fusion) -> (ArenaPlan, usize) {
    let params = GraphParams {
        kind,
        token_capacity: n_tokens,
        batch_capacity: n_tokens,
        output_capacity: 1,
        sequence_capacity: 1,
        n_ctx: 4096,
        n_cells: 4096,
        cache_type: minfer_graph::CacheType::F16,
        fusion,
        weights_version: 0,
    };
    let graph = build_graph(&model.spec, &params).unwrap();
    let plan = plan(&graph, &[backend.capabilities()], PlanOptions::default()).unwrap();
    (plan.arenas[0].clone(), graph.nodes.len())
}

#[test]
fn prefill_of_440_tokens() {
    let model = real("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    // Every value in floats and on its own: what a graph without planning takes.
    let (plain, n_nodes) = arena(&model, &ReferenceBackend::new(), GraphKind::Prefill, 440, Fusion::NONE);
    println!("{n_nodes} nodes, unfused f32: {:?}", plain.figures);
    assert!((1_100 * MB..1_450 * MB).contains(&plain.figures.naive_bytes), "{:?}", plain.figures);
    assert_eq!(plain.bytes, plain.figures.lower_bound_bytes);

    let cpu = CpuBackend::new(CpuOptions::default()).unwrap();
    let (fused, _) = arena(&model, &cpu, GraphKind::Prefill, 440, Fusion::ALL);
    println!("fused: {:?}", fused.figures);
    assert_eq!(fused.bytes, fused.figures.lower_bound_bytes);
    assert!(fused.bytes <= 8 * MB, "{:?}", fused.figures);
}

#[test]
fn decode_takes_a_couple_of_dozen_buffers() {
    let model = real("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    for fusion in [Fusion::ALL, Fusion::NONE] {
        let cpu = CpuBackend::new(CpuOptions::default()).unwrap();
        let (decode, n_nodes) = arena(&model, &cpu, GraphKind::Decode, 1, fusion);
        println!("{n_nodes} nodes, pool: {} buffers, {:?}", decode.figures.pool_buffers, decode.figures);
        assert!((400..520).contains(&n_nodes), "{n_nodes}");
        assert!(decode.figures.pool_buffers <= 24, "{} buffers", decode.figures.pool_buffers);
        assert_eq!(decode.bytes, decode.figures.lower_bound_bytes);
    }
}

/// Every graph of every size reaches its lower bound.
#[test]
fn plans_reach_their_lower_bound() {
    let names =
        ["smollm2-135m-instruct-q4_1.gguf", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "gemma3-270m-q4_k_m.gguf"];
    let cpu = CpuBackend::new(CpuOptions::default()).unwrap();
    for model in names.map(real).into_iter().chain(qwen_one_and_a_half_b()) {
        let name = model.spec.name.as_deref().unwrap_or_default();
        let prefill = [1, 2, 7, 64, 440, 512].map(|n_tokens| (GraphKind::Prefill, n_tokens));
        let mut slowest = Duration::ZERO;
        for (kind, n_tokens) in prefill.into_iter().chain([(GraphKind::Decode, 1)]) {
            for fusion in [Fusion::ALL, Fusion::NONE] {
                let start = Instant::now();
                let (plan, _) = arena(&model, &cpu, kind, n_tokens, fusion);
                slowest = slowest.max(start.elapsed());
                assert_eq!(plan.bytes, plan.figures.lower_bound_bytes, "{name} at {n_tokens} tokens");
                assert_eq!(plan.certificate.verdict, Verdict::Optimal);
            }
        }
        println!("{name}: the slowest graph was built and planned in {slowest:?}");
    }
}

/// One batch of 512 tokens, for which another engine reserves 300.25 MiB of compute buffers.
#[test]
fn prefill_of_512_tokens() {
    let model = real("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    let cpu = CpuBackend::new(CpuOptions::default()).unwrap();
    let (plan, _) = arena(&model, &cpu, GraphKind::Prefill, 512, Fusion::ALL);
    assert!(plan.bytes <= 16 << 20, "{:?}", plan.figures);
}

/// The ledger has a line for every owner, and KV lines of the known size: 128 columns × 4096 cells × 2 bytes.
#[test]
fn the_ledger_names_every_owner() {
    let model = real("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    let cpu = CpuBackend::new(CpuOptions::default()).unwrap();
    let config = EngineConfig { program_bytes: 1000, ..EngineConfig::default() };
    let ledger = Blueprint::new(&model, &config, &[cpu.capabilities()]).unwrap().ledger;
    assert_eq!(ledger.sum(Owner::Kv), 24 * 2 * 128 * 4096 * 2);
    assert_eq!(ledger.sum(Owner::Weights), 491_400_064);
    assert_eq!(ledger.sum(Owner::Program), 1000);
    for owner in Owner::ALL {
        assert!(ledger.sum(owner) > 0, "{owner}");
    }
    // The embedding is not the output matrix here: it is read a row at a time, and has a line of its own.
    let embedding = ledger.lines.iter().find(|line| line.name == "token embedding").unwrap();
    assert_eq!((embedding.owner, embedding.bytes), (Owner::Weights, 93_592_576));
    assert!(embedding.on_demand);
    assert_eq!(ledger.on_demand(), embedding.bytes);
    assert_eq!(ledger.total(), ledger.lines.iter().map(|line| line.bytes).sum::<u64>());
    assert_eq!(ledger.total(), Owner::ALL.iter().map(|&owner| ledger.sum(owner)).sum::<u64>());
}
