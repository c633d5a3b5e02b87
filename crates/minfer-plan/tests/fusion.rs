//! Every fusion fires where its pattern stands, and not where a value has another reader or the switch is off.

mod support;

use minfer_graph::*;
use minfer_plan::*;
use support::*;

fn count(plan: &Plan, name: &str) -> usize {
    plan.steps.iter().filter(|step| plan.graph.node(step.node).op.name() == name).count()
}

fn plan_with(fusion: Fusion, quantised: bool) -> Plan {
    let mut params = params(8);
    params.fusion = fusion;
    let caps = one(TestCaps { quantised, ..Default::default() });
    plan(&llama(params, 2), &caps, PlanOptions::default()).unwrap()
}

#[test]
fn fusions_fire_once_per_layer() {
    let plan = plan_with(Fusion::ALL, false);
    assert_eq!(count(&plan, "qkv_store"), 2);
    assert_eq!(count(&plan, "gated_linear"), 2);
    assert_eq!(count(&plan, "linear_add"), 4);
    for gone in ["rope", "kv_store", "silu", "mul", "add"] {
        assert_eq!(count(&plan, gone), 0, "{gone}");
    }
    assert_eq!(count(&plan, "linear"), 1, "the logits");
}

#[test]
fn each_switch_stops_its_fusion_alone() {
    let without = |change: fn(&mut Fusion)| {
        let mut fusion = Fusion::ALL;
        change(&mut fusion);
        plan_with(fusion, true)
    };
    let plan = without(|f| f.qkv = false);
    assert_eq!((count(&plan, "qkv_store"), count(&plan, "gated_linear"), count(&plan, "linear_add")), (0, 2, 4));
    let plan = without(|f| f.ffn = false);
    assert_eq!((count(&plan, "qkv_store"), count(&plan, "gated_linear"), count(&plan, "linear_add")), (2, 0, 4));
    let plan = without(|f| f.residual = false);
    assert_eq!((count(&plan, "qkv_store"), count(&plan, "gated_linear"), count(&plan, "linear_add")), (2, 2, 0));
    let plan = without(|f| f.quantize = false);
    assert!(count(&plan, "quantize") > count(&plan_with(Fusion::ALL, true), "quantize"));
}

/// One quantised form per value, shared by all its products; none where the producer writes it itself.
#[test]
fn values_are_quantised_once() {
    let mut fusion = Fusion::NONE;
    let plan = plan_with(fusion, true);
    let quantised = |plan: &Plan| {
        let mut sources: Vec<NodeId> = Vec::new();
        for step in &plan.steps {
            let node = plan.graph.node(step.node);
            if matches!(node.op, Op::Quantize) {
                assert!(!sources.contains(&node.inputs[0]), "{} is quantised twice", node.name);
                sources.push(node.inputs[0]);
            }
        }
        sources.len()
    };
    // Per layer: attention norm, attention result, feed-forward norm, gated product; and the output norm.
    assert_eq!(quantised(&plan), 2 * 4 + 1);
    fusion.quantize = true;
    let plan = plan_with(fusion, true);
    assert_eq!(quantised(&plan), 2 * 2, "the norms write the quantised form; the attention and Mul cannot here");
    let norms = plan.graph.nodes.iter().filter(|node| matches!(node.op, Op::RmsNorm { .. }));
    assert!(norms.clone().all(|node| node.ty == ValueType::Q8));
    assert_eq!(norms.count(), 5);
}

/// In place: rope and silu and the sums, counted per layer, since in-place reuse can die unseen.
#[test]
fn in_place_values_per_layer() {
    let aliases = |plan: &Plan| plan.values.iter().filter(|value| value.alias.is_some()).count();
    // Unfused, per layer: q and k rope, attention over q, two sums, silu, and the product over one factor. Then the
    // output norm, the only reader of the last sum.
    let plan = plan_with(Fusion::NONE, false);
    assert_eq!(aliases(&plan), 2 * 7 + 1, "{}", plan_text(&plan));
    // Fused: attention over q, and two products onto the residual; the output norm.
    let plan = plan_with(Fusion::ALL, false);
    assert_eq!(aliases(&plan), 2 * 3 + 1, "{}", plan_text(&plan));
}

/// A value that someone else reads stays.
#[test]
fn fusion_needs_sole_readers() {
    let mut lab = Lab::new(params(8), 0, 0);
    let x = lab.input("x", 64);
    let gate = lab.linear("gate", x, 64);
    let up = lab.linear("up", x, 64);
    let act = lab.silu("act", gate);
    let product = lab.push(Op::Mul, "product", &[act, up], &[]);
    let sum = lab.push(Op::Add, "sum", &[product, up], &[]);
    let plan = plan(&lab.finish(&[sum]), &one(TestCaps::default()), PlanOptions::default()).unwrap();
    assert_eq!(count(&plan, "gated_linear"), 0, "`up` is also read by `sum`");
}

/// A backend without the fused kernel keeps the plain nodes.
#[test]
fn fusion_asks_the_backend() {
    let plain =
        TestCaps { filter: |k| !matches!(k.op, Op::QkvStore(_) | Op::GatedLinear { .. }), ..Default::default() };
    let plan = plan(&llama(params(8), 2), &one(plain), PlanOptions::default()).unwrap();
    assert_eq!((count(&plan, "qkv_store"), count(&plan, "gated_linear"), count(&plan, "linear_add")), (0, 0, 4));
}
