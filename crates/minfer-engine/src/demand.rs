//! What a step must compute and move, however it is done. Takes a plan, a batch's sizes and the positions it sees; gives
//! counts of operations and bytes; must not know how long anything took.
//!
//! Counts come from the planned graph: its operations, shapes and weights. Each byte that a step needs is counted once,
//! as if caches between steps and between the heads of a step were perfect.

use crate::error::EngineError;
use crate::observe::RunView;
use minfer_backend::BufRef;
use minfer_graph::{BatchDims, Op, Rows};
use minfer_model::input;
use minfer_plan::Plan;
use std::ops::{AddAssign, Range};

/// Operations and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Demand {
    /// Multiplications and additions of products with weights, each counted: two per weight and row.
    pub product_ops: u64,
    /// The same, as often as the planned types of activations ask for them: finer activations are two rows, not one.
    pub planned_product_ops: u64,
    /// Multiplications and additions of attention: `q·k` and the weighted sum of `v`.
    pub attention_ops: u64,
    /// Weights read.
    pub weight_bytes: u64,
    /// KV cells read.
    pub kv_read_bytes: u64,
    /// KV cells written.
    pub kv_written_bytes: u64,
    /// Values read and written, other than in the KV cache.
    pub value_bytes: u64,
}

impl Demand {
    /// What step `step` of a plan needs for one batch.
    pub fn of_step(plan: &Plan, step: usize, dims: &BatchDims, reach: &Reach) -> Self {
        let graph = &plan.graph;
        let kernel = &plan.steps[step].kernel;
        let node = graph.node(plan.steps[step].node);
        let weights = || node.weights.iter().map(|weight| &graph.weights[weight.index()]);
        let mut demand = Demand::default();
        let n_rows = |rows: Rows| u64::from(dims.rows(rows));

        if let (true, Some(&x)) = (kernel.op.is_product(), node.inputs.first()) {
            let matrices = weights().take(kernel.op.n_matrices());
            let n_weights: u64 = matrices.map(|weight| u64::from(weight.rows) * u64::from(weight.cols)).sum();
            let x = graph.node(x);
            demand.product_ops = 2 * n_weights * n_rows(x.shape.rows);
            demand.planned_product_ops = demand.product_ops * x.ty.q8_rows().max(1) as u64;
        }
        demand.weight_bytes = match kernel.op {
            // Of a table only the rows that are named.
            Op::Embed { .. } => {
                weights().map(|table| table.source.len / u64::from(table.rows.max(1)) * n_rows(node.shape.rows)).sum()
            }
            _ => weights().map(|weight| weight.source.len).sum(),
        };
        let cell_bytes = |layer: u32| 2 * graph.params.cache_type.value_type().row_bytes(graph.kv_shape(layer).cols);
        if let (true, Some(layer)) = (kernel.op.writes_kv(), kernel.op.kv_layer()) {
            demand.kv_written_bytes = cell_bytes(layer) * u64::from(dims.n_tokens);
        }
        if let Op::Attention(attention) = kernel.op {
            let seen: u64 = reach.tokens().map(|position| seen_by(position, attention.window)).sum();
            let per_pair = 4 * u64::from(attention.n_head) * u64::from(attention.head_dim);
            demand.attention_ops = per_pair * seen;
            demand.kv_read_bytes = cell_bytes(attention.layer) * reach.cells(attention.window);
        }
        let inputs = node.inputs.iter().map(|&input| graph.node(input)).filter(|input| !input.op.lives_in_kv());
        let output = (!node.op.lives_in_kv()).then_some(node);
        demand.value_bytes = inputs.chain(output).map(|value| dims.bytes(value.shape, value.ty)).sum();
        demand
    }

    /// What all steps of a plan need for one batch.
    pub fn of_plan(plan: &Plan, dims: &BatchDims, reach: &Reach) -> Self {
        let mut sum = Demand::default();
        for step in 0..plan.steps.len() {
            sum += Self::of_step(plan, step, dims, reach);
        }
        sum
    }

