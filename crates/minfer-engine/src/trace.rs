//! What each step computed. Takes a run, step by step; gives one [`StepTrace`] per step to a sink; must not know files.

use crate::error::EngineError;
use crate::observe::{Observer, RunView};
use minfer_backend::BufRef;
use minfer_graph::{Shape, ValueType};
use std::ops::Range;

/// How many values of a row a trace shows.
const SHOWN: usize = 8;

/// One step's value.
#[derive(Clone, PartialEq, Debug)]
pub struct StepTrace {
    /// Step of the plan.
    pub step: usize,
    /// Node.
    pub node: u32,
    /// The node's name.
    pub name: String,
    /// Its operation.
    pub op: &'static str,
    /// Shape, with symbolic rows.
    pub shape: Shape,
    /// Rows in this batch.
    pub n_rows: u32,
    /// Element type.
    pub ty: ValueType,
    /// Where it lives.
    pub buf: BufRef,
    /// Steps in which it is live; empty for values in KV regions.
    pub live: Range<u32>,
    /// Smallest, largest and mean element; `None` for types other than f32, and for no rows.
    pub stats: Option<(f32, f32, f64)>,
    /// The first elements of the last row.
    pub values: Vec<f32>,
    /// For an output: the largest logits of the last row, with their columns.
    pub top: Vec<(usize, f32)>,
}

/// Gives every step's trace to a sink.
pub struct Tracer<F> {
    sink: F,
}

impl<F: FnMut(StepTrace) -> Result<(), String>> Tracer<F> {
    /// A tracer with its sink; what the sink says ends the run.
    pub fn new(sink: F) -> Self {
        Self { sink }
    }
}

impl<F: FnMut(StepTrace) -> Result<(), String>> Observer for Tracer<F> {
    fn after_step(&mut self, step: usize, view: &mut RunView<'_>) -> Result<(), EngineError> {
        let run = &view.bound.steps[step];
        let output = run.output;
        let n_rows = view.dims.rows(output.shape.rows);
        let id = minfer_graph::NodeId(run.node);
        let mut elements: Vec<f32> = Vec::new();
        let in_kv = run.kernel.op.lives_in_kv();
        if output.ty == ValueType::F32 && !in_kv {
            let len = view.dims.bytes(output.shape, output.ty);
            let backend = &view.backends[output.buf.backend.index()];
            backend.read(BufRef { len, ..output.buf }, &mut |bytes| {
                elements.extend(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
            })?;
        }
        let last_row = elements.len().saturating_sub(output.shape.cols as usize);
        let row = &elements[last_row..];
        let top = if view.bound.plan.graph.outputs.contains(&id) { top_of(row, 5) } else { Vec::new() };
        let trace = StepTrace {
            step,
            node: run.node,
            name: run.name.clone(),
            op: run.kernel.op.name(),
            shape: output.shape,
            n_rows,
            ty: output.ty,
            buf: output.buf,
            live: view.bound.plan.value(id).live.clone(),
            stats: stats(&elements),
            values: row.iter().copied().take(SHOWN).collect(),
            top,
        };
        (self.sink)(trace).map_err(EngineError::Observer)
    }
}

fn stats(elements: &[f32]) -> Option<(f32, f32, f64)> {
    if elements.is_empty() {
        return None;
    }
    let min = elements.iter().copied().fold(f32::INFINITY, f32::min);
    let max = elements.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mean = elements.iter().map(|&x| f64::from(x)).sum::<f64>() / elements.len() as f64;
    Some((min, max, mean))
}

fn top_of(row: &[f32], n: usize) -> Vec<(usize, f32)> {
    let mut order: Vec<(usize, f32)> = row.iter().copied().enumerate().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    order.truncate(n);
    order
}
