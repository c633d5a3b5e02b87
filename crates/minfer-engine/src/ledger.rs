//! The lines of an engine's ledger. Takes a model, settings and the largest plan; gives every byte by owner; allocates
//! nothing. What is planned (weights, KV regions, arenas) is exact; what the heap holds beside it is counted from the sizes
//! of the tables.

use crate::blueprint::CapabilityList;
use crate::config::EngineConfig;
use crate::load::Model;
use minfer_graph::{CacheType, Graph, KV_BLOCK_CELLS, KvLayer, Op};
use minfer_plan::{Ledger, Owner, Place, Plan};

/// Bytes of a node in a bound plan: the node, its value, its planned and its bound step, names and operand lists.
const NODE_BYTES: u64 = 1024;
/// Bytes of a tensor in the tables of the file, the specification and a graph: three names and their records.
const TENSOR_BYTES: u64 = 512;
/// Graphs that a run keeps: prefill and decode.
const N_GRAPHS: u64 = 2;

/// Every byte that an engine of these settings will own.
pub(crate) fn ledger(model: &Model, config: &EngineConfig, plan: &Plan, backends: &CapabilityList) -> Ledger {
    let mut ledger = Ledger::default();
    weights(&mut ledger, model);
    kv(&mut ledger, &plan.graph);
    arenas(&mut ledger, plan);
    let n_tokens = model.tokenizer.n_vocab();
    let tokenizer = model.tokenizer.heap_bytes() as u64;
    ledger.add(Owner::Tokenizer, "tokenizer", format!("{n_tokens} tokens"), tokenizer);
    for caps in backends.iter().filter(|caps| caps.fixed_bytes() > 0) {
        let name = format!("workers of {}", caps.name());
        ledger.add(Owner::Threads, name, "scratch and stacks", caps.fixed_bytes());
    }
    host(&mut ledger, model, &plan.graph);
    graphs(&mut ledger, model, plan);
    if config.program_bytes > 0 {
        ledger.add(Owner::Program, "program", "code, stacks and fixed heap", config.program_bytes);
    }
    ledger
}

fn weights(ledger: &mut Ledger, model: &Model) {
    let parts = model.file.parts();
    // An embedding that is not also the output matrix is read a row at a time: most of its pages may never be touched.
    let embedding = model.spec.weights.output.as_ref().map(|_| &model.spec.weights.embedding);
    for (index, part) in parts.iter().enumerate() {
        let (name, number) = if parts.len() == 1 {
            ("weights".to_owned(), String::new())
        } else {
            (format!("weights, part {}", index + 1), format!(", part {}", index + 1))
        };
        let how = if part.bytes().is_mapped() { "the file, mapped" } else { "the file, in memory" };
        match embedding.filter(|weight| weight.source.part as usize == index) {
            None => ledger.add(Owner::Weights, name, how, part.file_bytes()),
            Some(weight) => {
                let rows = weight.source.len;
                ledger.add(Owner::Weights, name, format!("{how}, but for the embedding"), part.file_bytes() - rows);
                let detail = format!("in the same file{number}; read row by row");
                ledger.add_on_demand(Owner::Weights, "token embedding", detail, rows);
            }
        }
    }
}

