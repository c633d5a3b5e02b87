//! Graphs: their text per architecture against golden files, and what the text does not show.
//!
//! `MINFER_BLESS=1` rewrites the golden files.

mod support;

use minfer_graph::{
    Activation, Graph, GraphError, GraphParams, KvLayer, Op, RopeStyle, Rows, ValueType, to_text, verify,
};
use minfer_model::{build_graph, input, kv_layers, load_spec};
use minfer_testkit::{TinyArch, TinyModel, tiny_model, tiny_models};
use support::params;

fn graph_of(model: &TinyModel) -> Graph {
    let spec = load_spec(&model.open()).unwrap_or_else(|error| panic!("{}: {error}", model.name));
    build_graph(&spec, &params()).unwrap_or_else(|error| panic!("{}: {error}", model.name))
}

#[test]
fn graph_text_per_architecture() {
    let bless = std::env::var("MINFER_BLESS").is_ok_and(|value| value == "1");
    for name in ["llama-f32", "llama-rope-freqs", "qwen2-f32", "qwen3-f32", "gemma3-f32"] {
        let text = to_text(&graph_of(&tiny_model(name)), &[]);
        let path = format!("{}/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        if bless {
            std::fs::write(&path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        for (line, (got, want)) in text.lines().zip(golden.lines()).enumerate() {
            assert_eq!(got, want, "{path}:{}", line + 1);
        }
        assert_eq!(text.lines().count(), golden.lines().count(), "{path}: number of nodes");
    }
}

#[test]
fn every_tiny_model_builds() {
    for model in tiny_models() {
        let graph = graph_of(&model);
        verify(&graph).unwrap();
        assert!(graph.live_nodes().into_iter().all(|live| live), "{}: a dead node", model.name);
        let [logits] = graph.outputs[..] else { panic!("one output") };
        let logits = graph.node(logits);
        assert_eq!((logits.name.as_str(), logits.ty), ("logits", ValueType::F32));
        assert_eq!((logits.shape.rows, logits.shape.cols), (Rows::Outputs, model.n_vocab));
    }
}

#[test]
fn inputs_are_found_by_name() {
    let graph = graph_of(&tiny_model("llama-f32"));
    let names: Vec<&str> = graph.inputs().map(|id| graph.node(id).name.as_str()).collect();
    let expected = [
        input::TOKEN_IDS,
        input::POSITIONS,
        input::CELLS,
        input::SEQUENCE_ROWS,
        input::BLOCK_TABLE,
        input::OUTPUT_ROWS,
    ];
    assert_eq!(names, expected);
    assert!(graph.inputs().all(|id| graph.node(id).ty == ValueType::I32));
}

#[test]
fn only_output_rows_pass_the_last_attention() {
    let graph = graph_of(&tiny_model("llama-f32"));
    let rows = |name: &str| graph.node(graph.find(name).unwrap_or_else(|| panic!("{name}"))).shape.rows;
    for name in ["blk.0.down", "blk.1.kv_store", "blk.1.attn"] {
        assert_ne!(rows(name), Rows::Outputs, "{name}");
    }
    for name in ["blk.1.attn_out", "blk.1.attn_residual", "blk.1.gate", "blk.1.down", "output_norm", "logits"] {
        assert_eq!(rows(name), Rows::Outputs, "{name}");
    }
}

#[test]
fn gemma_mixes_layers() {
    let graph = graph_of(&TinyModel { n_head: 4, ..TinyModel::new("gemma", TinyArch::Gemma3) });
    let op = |name: &str| graph.node(graph.find(name).unwrap_or_else(|| panic!("{name}"))).op;
    assert_eq!(op("embed"), Op::Embed { scale: 8.0 });
    assert_eq!(op("rope_table"), Op::RopeTable { n_dims: 16, base: 1_000_000.0, freq_scale: 1.0 });
    assert_eq!(op("rope_table.local"), Op::RopeTable { n_dims: 16, base: 10_000.0, freq_scale: 1.0 });
    assert_eq!(op("blk.0.act"), Op::Activate(Activation::GeluTanh));
    let (global, local) = (graph.find("rope_table"), graph.find("rope_table.local"));
    for layer in 0..7 {
        let Op::Attention(attention) = op(&format!("blk.{layer}.attn")) else { panic!("no attention") };
        let rope = graph.node(graph.find(&format!("blk.{layer}.q_rope")).unwrap());
        let is_global = layer == 5;
        assert_eq!(attention.window, (!is_global).then_some(8), "layer {layer}");
        assert_eq!(attention.scale, 0.25);
        assert_eq!(Some(rope.inputs[1]), if is_global { global } else { local }, "layer {layer}");
    }
}

#[test]
fn options_reach_the_graph() {
    let op_of = |model: &TinyModel, name: &str| {
        let graph = graph_of(model);
        graph.node(graph.find(name).unwrap_or_else(|| panic!("{name}"))).op
    };
    let linear = tiny_model("llama-rope-linear");
    assert_eq!(op_of(&linear, "rope_table"), Op::RopeTable { n_dims: 16, base: 10_000.0, freq_scale: 0.25 });
    let part = tiny_model("llama-rope-part");
    assert_eq!(op_of(&part, "blk.1.k_rope"), Op::Rope { style: RopeStyle::Adjacent, head_dim: 16, n_dims: 8 });
    let qwen = tiny_model("qwen3-f32");
    assert_eq!(op_of(&qwen, "blk.1.k_rope"), Op::Rope { style: RopeStyle::Halves, head_dim: 32, n_dims: 32 });
    assert_eq!(op_of(&qwen, "blk.1.k_norm"), Op::RmsNorm { eps: 1e-5, group: 32 });
    let windowed = TinyModel { window: Some(4), ..TinyModel::new("mistral", TinyArch::Llama) };
    let Op::Attention(attention) = op_of(&windowed, "blk.0.attn") else { panic!("no attention") };
    assert_eq!(attention.window, Some(4));
}

#[test]
fn kv_heads_may_differ_by_layer() {
    let model = TinyModel { n_layer: 3, n_kv_heads: Some(vec![2, 1, 4]), ..TinyModel::new("array", TinyArch::Llama) };
    let spec = load_spec(&model.open()).unwrap();
    assert_eq!(spec.n_kv_head, [2, 1, 4]);
    let kv = [32, 16, 64].map(|cols| KvLayer { cols, window: None });
    assert_eq!(kv_layers(&spec), kv);
    assert_eq!(graph_of(&model).kv_layers, kv);
}

/// Layers that see everything and layers with a window have cells and block tables of their own, of as many cells as each
/// needs; a layer whose attention sees more than is kept for it is no graph.
#[test]
fn windowed_layers_have_their_own_cells() {
    let spec = load_spec(&tiny_model("gemma3-f32").open()).unwrap();
    let params = GraphParams { n_ctx: 1024, n_cells: 2048, ..params() };
    let mut graph = build_graph(&spec, &params).unwrap();
    for (layer, [cells, table], n_cells) in
        [(0, ["cells.window", "block_table.window"], 128), (5, ["cells", "block_table"], 2048)]
    {
        let node = |name: &str| graph.node(graph.find(&format!("blk.{layer}.{name}")).unwrap());
        assert_eq!(graph.node(node("kv_store").inputs[2]).name, cells);
        assert_eq!(graph.node(node("attn").inputs[5]).name, table);
        assert_eq!(node("kv_store").shape.rows, Rows::Fixed(n_cells));
    }
    graph.kv_layers[0].window = Some(9);
    let error = verify(&graph).unwrap_err();
    assert_eq!(
        error,
        GraphError::KvWindow { node: "blk.0.attn".into(), layer: 0, expected: Some(9), got: Some(8) },
        "{error}"
    );
}

#[test]
fn a_tied_output_matrix_is_counted_once() {
    let tied = load_spec(&tiny_model("llama-tied").open()).unwrap();
    let untied = load_spec(&tiny_model("llama-f32").open()).unwrap();
    assert!(tied.options.tied_output && !untied.options.tied_output);
    let embedding = tied.weights.embedding.source.len;
    assert_eq!(tied.weights.total_bytes() + embedding, untied.weights.total_bytes());
    let graph = graph_of(&tiny_model("llama-tied"));
    assert_eq!(graph.weights.len(), tied.weights.iter().count());
}
