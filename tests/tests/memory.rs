//! The memory figures of the design, on the shape of Qwen2.5-0.5B. Only the file's header is read.

use minfer_backend::{Backend, ReferenceBackend};
use minfer_cpu::{CpuBackend, CpuOptions};
use minfer_engine::{Blueprint, EngineConfig, Model};
use minfer_graph::{Fusion, GraphKind, GraphParams};
use minfer_model::build_graph;
use minfer_plan::{ArenaPlan, PlanOptions, plan};
use minfer_tests::real;

const MB: u64 = 1_000_000;

fn arena(model: &Model, backend: &dyn Backend, kind: GraphKind, n_tokens: u32, fusion: Fusion) -> (ArenaPlan, usize) {
    let params = GraphParams {
        kind,
        token_capacity: n_tokens,
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
    let models =
        ["smollm2-135m-instruct-q4_1.gguf", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "gemma3-270m-q4_k_m.gguf"];
    let cpu = CpuBackend::new(CpuOptions::default()).unwrap();
    for name in models {
        let model = real(name);
        for n_tokens in [1, 2, 7, 64, 440, 512] {
            for fusion in [Fusion::ALL, Fusion::NONE] {
                let (plan, _) = arena(&model, &cpu, GraphKind::Prefill, n_tokens, fusion);
                assert_eq!(plan.bytes, plan.figures.lower_bound_bytes, "{name} at {n_tokens} tokens");
            }
        }
    }
}

/// The ledger has a line for every owner, and KV lines of the known size: 128 columns × 4096 cells × 2 bytes.
#[test]
fn the_ledger_names_every_owner() {
    let model = real("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    let cpu = CpuBackend::new(CpuOptions::default()).unwrap();
    let config = EngineConfig::default();
    let ledger = Blueprint::new(&model, &config, &[cpu.capabilities()]).unwrap().ledger;
    let line =
        |name: &str| ledger.lines.iter().find(|line| line.name == name).unwrap_or_else(|| panic!("{name}")).bytes;
    assert_eq!(line("kv.0.k"), 128 * 4096 * 2);
    assert_eq!(ledger.sum(minfer_plan::Owner::Kv), 24 * 2 * 128 * 4096 * 2);
    assert_eq!(ledger.sum(minfer_plan::Owner::Weights), 491_400_064);
    for owner in [minfer_plan::Owner::Arena, minfer_plan::Owner::Tokenizer, minfer_plan::Owner::Threads] {
        assert!(ledger.sum(owner) > 0, "{owner:?}");
    }
    assert_eq!(ledger.total(), ledger.lines.iter().map(|line| line.bytes).sum::<u64>());
}