    /// Bytes that no cache holds from one step to the next: weights, and KV cells of the past.
    pub fn read_bytes(&self) -> u64 {
        self.weight_bytes + self.kv_read_bytes
    }

    /// All operations.
    pub fn ops(&self) -> u64 {
        self.product_ops + self.attention_ops
    }

    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.read_bytes() + self.kv_written_bytes + self.value_bytes
    }
}

impl AddAssign for Demand {
    fn add_assign(&mut self, other: Self) {
        self.product_ops += other.product_ops;
        self.planned_product_ops += other.planned_product_ops;
        self.attention_ops += other.attention_ops;
        self.weight_bytes += other.weight_bytes;
        self.kv_read_bytes += other.kv_read_bytes;
        self.kv_written_bytes += other.kv_written_bytes;
        self.value_bytes += other.value_bytes;
    }
}

/// Positions of a batch's tokens, one range per sequence.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reach {
    sequences: Vec<Range<u32>>,
}

impl Reach {
    /// From the positions that each sequence adds.
    pub fn new(sequences: impl IntoIterator<Item = Range<u32>>) -> Self {
        Self { sequences: sequences.into_iter().collect() }
    }

    /// As the inputs of a run say.
    pub(crate) fn of_run(view: &RunView<'_>) -> Result<Self, EngineError> {
        let positions = read_input(view, input::POSITIONS)?;
        let rows = read_input(view, input::SEQUENCE_ROWS)?;
        let mut sequences: Vec<Range<u32>> = Vec::new();
        // Tokens of one sequence follow each other in order, so first and last bound its range.
        for (position, row) in positions.into_iter().zip(rows) {
            let row = row as usize;
            if row >= sequences.len() {
                sequences.resize(row + 1, position..position);
            }
            sequences[row].end = position.saturating_add(1);
        }
        Ok(Self { sequences })
    }

    /// The position of every token.
    fn tokens(&self) -> impl Iterator<Item = u32> + '_ {
        self.sequences.iter().flat_map(Clone::clone)
    }

    /// Cells that at least one token of their sequence sees.
    fn cells(&self, window: Option<u32>) -> u64 {
        let filled = self.sequences.iter().filter(|range| !range.is_empty());
        filled.map(|range| seen_by(range.start, window) + (u64::from(range.end) - u64::from(range.start) - 1)).sum()
    }
}

/// How many positions a token sees, its own included.
fn seen_by(position: u32, window: Option<u32>) -> u64 {
    let all = u64::from(position) + 1;
    window.map_or(all, |window| all.min(u64::from(window)))
}

/// The numbers of an input. None where the graph has no such input.
fn read_input(view: &RunView<'_>, name: &str) -> Result<Vec<u32>, EngineError> {
    let mut numbers = Vec::new();
    let Ok(slot) = view.bound.input(name) else { return Ok(numbers) };
    let operand = slot.operand;
    let len = view.dims.bytes(operand.shape, operand.ty);
    let backend = &view.backends[operand.buf.backend.index()];
    backend.read(BufRef { len, ..operand.buf }, &mut |bytes| {
        numbers.extend(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])));
    })?;
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter::once;

    #[test]
    fn a_window_limits_what_is_seen() {
        let reach = Reach::new([0..4, 10..11]);
        assert_eq!(reach.tokens().map(|p| seen_by(p, None)).sum::<u64>(), 1 + 2 + 3 + 4 + 11);
        assert_eq!(reach.tokens().map(|p| seen_by(p, Some(2))).sum::<u64>(), 1 + 2 + 2 + 2 + 2);
        assert_eq!((reach.cells(None), reach.cells(Some(2))), (4 + 11, 4 + 2));
        assert_eq!(Reach::new(once(100..104)).cells(Some(8)), 8 + 3);
        assert_eq!(Reach::new(once(3..3)).cells(None), 0);
    }
}
