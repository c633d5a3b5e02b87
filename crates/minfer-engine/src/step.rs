//! One step: a batch of tokens becomes logits. Takes token ids and sequences; gives rows of logits. One line per stage in
//! [`Engine::step`].

use crate::blueprint::graph_params;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::kv::{KvKind, SequenceId};
use crate::observe::{Observer, RunView};
use crate::poison::Poison;
use crate::scheduler::Scheduler;
use minfer_graph::{BatchDims, GraphKind, GraphParams};
use minfer_model::{build_graph, input};
use minfer_plan::{PlanOptions, plan};
use std::sync::Arc;

/// A token to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchToken {
    /// Its id.
    pub token: u32,
    /// The sequence it goes to the end of.
    pub sequence: SequenceId,
    /// Whether the logits after it are wanted.
    pub output: bool,
}

/// Rows of logits, in the order of the batch's tokens that asked for them.
#[derive(Clone, PartialEq, Debug)]
pub struct Logits {
    /// Columns: size of the vocabulary.
    pub n_vocab: usize,
    /// `[n_outputs, n_vocab]`.
    pub values: Vec<f32>,
}

impl Logits {
    /// One row.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.n_vocab..(index + 1) * self.n_vocab]
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.n_vocab.max(1))
    }
}

/// In a block table where a sequence has no block.
const NO_BLOCK: i32 = -1;

/// The contents of a graph's inputs for one batch.
#[derive(Default)]
struct BatchInputs {
    token_ids: Vec<i32>,
    positions: Vec<i32>,
    sequence_rows: Vec<i32>,
    output_rows: Vec<i32>,
    /// By kind of layer.
    kv: Vec<KvInputs>,
}

/// Where the layers of a kind keep the batch's tokens, and those before.
struct KvInputs {
    window: Option<u32>,
    cells: Vec<i32>,
    block_table: Vec<i32>,
}

impl Engine {
    /// Reads a batch. Tokens of one sequence follow each other in order; sequences may be mixed. On an error every sequence
    /// has the length it had before; unless a backend failed in a copy, what it holds is unchanged too.
    pub fn step(&mut self, batch: &[BatchToken]) -> Result<Logits, EngineError> {
        let dims = self.check_batch(batch)?;
        let lengths = self.lengths_before(batch)?;
        let result = self.step_checked(batch, dims);
        if result.is_err() {
            for (sequence, len) in lengths {
                self.cut_sequence(sequence, len)?;
            }
        }
        result
    }

    fn step_checked(&mut self, batch: &[BatchToken], dims: BatchDims) -> Result<Logits, EngineError> {
        let params = graph_params(&self.model, &self.config, self.kind_of(dims))?;
        let inputs = self.take_cells(batch, &params)?;
        self.ensure_graph(&params)?;
        self.run(&params, &inputs, dims)
    }

    /// Sizes of the batch, or why it does not fit the plan.
    fn check_batch(&self, batch: &[BatchToken]) -> Result<BatchDims, EngineError> {
        let n_outputs = batch.iter().filter(|token| token.output).count();
        let token_limit = self.config.token_capacity();
        let too_large = |what, got, limit| Err(EngineError::BatchTooLarge { what, got, limit });
        if batch.is_empty() {
            return Err(EngineError::EmptyBatch);
        }
        if batch.len() > token_limit as usize {
            return too_large("tokens", batch.len(), token_limit);
        }
        let dims = BatchDims { n_tokens: batch.len() as u32, n_outputs: n_outputs as u32 };
        let output_limit = match self.kind_of(dims) {
            GraphKind::Decode => self.config.n_sequences,
            GraphKind::Prefill => self.config.output_capacity(),
        };
        if n_outputs > output_limit as usize {
            return too_large("output rows", n_outputs, output_limit);
        }
        let n_vocab = self.model.spec.n_vocab;
        match batch.iter().find(|token| token.token >= n_vocab) {
            Some(token) => Err(EngineError::TokenOutOfRange { token: token.token, n_vocab }),
            None => Ok(dims),
        }
    }

    /// Up to one token per sequence planned for is a decode step; the graph of a prompt serves the rest.
    fn kind_of(&self, dims: BatchDims) -> GraphKind {
        if dims.n_tokens <= self.config.n_sequences { GraphKind::Decode } else { GraphKind::Prefill }
    }

    fn lengths_before(&self, batch: &[BatchToken]) -> Result<Vec<(SequenceId, u32)>, EngineError> {
        let mut lengths = Vec::new();
        for token in batch {
            if !lengths.iter().any(|(sequence, _)| *sequence == token.sequence) {
                lengths.push((token.sequence, self.kv.len(token.sequence)?));
            }
        }
        Ok(lengths)
    }

