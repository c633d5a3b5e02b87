//! Graphs and capabilities for planner tests. Takes sizes; gives a transformer layer node by node, so that the tests do not
//! depend on model files.

#![allow(dead_code)]

use minfer_backend::{Capabilities, Kernel};
use minfer_graph::*;
use std::sync::Arc;

/// Capabilities made for a test.
pub struct TestCaps {
    pub name: &'static str,
    pub priority: i32,
    pub quantised: bool,
    pub workspace: u64,
    pub filter: fn(&Kernel) -> bool,
}

impl Default for TestCaps {
    fn default() -> Self {
        Self { name: "test", priority: 0, quantised: false, workspace: 0, filter: |_| true }
    }
}

impl Capabilities for TestCaps {
    fn name(&self) -> &str {
        self.name
    }
    fn priority(&self) -> i32 {
        self.priority
    }
    fn supports(&self, kernel: &Kernel) -> bool {
        let q8_out = kernel.output == ValueType::Q8 && !matches!(kernel.op, Op::Quantize | Op::Copy);
        let emits = matches!(kernel.op, Op::RmsNorm { .. } | Op::GatedLinear { .. });
        (self.filter)(kernel) && (!q8_out || (self.quantised && emits))
    }
    fn activation_type(&self, weight: DType, _lasting: bool) -> ValueType {
        if self.quantised && weight.is_quantized() { ValueType::Q8 } else { ValueType::F32 }
    }
    fn workspace_bytes(&self, kernel: &Kernel, _: Shape, _: &GraphParams) -> u64 {
        if matches!(kernel.op, Op::Attention(_)) { self.workspace } else { 0 }
    }
    fn alignment(&self) -> u64 {
        64
    }
    fn fixed_bytes(&self) -> u64 {
        0
    }
}

/// One backend that does everything.
pub fn one(caps: TestCaps) -> Vec<Arc<dyn Capabilities>> {
    vec![Arc::new(caps)]
}

pub fn params(n_tokens: u32) -> GraphParams {
    GraphParams {
        kind: GraphKind::Prefill,
        token_capacity: n_tokens,
        batch_capacity: n_tokens,
        output_capacity: 1,
        sequence_capacity: 1,
        n_ctx: 64,
        n_cells: 64,
        cache_type: CacheType::F16,
        fusion: Fusion::ALL,
        weights_version: 0,
    }
}

/// Builds graphs with short calls.
pub struct Lab {
    pub builder: GraphBuilder,
    n_weights: u64,
}

impl Lab {
    pub fn new(params: GraphParams, n_layer: usize, kv_cols: u32) -> Self {
        Self {
            builder: GraphBuilder::new(params, vec![KvLayer { cols: kv_cols, window: None }; n_layer]),
            n_weights: 0,
        }
    }

    pub fn weight(&mut self, name: &str, rows: u32, cols: u32, dtype: DType) -> WeightId {
        let len = dtype.row_bytes(cols as usize).unwrap() as u64 * u64::from(rows);
        let source = WeightSource { part: 0, offset: self.n_weights * (1 << 20), len };
        self.n_weights += 1;
        self.builder.weight(&Weight { name: name.into(), dtype, rows, cols, source })
    }

    pub fn input(&mut self, name: &str, cols: u32) -> NodeId {
        self.builder.input(name, Shape::new(Rows::Tokens, cols), ValueType::F32)
    }

    pub fn ids(&mut self, name: &str, rows: Rows) -> NodeId {
        self.builder.input(name, Shape::new(rows, 1), ValueType::I32)
    }

    pub fn push(&mut self, op: Op, name: &str, inputs: &[NodeId], weights: &[WeightId]) -> NodeId {
        let layer = op.kv_layer();
        self.builder.push(NodeSpec { op, name: name.into(), layer, inputs, weights }).unwrap()
    }

    pub fn silu(&mut self, name: &str, x: NodeId) -> NodeId {
        self.push(Op::Activate(Activation::Silu), name, &[x], &[])
    }

    pub fn linear(&mut self, name: &str, x: NodeId, rows: u32) -> NodeId {
        let cols = self.builder.shape(x).cols;
        let weight = self.weight(&format!("{name}.weight"), rows, cols, DType::Q8_0);
        self.push(Op::Linear, name, &[x], &[weight])
    }

    pub fn norm(&mut self, name: &str, x: NodeId) -> NodeId {
        let cols = self.builder.shape(x).cols;
        let weight = self.weight(&format!("{name}.weight"), 1, cols, DType::F32);
        self.push(Op::RmsNorm { eps: 1e-5, group: cols }, name, &[x], &[weight])
    }

    pub fn finish(self, outputs: &[NodeId]) -> Graph {
        self.builder.finish(outputs).unwrap()
    }
}

