//! The order of steps: where a graph leaves a choice, less is live at once than in the order it was built in, never more,
//! and what is called the least is.

mod support;

use minfer_graph::*;
use minfer_plan::*;
use support::*;

fn planned(graph: &Graph) -> Plan {
    plan(graph, &one(TestCaps { workspace: 640, ..TestCaps::default() }), PlanOptions::default()).unwrap()
}

fn order_of(plan: &Plan) -> Vec<&str> {
    plan.steps.iter().map(|step| plan.graph.node(step.node).name.as_str()).collect()
}

/// A product of two branches: one narrow, the other wide before it shrinks. The wide one should not find the result of the
/// narrow one in its way.
fn two_branches() -> Graph {
    let mut lab = Lab::new(params(8), 0, 0);
    let x = lab.input("x", 64);
    let narrow = lab.linear("narrow", x, 32);
    let wide = lab.linear("wide", x, 512);
    let shrunk = lab.linear("shrunk", wide, 32);
    let product = lab.push(Op::Mul, "product", &[narrow, shrunk], &[]);
    lab.finish(&[product])
}

#[test]
fn what_shrinks_runs_first() {
    let graph = two_branches();
    let plan = planned(&graph);
    assert_eq!(order_of(&plan), ["wide", "shrunk", "narrow", "product"]);
    let figures = plan.arenas[0].figures;
    let bytes = |cols: u64| 8 * cols * 4;
    assert_eq!(figures.given_order_bytes, bytes(64) + bytes(32) + bytes(512) + bytes(32));
    assert_eq!(figures.lower_bound_bytes, bytes(64) + bytes(512) + bytes(32));
    assert!(figures.order_is_least);
    let words = order_words(figures.given_order_bytes, figures.lower_bound_bytes, figures.order_is_least);
    assert!(words.contains("saves 1024 bytes") && words.ends_with("no order needs less"), "{words}");
    let (_, records) = plan_recorded(&graph, &one(TestCaps::default()), PlanOptions::default()).unwrap();
    let record = records.iter().find(|record| record.pass == "order").unwrap();
    assert!(record.text.is_some() && record.note.as_ref().unwrap().contains("saves 1024 bytes"), "{record:?}");
}

/// The order of a transformer's layers is forced where most is live, and then nothing is moved.
#[test]
fn a_transformer_keeps_its_order() {
    for fusion in [Fusion::ALL, Fusion::NONE] {
        for n_tokens in [1, 64] {
            let graph = llama(GraphParams { fusion, ..params(n_tokens) }, 40);
            let plan = planned(&graph);
            let figures = plan.arenas[0].figures;
            assert_eq!(figures.given_order_bytes, figures.lower_bound_bytes);
            assert!(figures.order_is_least, "{n_tokens} tokens, {fusion:?}");
            let (_, records) = plan_recorded(&graph, &one(TestCaps::default()), PlanOptions::default()).unwrap();
            let record = records.iter().find(|record| record.pass == "order").unwrap();
            assert!(record.text.is_none() && record.note.as_ref().unwrap().contains("is kept"), "{record:?}");
        }
    }
}

