//! Fused and unfused graphs give the same answers, and the fused ones really are fused.

use minfer_engine::EngineConfig;
use minfer_graph::{Fusion, GraphKind, GraphParams, Op, ValueType};
use minfer_model::build_graph;
use minfer_plan::{Plan, PlanOptions, plan};
use minfer_testkit::golden::tiny_prompt;
use minfer_testkit::relative_error;
use minfer_tests::*;

/// Relative error allowed where the order of additions differs: quantised operands are rounded from values that differ in
/// the last bits, so a few of them fall to the next integer.
const TOLERANCE: f64 = 2e-3;

/// The same where nothing is quantised.
const FLOAT_TOLERANCE: f64 = 1e-5;

fn planned(model: &minfer_engine::Model, backends: &Backends, fusion: Fusion) -> Plan {
    let params = GraphParams {
        kind: GraphKind::Prefill,
        token_capacity: 64,
        batch_capacity: 64,
        output_capacity: 1,
        sequence_capacity: 1,
        n_ctx: 64,
        n_cells: 64,
        cache_type: minfer_graph::CacheType::F32,
        fusion,
        weights_version: 0,
    };
    let graph = build_graph(&model.spec, &params).unwrap();
    let capabilities: Vec<_> = backends.iter().map(|backend| backend.capabilities()).collect();
    plan(&graph, &capabilities, PlanOptions::default()).unwrap()
}

fn count(plan: &Plan, is: fn(&Op) -> bool) -> u32 {
    plan.steps.iter().filter(|step| is(&step.kernel.op)).count() as u32
}

#[test]
fn fusion_is_neutral() {
    let switches: [(&str, Fusion); 5] = [
        ("none", Fusion::NONE),
        ("qkv", Fusion { qkv: true, ..Fusion::NONE }),
        ("ffn", Fusion { ffn: true, ..Fusion::NONE }),
        ("quantize", Fusion { quantize: true, ..Fusion::NONE }),
        ("residual", Fusion { residual: true, ..Fusion::NONE }),
    ];
    for name in ["qwen2-f32", "qwen3-f32", "gemma3-f32", "qwen2-q4_k_m"] {
        let model = tiny_named(name);
        let ids = tiny_prompt(model.spec.n_vocab);
        let run = |backends, fusion| {
            let mut engine = engine(&model, backends, EngineConfig { fusion, ..config(64) });
            last_logits(&mut engine, &ids)
        };
        let (exact, fast) = (run(reference(), Fusion::ALL), run(cpu(2), Fusion::ALL));
        for (switch, fusion) in switches {
            // The reference computes a fused operation as its parts: the same bits.
            assert_eq!(bits(&run(reference(), fusion)), bits(&exact), "{name}, {switch}");
            let error = relative_error(&run(cpu(2), fusion), &fast);
            let quantised = name.contains("q4");
            let allowed = if quantised { TOLERANCE } else { FLOAT_TOLERANCE };
            assert!(error < allowed, "{name}, {switch}: {error}");
        }
    }
}

/// Every layer of every architecture is fused, on both backends.
#[test]
fn fusions_fire_in_every_layer() {
    for name in ["qwen2-f32", "qwen3-f32", "gemma3-f32", "qwen2-q4_k_m"] {
        let model = tiny_named(name);
        let n_layer = model.spec.n_layer;
        for backends in [reference(), cpu(1)] {
            let plan = planned(&model, &backends, Fusion::ALL);
            assert_eq!(count(&plan, |op| matches!(op, Op::QkvStore(_))), n_layer, "{name}");
            assert_eq!(count(&plan, |op| matches!(op, Op::GatedLinear { .. })), n_layer, "{name}");
            assert_eq!(count(&plan, |op| matches!(op, Op::Rope { .. } | Op::KvStore { .. } | Op::Mul)), 0, "{name}");
            let sums = if model.spec.options.sandwich_norms { 0 } else { 2 * n_layer };
            assert_eq!(count(&plan, |op| matches!(op, Op::LinearAdd)), sums, "{name}");
            let unfused = planned(&model, &backends, Fusion::NONE);
            assert_eq!(count(&unfused, |op| matches!(op, Op::QkvStore(_) | Op::GatedLinear { .. })), 0, "{name}");
        }
    }
}

/// Products onto the residual stream and logits get fine activations, the others plain ones; fused or not.
#[test]
fn lasting_products_get_fine_activations() {
    let is_lasting = |name: &str| ["attn_out", "down", "residual", "logits"].iter().any(|role| name.ends_with(role));
    for (model, fusion) in
        ["qwen2-q4_k_m", "gemma3-odd-q8_0"].iter().flat_map(|m| [(m, Fusion::ALL), (m, Fusion::NONE)])
    {
        let model = tiny_named(model);
        let plan = planned(&model, &cpu(1), fusion);
        let products = plan.steps.iter().filter(|step| step.kernel.op.is_product());
        let mut n_lasting = 0;
        for step in products {
            let name = &plan.graph.node(step.node).name;
            let expected = if is_lasting(name) { ValueType::Q8x2 } else { ValueType::Q8 };
            assert_eq!(step.kernel.inputs[0], expected, "{name}");
            n_lasting += u32::from(is_lasting(name));
        }
        assert_eq!(n_lasting, 2 * model.spec.n_layer + 1);
    }
}

/// Quantised weights: one quantised form per value, written by the producer where it can.
#[test]
fn operands_are_quantised_once() {
    let model = tiny_named("qwen2-q4_k_m");
    let plan = planned(&model, &cpu(1), Fusion::ALL);
    let mut seen = std::collections::HashSet::new();
    for step in plan.steps.iter().filter(|step| matches!(step.kernel.op, Op::Quantize)) {
        assert!(seen.insert(plan.graph.node(step.node).inputs[0]), "quantised twice");
    }
    let norms = count(&plan, |op| matches!(op, Op::RmsNorm { .. }));
    let written = plan
        .steps
        .iter()
        .filter(|step| matches!(step.kernel.op, Op::RmsNorm { .. }) && step.kernel.output.is_quantised());
    assert_eq!(written.count() as u32, norms);
    // Only the last layer's selected attention rows are quantised by a step of their own.
    assert_eq!(count(&plan, |op| matches!(op, Op::Quantize)), 1);
}