/// A small llama: `n_layer` layers of width 64, 4 heads of 16, 2 kv heads, feed-forward 128, 96 tokens.
pub fn llama(params: GraphParams, n_layer: u32) -> Graph {
    let (n_sequences, blocks) = (params.sequence_capacity, params.blocks_per_sequence());
    let mut lab = Lab::new(params, n_layer as usize, 32);
    let token_ids = lab.ids("token_ids", Rows::Tokens);
    let positions = lab.ids("positions", Rows::Tokens);
    let cells = lab.ids("cells", Rows::Tokens);
    let rows = lab.ids("sequence_rows", Rows::Tokens);
    let table = lab.builder.input("block_table", Shape::new(Rows::Fixed(n_sequences), blocks), ValueType::I32);
    let outputs = lab.ids("output_rows", Rows::Outputs);
    let embedding = lab.weight("token_embd.weight", 96, 64, DType::F32);
    let mut x = lab.push(Op::Embed { scale: 1.0 }, "embed", &[token_ids], &[embedding]);
    let rope_table = Op::RopeTable { n_dims: 16, base: 1e4, freq_scale: 1.0 };
    let angles = lab.push(rope_table, "rope_table", &[positions], &[]);
    let rope = Op::Rope { style: RopeStyle::Halves, head_dim: 16, n_dims: 16 };
    for layer in 0..n_layer {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let h = lab.norm(&name("attn_norm"), x);
        let q = lab.linear(&name("q"), h, 64);
        let k = lab.linear(&name("k"), h, 32);
        let v = lab.linear(&name("v"), h, 32);
        let q = lab.push(rope, &name("q_rope"), &[q, angles], &[]);
        let k = lab.push(rope, &name("k_rope"), &[k, angles], &[]);
        let store = lab.push(Op::KvStore { layer, head_dim: 16 }, &name("kv_store"), &[k, v, cells], &[]);
        let kv_k = lab.push(Op::KvView { layer, side: KvSide::K }, &name("kv_k"), &[store], &[]);
        let kv_v = lab.push(Op::KvView { layer, side: KvSide::V }, &name("kv_v"), &[store], &[]);
        let attention = Attention { layer, n_head: 4, n_kv_head: 2, head_dim: 16, scale: 0.25, window: None };
        let inputs = [q, kv_k, kv_v, positions, rows, table];
        let a = lab.push(Op::Attention(attention), &name("attn"), &inputs, &[]);
        let (a, residual) = if layer + 1 == n_layer {
            let a = lab.push(Op::SelectRows, &name("attn_rows"), &[a, outputs], &[]);
            (a, lab.push(Op::SelectRows, &name("residual_rows"), &[x, outputs], &[]))
        } else {
            (a, x)
        };
        let a = lab.linear(&name("attn_out"), a, 64);
        x = lab.push(Op::Add, &name("attn_residual"), &[a, residual], &[]);
        let h = lab.norm(&name("ffn_norm"), x);
        let gate = lab.linear(&name("gate"), h, 128);
        let up = lab.linear(&name("up"), h, 128);
        let gate = lab.silu(&name("act"), gate);
        let product = lab.push(Op::Mul, &name("gated"), &[gate, up], &[]);
        let down = lab.linear(&name("down"), product, 64);
        x = lab.push(Op::Add, &name("ffn_residual"), &[down, x], &[]);
    }
    let h = lab.norm("output_norm", x);
    let logits = lab.linear("logits", h, 96);
    lab.finish(&[logits])
}

/// Offset and length of a value in its arena.
pub fn bytes_of(plan: &minfer_plan::Plan, name: &str) -> (u64, u64) {
    let id = plan.graph.find(name).unwrap_or_else(|| panic!("no node {name}"));
    match plan.value(id).place {
        minfer_plan::Place::Arena { offset, bytes } => (offset, bytes),
        other => panic!("{name} is at {other:?}"),
    }
}

pub fn share(plan: &minfer_plan::Plan, a: &str, b: &str) -> bool {
    let ((a, a_len), (b, b_len)) = (bytes_of(plan, a), bytes_of(plan, b));
    a < b + b_len && b < a + a_len
}

/// What a hostile file may call itself and its values.
pub const HOSTILE: [&str; 3] = [
    "</script><script>hacked = 1</script>",
    "<img src=x onerror='hacked = 2'>\" & {{data}} <!--",
    "]]></text>\u{0}\u{1b}[31m\u{202e}",
];

/// [`llama`] with the layers of its values, and hostile names on some of them.
pub fn hostile_llama(n_layer: u32) -> Graph {
    let mut graph = llama(params(32), n_layer);
    for node in &mut graph.nodes {
        node.layer = node.name.split('.').nth(1).and_then(|layer| layer.parse().ok());
    }
    for (name, hostile) in ["embed", "blk.1.attn", "logits"].into_iter().zip(HOSTILE) {
        let id = graph.find(name).unwrap();
        graph.nodes[id.index()].name = hostile.to_string();
    }
    graph
}

pub fn hostile_caption() -> minfer_plan::picture::Caption {
    minfer_plan::picture::Caption {
        model: format!("small.gguf {}", HOSTILE[0]),
        settings: format!("prefill · at most 32 tokens a batch {}", HOSTILE[1]),
    }
}

/// Some bytes of every class.
pub fn ledger() -> minfer_plan::Ledger {
    use minfer_plan::Owner;
    let mut ledger = minfer_plan::Ledger::default();
    ledger.add(Owner::Weights, "weights, part 0 (mapped)", "a test", 300_000);
    ledger.add(Owner::Kv, "kv.0.k", "a test", 70_000);
    ledger.add(Owner::Kv, "kv.0.v", "a test", 70_000);
    ledger.add(Owner::Host, HOSTILE[2], HOSTILE[2], 384);
    ledger
}

/// One backend for products, norms and sums, and one for the rest, so that values cross both ways.
pub fn two_backends() -> Vec<Arc<dyn Capabilities>> {
    let computes = |kernel: &Kernel| {
        let op = &kernel.op;
        matches!(op, Op::Linear | Op::Activate(_) | Op::Mul | Op::Add | Op::RmsNorm { .. } | Op::GatedLinear { .. })
    };
    let gpu = TestCaps { name: "gpu", priority: 1, filter: computes, ..TestCaps::default() };
    let cpu = TestCaps { name: "cpu", workspace: 5000, ..TestCaps::default() };
    vec![Arc::new(gpu), Arc::new(cpu)]
}