/// Cells are written before they are read, and read before they are written again, also where no value says so.
#[test]
fn uses_of_a_kv_cache_keep_their_order() {
    let mut lab = Lab::new(params(8), 1, 32);
    let inputs = ["positions", "cells", "rows"].map(|name| lab.ids(name, Rows::Tokens));
    let table = lab.builder.input("table", Shape::new(Rows::Fixed(1), 2), ValueType::I32);
    let x = lab.input("x", 32);
    let [positions, cells, rows] = inputs;
    let attend = |lab: &mut Lab, n: u32, x: NodeId| {
        let name = |part: &str| format!("{part}{n}");
        let (k, v) = (lab.linear(&name("k"), x, 32), lab.linear(&name("v"), x, 32));
        let store = lab.push(Op::KvStore { layer: 0, head_dim: 16 }, &name("store"), &[k, v, cells], &[]);
        let kv_k = lab.push(Op::KvView { layer: 0, side: KvSide::K }, &name("kv_k"), &[store], &[]);
        let kv_v = lab.push(Op::KvView { layer: 0, side: KvSide::V }, &name("kv_v"), &[store], &[]);
        let q = lab.linear(&name("q"), x, 64);
        let attention = Attention { layer: 0, n_head: 4, n_kv_head: 2, head_dim: 16, scale: 0.25, window: None };
        lab.push(Op::Attention(attention), &name("attn"), &[q, kv_k, kv_v, positions, rows, table], &[])
    };
    let first = attend(&mut lab, 1, x);
    // The second does not depend on the first by any value, and what it gives shrinks.
    let second = attend(&mut lab, 2, x);
    let second = lab.linear("second", second, 32);
    let first = lab.linear("first", first, 32);
    let sum = lab.push(Op::Mul, "sum", &[first, second], &[]);
    let mut graph = lab.finish(&[sum]);
    graph.params.fusion = Fusion::NONE;
    let plan = planned(&graph);
    let order = order_of(&plan);
    let at = |name: &str| order.iter().position(|other| *other == name).unwrap();
    for pair in ["store1", "attn1", "store2", "attn2"].windows(2) {
        assert!(at(pair[0]) < at(pair[1]), "{order:?}");
    }
    assert!(at("first") < at("second"), "there was a choice: {order:?}");

    // The checker sees a plan whose second write comes before the first read.
    let mut nodes: Vec<NodeId> = graph.ids().collect();
    let (read, write) = (graph.find("attn1").unwrap(), graph.find("kv_v2").unwrap());
    nodes[read.index()..=write.index()].rotate_left(1);
    let mut wrong = planned(&reordered(&graph, &nodes));
    wrong.source = fingerprint(&graph);
    let fault = verify_plan(&wrong, &graph).unwrap_err();
    let words = ["write, read, write, read", "write, write, read, read"].map(str::to_owned);
    assert_eq!(fault, PlanFault::KvOrder { layer: 0, expected: words[0].clone(), got: words[1].clone() });
}

/// More branches than can be searched to the end: less is live than as built, and it is not called the least.
#[test]
fn many_branches_are_ordered_within_a_budget() {
    let mut lab = Lab::new(params(8), 0, 0);
    let x = lab.input("x", 32);
    let mut random = Random(7);
    let mut sum = None;
    let branches: Vec<NodeId> =
        (0..60).map(|n| lab.linear(&format!("wide{n}"), x, 32 * (1 + random.below(30)))).collect();
    for (n, wide) in branches.into_iter().enumerate() {
        let narrow = lab.linear(&format!("narrow{n}"), wide, 32 * (1 + n as u32 % 2));
        let narrow = lab.linear(&format!("last{n}"), narrow, 32);
        sum = Some(sum.map_or(narrow, |sum| lab.push(Op::Mul, &format!("sum{n}"), &[sum, narrow], &[])));
    }
    let graph = lab.finish(&[sum.unwrap()]);
    let figures = planned(&graph).arenas[0].figures;
    assert!(figures.lower_bound_bytes * 4 < figures.given_order_bytes, "{figures:?}");
    assert!(!figures.order_is_least, "{figures:?}");
    assert_eq!(planned(&graph), planned(&graph));
}

