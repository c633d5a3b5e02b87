//! The fragments that graphs are made of. Takes a specification and graph parameters; gives the plain graph, one node per
//! operation (fusion is a later pass); must not know architectures or files.

mod attention;
mod feed_forward;
mod head;
mod norm;

use crate::error::ModelError;
use crate::kv::kv_layers;
use crate::spec::{ModelSpec, Rope};
use crate::weights::LayerWeights;
use minfer_graph::{
    Graph, GraphBuilder, GraphError, GraphParams, NodeId, NodeSpec, Op, Rows, Shape, ValueType, Weight,
};
use std::collections::BTreeMap;

/// Names of the inputs that the host writes before each run; all 32-bit integers.
pub mod input {
    /// `[n_tokens, 1]`: the ids of the batch.
    pub const TOKEN_IDS: &str = "token_ids";
    /// `[n_tokens, 1]`: the position of each token in its sequence.
    pub const POSITIONS: &str = "positions";
    /// `[n_tokens, 1]`: the KV cell each token is stored in, in layers that see everything.
    pub const CELLS: &str = "cells";
    /// The same in layers with a window.
    pub const CELLS_WINDOW: &str = "cells.window";
    /// `[n_tokens, 1]`: the row of the block table of each token's sequence.
    pub const SEQUENCE_ROWS: &str = "sequence_rows";
    /// `[sequence_capacity, blocks_per_sequence]`: the blocks of each sequence in layers that see everything, in order.
    pub const BLOCK_TABLE: &str = "block_table";
    /// The same in layers with a window; nobody looks at the places of blocks that have left it.
    pub const BLOCK_TABLE_WINDOW: &str = "block_table.window";
    /// `[n_out, 1]`: the tokens of the batch whose logits are wanted.
    pub const OUTPUT_ROWS: &str = "output_rows";

    /// The names of the cells and of the block table of layers with a window, or without one: a model has one window at
    /// most.
    pub fn of_kind(window: Option<u32>) -> [&'static str; 2] {
        if window.is_some() { [CELLS_WINDOW, BLOCK_TABLE_WINDOW] } else { [CELLS, BLOCK_TABLE] }
    }
}

/// The graph of a model: inputs, embedding, layers, output head. Its only output is `logits` `[n_out, n_vocab]`, f32.
///
/// In the last layer only the rows that are asked for go on after attention.
pub fn build_graph(spec: &ModelSpec, params: &GraphParams) -> Result<Graph, ModelError> {
    let mut build = Build::new(spec, params);
    let scale = spec.options.embed_scale;
    let token_ids = build.inputs.token_ids;
    let mut x = build.push(Op::Embed { scale }, "embed", &[token_ids], &[&spec.weights.embedding])?; // [n_tokens, n_embd]
    let tables = build.rope_tables()?;
    for (index, (weights, kv)) in (0..).zip(spec.weights.layers.iter().zip(build.inputs.kv.clone())) {
        build.layer = Some(index);
        let layer = Layer { index, weights, tables, kv };
        x = build.attention_block(layer, x)?; // [n_tokens, n_embd], in the last layer [n_out, n_embd]
        x = build.feed_forward_block(layer, x)?;
    }
    build.layer = None;
    let logits = build.output_head(x)?; // [n_out, n_vocab]
    Ok(build.graph.finish(&[logits])?)
}

/// A graph under construction.
struct Build<'a> {
    spec: &'a ModelSpec,
    graph: GraphBuilder,
    inputs: Inputs,
    /// The layer being built.
    layer: Option<u32>,
}

/// A layer to build.
#[derive(Clone, Copy)]
struct Layer<'a> {
    index: u32,
    weights: &'a LayerWeights,
    tables: RopeTables,
    kv: KvInputs,
}

/// Cosines and sines for the layers that see everything and for the windowed ones.
#[derive(Clone, Copy)]
struct RopeTables {
    global: NodeId,
    local: NodeId,
}

/// The graph's inputs.
struct Inputs {
    token_ids: NodeId,
    positions: NodeId,
    sequence_rows: NodeId,
    output_rows: NodeId,
    /// For each layer; layers of one kind have the same.
    kv: Vec<KvInputs>,
}

/// Where a layer keeps the batch's tokens, and those before.
#[derive(Clone, Copy)]
struct KvInputs {
    cells: NodeId,
    block_table: NodeId,
}

impl<'a> Build<'a> {
    fn new(spec: &'a ModelSpec, params: &GraphParams) -> Self {
        let table = Shape::new(Rows::Fixed(params.sequence_capacity), params.blocks_per_sequence());
        let layers = kv_layers(spec);
        let mut graph = GraphBuilder::new(params.clone(), layers.clone());
        let kinds = graph.kv_kinds();
        let mut per_token = |name| graph.input(name, Shape::new(Rows::Tokens, 1), ValueType::I32);
        let token_ids = per_token(input::TOKEN_IDS);
        let positions = per_token(input::POSITIONS);
        let cells: Vec<_> = kinds.iter().map(|&window| per_token(input::of_kind(window)[0])).collect();
        let sequence_rows = per_token(input::SEQUENCE_ROWS);
        let table_of = |window: &Option<u32>| graph.input(input::of_kind(*window)[1], table, ValueType::I32);
        let block_tables: Vec<_> = kinds.iter().map(table_of).collect();
        let output_rows = graph.input(input::OUTPUT_ROWS, Shape::new(Rows::Outputs, 1), ValueType::I32);
        let of_kind: BTreeMap<_, _> = kinds.into_iter().zip(cells.into_iter().zip(block_tables)).collect();
        let kv = layers.iter().filter_map(|layer| of_kind.get(&layer.window));
        let kv = kv.map(|&(cells, block_table)| KvInputs { cells, block_table }).collect();
        let inputs = Inputs { token_ids, positions, sequence_rows, output_rows, kv };
        Self { spec, graph, inputs, layer: None }
    }

    /// Appends a node, named after its layer if it is in one.
    fn push(&mut self, op: Op, name: &str, inputs: &[NodeId], weights: &[&Weight]) -> Result<NodeId, GraphError> {
        let name = self.layer.map_or_else(|| name.to_owned(), |layer| format!("blk.{layer}.{name}"));
        let weights: Vec<_> = weights.iter().map(|weight| self.graph.weight(weight)).collect();
        self.graph.push(NodeSpec { op, name, layer: self.layer, inputs, weights: &weights })
    }

    /// Cosines and sines, once for all layers of a kind.
    fn rope_tables(&mut self) -> Result<RopeTables, GraphError> {
        let global = self.rope_table("rope_table", self.spec.rope)?;
        let local = match self.spec.options.window.as_ref().and_then(|window| window.rope) {
            Some(rope) => self.rope_table("rope_table.local", rope)?,
            None => global,
        };
        Ok(RopeTables { global, local })
    }

    fn rope_table(&mut self, name: &str, rope: Rope) -> Result<NodeId, GraphError> {
        let Rope { n_dims, base, freq_scale, .. } = rope;
        let factors: Vec<&Weight> = self.spec.weights.rope_factors.iter().collect();
        let positions = self.inputs.positions;
        self.push(Op::RopeTable { n_dims, base, freq_scale }, name, &[positions], &factors)
    }
}