    /// Gives every token its position and cell, makes the copies that keep shared blocks apart, and fills the inputs.
    fn take_cells(&mut self, batch: &[BatchToken], params: &GraphParams) -> Result<BatchInputs, EngineError> {
        let width = params.blocks_per_sequence() as usize;
        let kv_inputs = |kind: KvKind| KvInputs {
            window: kind.window,
            cells: Vec::with_capacity(batch.len()),
            block_table: vec![NO_BLOCK; params.sequence_capacity as usize * width],
        };
        let mut inputs = BatchInputs { kv: self.kv.kinds().map(kv_inputs).collect(), ..BatchInputs::default() };
        let mut rows: Vec<SequenceId> = Vec::new();
        for (index, token) in batch.iter().enumerate() {
            let appended = self.kv.append(token.sequence)?;
            self.poison_cells(&appended.freed)?;
            for copy in appended.copies {
                self.copy_block(copy)?;
            }
            let row = rows.iter().position(|sequence| *sequence == token.sequence).unwrap_or_else(|| {
                rows.push(token.sequence);
                rows.len() - 1
            });
            inputs.token_ids.push(token.token as i32);
            inputs.positions.push(appended.position as i32);
            for (kv, cell) in inputs.kv.iter_mut().zip(appended.cells) {
                kv.cells.push(cell as i32);
            }
            inputs.sequence_rows.push(row as i32);
            if token.output {
                inputs.output_rows.push(index as i32);
            }
        }
        for (row, sequence) in rows.into_iter().enumerate() {
            for (kv, blocks) in inputs.kv.iter_mut().zip(self.kv.blocks(sequence)?) {
                for (column, block) in blocks {
                    kv.block_table[row * width + column as usize] = block as i32;
                }
            }
        }
        Ok(inputs)
    }

    /// Builds, plans and binds the graph of these parameters, if it is not there yet.
    fn ensure_graph(&mut self, params: &GraphParams) -> Result<(), EngineError> {
        if self.cache.try_reuse(params).is_some() {
            return Ok(());
        }
        let graph = build_graph(&self.model.spec, params)?;
        let capabilities: Vec<Arc<_>> = self.backends.iter().map(|backend| backend.capabilities()).collect();
        let plan = plan(&graph, &capabilities, PlanOptions { strategy: self.config.strategy })?;
        self.cache.insert(&graph, plan, &mut self.allocator, &mut self.backends)
    }

    fn run(&mut self, params: &GraphParams, inputs: &BatchInputs, dims: BatchDims) -> Result<Logits, EngineError> {
        let backends = &mut self.backends[..];
        let Some((graph, bound)) = self.cache.try_reuse(params) else {
            return Err(EngineError::Unplaced { node: "graph".into() });
        };
        let mut poison = self.config.poison.then_some(Poison);
        let mut observers: Vec<&mut dyn Observer> = Vec::new();
        observers.extend(self.observers.iter_mut().map(|observer| &mut **observer as &mut dyn Observer));
        // Last, so that the others see a value before its bytes are spoilt.
        observers.extend(poison.as_mut().map(|poison| poison as &mut dyn Observer));
        let view = &mut RunView { bound, dims, backends };
        observers.iter_mut().try_for_each(|observer| observer.before_run(view))?;
        for (name, values) in inputs.by_name() {
            bound.write_input(name, values, &dims, view.backends)?;
        }
        Scheduler::run(graph, view, &mut observers, &self.interrupt)?;
        let output = &bound.outputs[0];
        let n_vocab = output.shape.cols as usize;
        let len = dims.bytes(output.shape, output.ty);
        let mut values = Vec::with_capacity(dims.n_outputs as usize * n_vocab);
        backends[output.buf.backend.index()].read(minfer_backend::BufRef { len, ..output.buf }, &mut |bytes| {
            values.extend(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        })?;
        Ok(Logits { n_vocab, values })
    }
}

impl KvInputs {
    fn by_name(&self) -> [(&'static str, &[i32]); 2] {
        let [cells, block_table] = input::of_kind(self.window);
        [(cells, &self.cells), (block_table, &self.block_table)]
    }
}

impl BatchInputs {
    fn by_name(&self) -> impl Iterator<Item = (&'static str, &[i32])> {
        let of_batch = [
            (input::TOKEN_IDS, &self.token_ids[..]),
            (input::POSITIONS, &self.positions[..]),
            (input::SEQUENCE_ROWS, &self.sequence_rows[..]),
            (input::OUTPUT_ROWS, &self.output_rows[..]),
        ];
        of_batch.into_iter().chain(self.kv.iter().flat_map(KvInputs::by_name))
    }
}
