//! The planner's rules of the design, each under the name given there.

mod support;

use minfer_backend::BackendId;
use minfer_graph::*;
use minfer_plan::*;
use std::sync::Arc;
use support::*;

const STRATEGIES: [Strategy; 3] = [Strategy::Naive, Strategy::Pool, Strategy::Planned];

fn plan_all(graph: &Graph) -> Vec<Plan> {
    let caps = one(TestCaps::default());
    STRATEGIES.iter().map(|&strategy| plan(graph, &caps, PlanOptions { strategy }).unwrap()).collect()
}

fn unfused(mut params: GraphParams) -> GraphParams {
    params.fusion = Fusion::NONE;
    params
}

/// A residual that a late reader needs: an order other than the build order would free it too early.
#[test]
fn liveness_follows_execution_order() {
    let mut lab = Lab::new(params(8), 0, 0);
    let x = lab.input("x", 64);
    let residual = lab.norm("residual", x);
    let mut chain = residual;
    for i in 0..6 {
        chain = lab.norm(&format!("chain{i}"), chain);
    }
    let rows = lab.ids("rows", Rows::Outputs);
    let late = lab.push(Op::SelectRows, "late", &[residual, rows], &[]);
    let other = lab.push(Op::SelectRows, "other", &[chain, rows], &[]);
    let sum = lab.push(Op::Add, "sum", &[late, other], &[]);
    let graph = lab.finish(&[sum]);
    for plan in plan_all(&graph) {
        let step_of = |name: &str| {
            let id = plan.graph.find(name).unwrap();
            plan.steps.iter().position(|step| step.node == id).unwrap() as u32
        };
        let order: Vec<NodeId> = plan.steps.iter().map(|step| step.node).collect();
        assert!(order.is_sorted(), "steps run in build order");
        let live = &plan.value(plan.graph.find("residual").unwrap()).live;
        assert_eq!(*live, step_of("residual")..step_of("late") + 1);
        for i in 0..6 {
            assert!(!share(&plan, "residual", &format!("chain{i}")), "the residual is recycled before `late` reads it");
        }
    }
}

#[test]
fn cycle_graph_allocation_fails() {
    let mut graph = llama(unfused(params(4)), 1);
    let (early, late) = (graph.find("blk.0.attn_norm").unwrap(), graph.find("blk.0.down").unwrap());
    graph.nodes[early.index()].inputs[0] = late;
    let error = plan(&graph, &one(TestCaps::default()), PlanOptions::default()).unwrap_err();
    assert!(matches!(error, PlanError::Graph(GraphError::Cycle { .. })), "{error}");
}

/// Acyclic, but not runnable in build order.
#[test]
fn build_order_must_be_runnable() {
    let mut lab = Lab::new(params(4), 0, 0);
    let x = lab.input("x", 32);
    let a = lab.silu("a", x);
    let b = lab.silu("b", x);
    let mut graph = lab.finish(&[b]);
    graph.nodes[a.index()].inputs[0] = b;
    let error = plan(&graph, &one(TestCaps::default()), PlanOptions::default()).unwrap_err();
    assert!(matches!(error, PlanError::Graph(GraphError::OutOfOrder { .. })), "{error}");
}

#[test]
fn inputs_and_outputs_are_pinned() {
    let graph = llama(unfused(params(8)), 2);
    for plan in plan_all(&graph) {
        let n_steps = plan.steps.len() as u32;
        let inputs: Vec<&str> =
            ["token_ids", "positions", "cells", "sequence_rows", "block_table", "output_rows"].into();
        for name in &inputs {
            let id = plan.graph.find(name).unwrap();
            assert_eq!(plan.value(id).live, 0..n_steps, "{name}");
            for node in plan.graph.nodes.iter().filter(|node| node.name != *name && !node.op.lives_in_kv()) {
                assert!(!share(&plan, name, &node.name), "{name} shares bytes with {}", node.name);
            }
        }
        assert_eq!(plan.value(plan.graph.find("logits").unwrap()).live.end, n_steps);
    }
}