fn kv(ledger: &mut Ledger, graph: &Graph) {
    // Layers with the same window, or none, and the same width.
    let mut kinds: Vec<(KvLayer, u64)> = Vec::new();
    for &layer in &graph.kv_layers {
        match kinds.iter_mut().find(|(kind, _)| *kind == layer) {
            Some((_, n_layers)) => *n_layers += 1,
            None => kinds.push((layer, 1)),
        }
    }
    let params = &graph.params;
    for (KvLayer { cols, window }, n_layers) in kinds {
        let (n_cells, ty) = (params.n_cells_of(window), params.cache_type.value_type());
        let mut detail = format!("{n_layers} layers × 2 × {n_cells} cells × {cols} {ty}");
        let name = match window {
            None => "KV cache, full attention".into(),
            Some(n_tokens) => {
                detail.push_str("; the window and a batch");
                format!("KV cache, window of {n_tokens}")
            }
        };
        let region_bytes = kv_region_bytes(n_cells, params.cache_type, cols);
        ledger.add(Owner::Kv, name, detail, region_bytes.saturating_mul(2 * n_layers));
    }
    // Per block its users, its place among the free ones and in its sequence; per position the id a session remembers.
    let blocks = graph.kv_kinds().into_iter().map(|window| u64::from(params.n_cells_of(window) / KV_BLOCK_CELLS));
    let (n_blocks, n_positions): (u64, _) = (blocks.sum(), u64::from(params.n_cells));
    ledger.add(Owner::Host, "KV bookkeeping", format!("{n_blocks} blocks"), n_blocks * 16 + n_positions * 4);
}

fn arenas(ledger: &mut Ledger, plan: &Plan) {
    for arena in &plan.arenas {
        let on_it = |id: &minfer_graph::NodeId| plan.backends[id.index()] == arena.backend;
        let workspace = plan.steps.iter().filter(|step| on_it(&step.node)).filter_map(|step| step.workspace);
        let workspace = workspace.map(|(_, bytes)| bytes).max().unwrap_or(0);
        let staged = plan.graph.ids().filter(|id| on_it(id) && plan.graph.node(*id).op == Op::Copy);
        let staging: u64 = staged
            .filter_map(|id| match plan.value(id).place {
                Place::Arena { bytes, .. } => Some(bytes),
                _ => None,
            })
            .sum();
        let detail =
            format!("{}; with workspaces of up to {workspace} bytes and {staging} bytes of staging", arena.strategy);
        ledger.add(Owner::Arena, format!("arena of {}", arena.name), detail, arena.bytes);
    }
}

fn host(ledger: &mut Ledger, model: &Model, graph: &Graph) {
    let params = &graph.params;
    let (n_vocab, n_outputs) = (u64::from(model.spec.n_vocab), u64::from(params.output_capacity));
    // The rows of a step are read while a session still has those of the step before.
    let logits = 2 * n_outputs * n_vocab * 4;
    ledger.add(Owner::Host, "logits", format!("2 × {n_outputs} rows × {n_vocab} f32"), logits);
    let n_sequences = u64::from(params.sequence_capacity);
    let candidates = n_sequences * n_vocab * 8;
    ledger.add(Owner::Host, "sampling", format!("{n_sequences} × {n_vocab} candidates"), candidates);
    // Numbers, then their bytes; a growing list may take twice its length.
    let (n_kinds, n_tokens) = (graph.kv_kinds().len() as u64, u64::from(params.token_capacity));
    let table = n_sequences * u64::from(params.blocks_per_sequence());
    let numbers = 4 * n_tokens + n_kinds * (n_tokens + table);
    ledger.add(Owner::Host, "inputs", format!("{numbers} numbers"), numbers * 4 * 3);
}

fn graphs(ledger: &mut Ledger, model: &Model, plan: &Plan) {
    let (n_nodes, n_tensors) = (plan.graph.nodes.len() as u64, model.file.tensors().len() as u64);
    let template = model.chat_template.as_ref().map_or(0, String::len) as u64;
    let bytes = N_GRAPHS * n_nodes * NODE_BYTES + n_tensors * TENSOR_BYTES + template;
    ledger.add(Owner::Graphs, "graphs and plans", format!("{N_GRAPHS} × {n_nodes} nodes, {n_tensors} tensors"), bytes);
}

/// Bytes of one of a layer's two KV regions.
pub(crate) fn kv_region_bytes(n_cells: u32, cache_type: CacheType, cols: u32) -> u64 {
    // A file may claim heads of any width; what saturates is refused by every budget and every allocator.
    u64::from(n_cells).saturating_mul(cache_type.value_type().row_bytes(cols))
}