/// From every order of a small graph the search comes to the least of all of them, with one backend. With two, neither
/// needs more than in the order it began with.
#[test]
fn every_order_of_a_small_graph_ends_at_the_least() {
    let (mut n_orders, mut n_saved) = (0, 0);
    for seed in 0..150 {
        let graph = random_graph(seed);
        let orders = all_orders(&graph, 120);
        let plans: Vec<Plan> = orders.iter().map(|order| planned(&reordered(&graph, order))).collect();
        let least = plans.iter().map(|plan| plan.arenas[0].figures.given_order_bytes).min().unwrap();
        n_orders += orders.len();
        for plan in &plans {
            let figures = plan.arenas[0].figures;
            assert!(figures.order_is_least, "seed {seed}");
            // Only of a graph whose orders are all here is it known what the least is.
            if orders.len() < 120 {
                assert_eq!(figures.lower_bound_bytes, least, "seed {seed}");
            }
            assert!(figures.lower_bound_bytes <= figures.given_order_bytes);
            n_saved += usize::from(figures.lower_bound_bytes < figures.given_order_bytes);
        }
        for order in orders.iter().step_by(7) {
            let plan = plan(&reordered(&graph, order), &two_backends(), PlanOptions::default()).unwrap();
            for arena in &plan.arenas {
                assert!(arena.figures.lower_bound_bytes <= arena.figures.given_order_bytes, "seed {seed}");
            }
        }
    }
    assert!(n_orders > 2000 && n_saved > 200, "{n_orders} orders, {n_saved} made better");
}

/// What is said of the order given is what memplan says of it, where that order is kept.
#[test]
fn the_order_given_is_counted_as_it_is_planned() {
    for seed in 0..150 {
        let graph = planned(&random_graph(seed)).graph;
        let figures = planned(&graph).arenas[0].figures;
        assert_eq!(figures.given_order_bytes, figures.lower_bound_bytes, "seed {seed}");
    }
}

/// Numbers that are the same everywhere (SplitMix64; Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % u64::from(n)) as u32
    }
}

/// Up to eight steps: products to several widths, sums, and operations in place.
fn random_graph(seed: u64) -> Graph {
    let mut random = Random(seed);
    let mut lab = Lab::new(GraphParams { fusion: Fusion::NONE, ..params(8) }, 0, 0);
    let x = lab.input("x", 32);
    let mut values = vec![x];
    for n in 0..4 + random.below(5) {
        let name = format!("v{n}");
        let a = values[random.below(values.len() as u32) as usize];
        let cols = lab.builder.shape(a).cols;
        let partner = values.iter().copied().find(|&b| b != a && lab.builder.shape(b).cols == cols);
        let value = match (random.below(4), partner) {
            (0, Some(b)) => lab.push(Op::Add, &name, &[a, b], &[]),
            (1, Some(b)) => lab.push(Op::Mul, &name, &[a, b], &[]),
            (2, _) => lab.silu(&name, a),
            _ => lab.linear(&name, a, [32, 64, 96, 256][random.below(4) as usize]),
        };
        values.push(value);
    }
    let mut graph = lab.finish(&[]);
    let readers = graph.readers();
    graph.outputs = graph.ids().filter(|id| readers[id.index()].is_empty()).collect();
    graph
}

/// The same graph built in another order.
fn reordered(graph: &Graph, order: &[NodeId]) -> Graph {
    let mut new_id = vec![NodeId(0); graph.nodes.len()];
    for (at, id) in (0u32..).zip(order) {
        new_id[id.index()] = NodeId(at);
    }
    let moved = |id: &NodeId| new_id[id.index()];
    let node =
        |id: &NodeId| Node { inputs: graph.node(*id).inputs.iter().map(moved).collect(), ..graph.node(*id).clone() };
    let (nodes, outputs) = (order.iter().map(node).collect(), graph.outputs.iter().map(moved).collect());
    Graph { nodes, outputs, ..graph.clone() }
}

/// The orders in which a graph could be built, up to some number.
fn all_orders(graph: &Graph, most: usize) -> Vec<Vec<NodeId>> {
    let mut orders = Vec::new();
    let mut pending = vec![Vec::new()];
    while let Some(order) = pending.pop().filter(|_| orders.len() < most) {
        if order.len() == graph.nodes.len() {
            orders.push(order);
            continue;
        }
        let may_follow =
            |id: &NodeId| !order.contains(id) && graph.node(*id).inputs.iter().all(|of| order.contains(of));
        for id in graph.ids().filter(may_follow) {
            pending.push(order.iter().copied().chain([id]).collect());
        }
    }
    orders
}