#[test]
fn liveness_reuses_buffers_along_chain() {
    let mut lab = Lab::new(params(8), 0, 0);
    let mut x = lab.input("x", 64);
    for i in 0..10 {
        x = lab.linear(&format!("y{i}"), x, 64);
    }
    let graph = lab.finish(&[x]);
    let plans = plan_all(&graph);
    let value = 8 * 64 * 4;
    assert_eq!(plans[0].arenas[0].bytes, 11 * value, "naive: every value its own bytes");
    for plan in &plans[1..] {
        assert_eq!(plan.arenas[0].figures.lower_bound_bytes, 3 * value, "the input, and two of the chain");
        assert!(share(plan, "y0", "y2"), "a chain ping-pongs between two buffers");
    }
    assert_eq!(plans[2].arenas[0].bytes, 3 * value);
}

#[test]
fn parallel_chains_do_not_share() {
    let mut lab = Lab::new(unfused(params(8)), 0, 0);
    let x = lab.input("x", 64);
    let (mut a, mut b) = (x, x);
    for i in 0..5 {
        a = lab.linear(&format!("a{i}"), a, 64);
        b = lab.linear(&format!("b{i}"), b, 64);
    }
    let sum = lab.push(Op::Add, "sum", &[a, b], &[]);
    let graph = lab.finish(&[sum]);
    for plan in plan_all(&graph) {
        for i in 0..5 {
            assert!(!share(&plan, &format!("a{i}"), &format!("b{i}")));
        }
    }
}

#[test]
fn dead_nodes_get_no_buffer() {
    let mut lab = Lab::new(params(8), 0, 0);
    let x = lab.input("x", 64);
    let orphan = lab.norm("orphan", x);
    lab.silu("orphan_child", orphan);
    let y = lab.linear("y", x, 64);
    let graph = lab.finish(&[y]);
    for plan in plan_all(&graph) {
        for name in ["orphan", "orphan_child"] {
            let id = plan.graph.find(name).unwrap();
            assert_eq!(plan.value(id).place, Place::Nowhere);
            assert!(plan.steps.iter().all(|step| step.node != id), "{name} has a step");
        }
        assert_eq!(plan.steps.len(), 1);
    }
}

#[test]
fn alias_requires_sole_consumer_and_same_backend() {
    let build = |second_reader: bool| {
        let mut lab = Lab::new(params(8), 0, 0);
        let x = lab.input("x", 64);
        let y = lab.linear("y", x, 64);
        let act = lab.silu("act", y);
        let last = if second_reader { y } else { act };
        let sum = lab.push(Op::Mul, "sum", &[act, last], &[]);
        lab.finish(&[sum])
    };
    let alias_of = |plan: &Plan, name: &str| plan.value(plan.graph.find(name).unwrap()).alias;
    let options = PlanOptions::default();
    let sole = plan(&build(false), &one(TestCaps::default()), options).unwrap();
    let alias = alias_of(&sole, "act").expect("silu works in place of its only operand");
    assert_eq!(sole.graph.node(alias.of).name, "y");
    assert!(share(&sole, "act", "y"));
    let shared = plan(&build(true), &one(TestCaps::default()), options).unwrap();
    assert_eq!(alias_of(&shared, "act"), None, "y has a second reader");
    assert!(!share(&shared, "act", "y"));

    // The activation on another backend: the operand is a copy there, which it may overwrite; y itself it may not.
    let first =
        TestCaps { name: "first", priority: 1, filter: |k| !matches!(k.op, Op::Activate(_)), ..Default::default() };
    let second = TestCaps { name: "second", ..Default::default() };
    let split = plan(&build(false), &[Arc::new(first), Arc::new(second)], options).unwrap();
    let alias = alias_of(&split, "act").unwrap();
    assert!(matches!(split.graph.node(alias.of).op, Op::Copy));
    // A residual that a norm has read before may be added onto, but not when someone reads it later.
    let residual = |read_later: bool| {
        let mut lab = Lab::new(params(8), 0, 0);
        let x = lab.input("x", 64);
        let stream = lab.linear("stream", x, 64);
        let h = lab.norm("h", stream);
        let branch = lab.linear("branch", h, 64);
        let sum = lab.push(Op::Add, "sum", &[stream, branch], &[]);
        let last = lab.push(Op::Mul, "last", &[sum, if read_later { stream } else { h }], &[]);
        let mut graph = lab.finish(&[last]);
        graph.params.fusion = Fusion::NONE;
        plan(&graph, &one(TestCaps::default()), options).unwrap()
    };
    let added = residual(false);
    assert_eq!(added.graph.node(alias_of(&added, "sum").unwrap().of).name, "stream");
    let kept = residual(true);
    assert_eq!(kept.graph.node(alias_of(&kept, "sum").unwrap().of).name, "branch");
    // Inputs are pinned: never overwritten.
    let mut lab = Lab::new(params(8), 0, 0);
    let x = lab.input("x", 64);
    let act = lab.silu("act", x);
    let pinned = plan(&lab.finish(&[act]), &one(TestCaps::default()), options).unwrap();
    assert_eq!(alias_of(&pinned, "act"), None);
}

/// A copy is a step, its target a planned value, one per node and destination.
#[test]
fn staging_is_planned() {
    let graph = llama(params(8), 2);
    // Norms and sums run elsewhere: the embedding is read there by both.
    let elsewhere =
        |kernel: &minfer_backend::Kernel| !matches!(kernel.op, Op::RmsNorm { .. } | Op::Add | Op::LinearAdd);
    let fast = TestCaps { name: "fast", priority: 1, filter: elsewhere, ..Default::default() };
    let plan = plan(&graph, &[Arc::new(fast), Arc::new(TestCaps::default())], PlanOptions::default()).unwrap();
    let copies: Vec<&Node> = plan.graph.nodes.iter().filter(|node| matches!(node.op, Op::Copy)).collect();
    assert!(!copies.is_empty());
    let mut seen = std::collections::HashSet::new();
    for copy in &copies {
        let id = plan.graph.find(&copy.name).unwrap();
        assert!(matches!(plan.value(id).place, Place::Arena { .. }));
        assert!(!plan.value(id).live.is_empty());
        assert!(plan.steps.iter().any(|step| step.node == id));
        assert!(seen.insert((copy.inputs[0], plan.backends[id.index()])), "two copies of one value");
    }
    assert_eq!(plan.arenas.len(), 2);
    let embed = plan.graph.find("embed").unwrap();
    let copy = copies.iter().find(|copy| copy.inputs == [embed]).expect("the embedding is copied");
    let id = plan.graph.find(&copy.name).unwrap();
    assert_eq!(plan.graph.readers()[id.index()].len(), 2, "one copy serves both readers");
    // The layer's KV cache stays on one backend.
    for layer in 0..2 {
        let on: Vec<BackendId> = plan
            .graph
            .ids()
            .filter(|&id| plan.graph.node(id).op.kv_layer() == Some(layer))
            .map(|id| plan.backends[id.index()])
            .collect();
        assert!(on.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

/// A plan is refused for another graph, also when counts and sizes agree.
#[test]
fn plan_is_bound_to_its_graph() {
    let build = |late_reads_first: bool| {
        let mut lab = Lab::new(params(8), 0, 0);
        let x = lab.input("x", 64);
        let a = lab.norm("a", x);
        let b = lab.norm("b", a);
        let c = lab.norm("c", if late_reads_first { a } else { b });
        let d = lab.push(Op::Add, "d", &[b, c], &[]);
        lab.finish(&[d])
    };
    let (one_graph, other) = (build(false), build(true));
    assert_eq!(one_graph.nodes.len(), other.nodes.len());
    let plan = plan(&one_graph, &one(TestCaps::default()), PlanOptions::default()).unwrap();
    assert!(verify_plan(&plan, &one_graph).is_ok());
    assert!(matches!(verify_plan(&plan, &other), Err(PlanFault::WrongGraph { .. })));
    assert_ne!(fingerprint(&one_graph), fingerprint(&other));
    assert_eq!(fingerprint(&one_graph), fingerprint(&build(false)));
}

/// The same graph gives the same plan, byte for byte.
#[test]
fn plans_are_deterministic() {
    let make = || plan(&llama(params(64), 3), &one(TestCaps::default()), PlanOptions::default()).unwrap();
    assert_eq!(make().fingerprint(), make().fingerprint());
    assert_eq!(plan_text(&make()), plan_text(&make()));
}

/// What the strategies would take is told truly whichever is in use.
#[test]
fn figures_do_not_depend_on_the_strategy() {
    let plans = plan_all(&llama(params(64), 3));
    for plan in &plans {
        assert_eq!(plan.arenas[0].figures, plans[2].arenas[0].figures);
    }
    assert_eq!(plans[0].arenas[0].bytes, plans[0].arenas[0].figures.naive_bytes);
    assert_eq!(plans[1].arenas[0].bytes, plans[1].arenas[0].figures.pool_bytes);
    assert!(plans[0].values.iter().all(|value| value.alias.is_none()));
}
