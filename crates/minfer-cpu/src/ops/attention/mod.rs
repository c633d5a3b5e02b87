//! Causal attention over the KV cache. Takes queries, positions, sequence rows and the block table; gives the heads'
//! outputs, in place of the queries or not, or quantised.
//!
//! An item is a KV head and a few tokens: each block of the cache is read once for all their query heads ([`block`]), with
//! an online softmax (Milakov and Gimelshein 2018). Positions are taken in runs of [`CHUNK_POSITIONS`]; the result of each
//! run is merged into that of the runs before. With few tokens, runs are items of their own whose results wait in the
//! workspace for a second phase, which merges them in the same order: so neither the number of workers nor that of tokens
//! changes a result.

mod block;

use crate::quantize::{Q8_BLOCK, Quantised};
use crate::scratch::Scratch;
use crate::simd::Simd;
use crate::work::{Check, Fault, Kv, Task};
use block::{Block, Row, State, Tile};
use minfer_backend::BackendError;
use minfer_graph::{GraphParams, KV_BLOCK_CELLS, ValueType};
use std::ops::Range;

pub(crate) use block::AttentionScratch;

/// Largest head.
pub(crate) const MAX_HEAD_DIM: usize = 512;
/// Most query rows (tokens times heads) of an item.
const MAX_ROWS: usize = 32;
/// Cells of a block.
const BLOCK: usize = KV_BLOCK_CELLS as usize;
/// Positions of a run.
const CHUNK_POSITIONS: usize = 512;
/// Most tokens whose runs are items of their own. Beyond, tokens and heads are enough to share out.
const SPLIT_TOKENS: usize = 8;

/// Bytes of the workspace: a state per token, head and run.
pub(crate) fn workspace_bytes(attention: &minfer_graph::Attention, params: &GraphParams) -> u64 {
    let n_chunks = n_chunks(params.blocks_per_sequence() as usize);
    let tokens = (params.token_capacity as usize).min(SPLIT_TOKENS);
    state_bytes(tokens * attention.n_head as usize, n_chunks, attention.head_dim as usize)
}

/// Runs in a sequence of the greatest length.
fn n_chunks(blocks_per_sequence: usize) -> usize {
    (blocks_per_sequence * BLOCK).div_ceil(CHUNK_POSITIONS)
}

fn state_bytes(heads: usize, n_chunks: usize, head_dim: usize) -> u64 {
    if n_chunks > 1 { (heads * n_chunks * (head_dim + 2) * 4) as u64 } else { 0 }
}

/// A checked attention.
pub(crate) struct Attention {
    q: *const f32,
    out: *mut u8,
    quantised: Option<Quantised>,
    n_tokens: usize,
    n_head: usize,
    n_kv_head: usize,
    head_dim: usize,
    scale: f32,
    window: Option<usize>,
    kv: Kv,
    positions: *const i32,
    sequences: *const i32,
    table: *const i32,
    n_sequences: usize,
    blocks_per_sequence: usize,
    /// Where states wait, if runs are items.
    states: Option<*mut f32>,
}

impl Attention {
    pub(crate) fn check(check: &Check<'_>, op: minfer_graph::Attention) -> Result<Self, BackendError> {
        let (q, out, table) = (check.input(0)?, check.output()?, check.input(5)?);
        let (n_head, n_kv_head, head_dim) = (op.n_head as usize, op.n_kv_head as usize, op.head_dim as usize);
        check.equal("columns of q", n_head * head_dim, q.cols)?;
        check.equal("columns of the output", q.cols, out.cols)?;
        check.equal("rows of the output", q.rows, out.rows)?;
        let kv = check.kv(n_kv_head * head_dim, false)?;
        let cells = if kv.half { ValueType::F16 } else { ValueType::F32 };
        check.equal("type of the KV cells", check.step.inputs[1].ty, cells)?;
        let n_chunks = n_chunks(table.cols);
        let need = state_bytes(q.rows * n_head, n_chunks, head_dim);
        let states = if q.rows <= SPLIT_TOKENS { check.workspace(need)? } else { None };
        Ok(Self {
            q: q.start.cast(),
            out: out.start,
            quantised: Quantised::new(out.start, out.cols, out.ty),
            n_tokens: q.rows,
            n_head,
            n_kv_head,
            head_dim,
            scale: op.scale,
            window: op.window.map(|window| window as usize),
            kv,
            positions: check.column(3, q.rows)?,
            sequences: check.column(4, q.rows)?,
            table: table.start.cast(),
            n_sequences: table.rows,
            blocks_per_sequence: table.cols,
            states: states.map(|start| start.cast()),
        })
    }

    /// Query heads of an item: those of a KV head, or a part of them if they are very many.
    fn heads_per_item(&self) -> usize {
        let group = self.n_head / self.n_kv_head;
        group.div_ceil(group.div_ceil(MAX_ROWS))
    }

    fn items_per_kv_head(&self) -> usize {
        (self.n_head / self.n_kv_head).div_ceil(self.heads_per_item())
    }

    fn tokens_per_item(&self) -> usize {
        // With few tokens, one: there are few items as it is.
        if self.n_tokens <= SPLIT_TOKENS { 1 } else { MAX_ROWS / self.heads_per_item() }
    }

    /// Runs that are items.
    fn split(&self) -> usize {
        if self.states.is_some() { n_chunks(self.blocks_per_sequence) } else { 1 }
    }

    /// The KV head of a part and the query heads it stands for.
    fn heads(&self, part: usize) -> (usize, Range<usize>) {
        let group = self.n_head / self.n_kv_head;
        let (kv_head, part) = (part / self.items_per_kv_head(), part % self.items_per_kv_head());
        let first = part * self.heads_per_item();
        let last = group.min(first + self.heads_per_item());
        (kv_head, kv_head * group + first..kv_head * group + last)
    }

    /// Positions that a token sees, and its row of the block table.
    ///
    /// # Safety
    /// The token is one of the batch.
    #[inline(always)]
    unsafe fn view(&self, token: usize) -> Result<(Range<usize>, usize), Fault> {
        // SAFETY: there is a position and a sequence row per token.
        let (position, sequence) = unsafe { (*self.positions.add(token), *self.sequences.add(token)) };
        let position = Fault::index("position", position, self.blocks_per_sequence * BLOCK)?;
        let sequence = Fault::index("sequence row", sequence, self.n_sequences)?;
        let first = self.window.map_or(0, |window| (position + 1).saturating_sub(window));
        Ok((first..position + 1, sequence))
    }

    /// Where the state of a head for a run waits.
    ///
    /// # Safety
    /// There are states, and token, head and run are within the batch, the heads and the runs.
    #[inline(always)]
    unsafe fn state_at(&self, states: *mut f32, token: usize, head: usize, chunk: usize) -> *mut f32 {
        let index = (token * self.n_head + head) * self.split() + chunk;
        // SAFETY: `check` made sure of room for one per token, head and run.
        unsafe { states.add(index * (self.head_dim + 2)) }
    }
}

impl Task for Attention {
    fn phases(&self) -> usize {
        if self.states.is_some() { 2 } else { 1 }
    }

    fn items(&self, phase: usize) -> usize {
        if phase == 1 {
            return self.n_tokens * self.n_head;
        }
        let token_tiles = self.n_tokens.div_ceil(self.tokens_per_item());
        token_tiles * self.n_kv_head * self.items_per_kv_head() * self.split()
    }

    #[inline(always)]
    unsafe fn item<S: Simd>(&self, s: S, phase: usize, item: usize, scratch: &mut Scratch) -> Result<(), Fault> {
        let scratch = scratch.get::<AttentionScratch>();
        // SAFETY: the caller's promise is passed on; items are in bounds.
        unsafe {
            if phase == 1 {
                return self.merge(s, item / self.n_head, item % self.n_head, scratch);
            }
            let (rest, chunk) = (item / self.split(), item % self.split());
            let parts = self.n_kv_head * self.items_per_kv_head();
            let (token_tile, part) = (rest / parts, rest % parts);
            let first = token_tile * self.tokens_per_item();
            let last = self.n_tokens.min(first + self.tokens_per_item());
            let (kv_head, heads) = self.heads(part);
            match self.states {
                Some(states) => self.one_run(s, first, kv_head, heads, chunk, states, scratch),
                None => self.all_runs(s, first..last, kv_head, heads, scratch),
            }
        }
    }
}

impl Attention {
    /// One token, one run of positions: the states go to the workspace.
    ///
    /// # Safety
    /// Token, heads and run are within bounds; `states` are the workspace.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn one_run<S: Simd>(
        &self,
        s: S,
        token: usize,
        kv_head: usize,
        heads: Range<usize>,
        chunk: usize,
        states: *mut f32,
        scratch: &mut AttentionScratch,
    ) -> Result<(), Fault> {
        // SAFETY: as promised by the caller.
        unsafe {
            let (view, sequence) = self.view(token)?;
            let run = intersect(&view, &(chunk * CHUNK_POSITIONS..(chunk + 1) * CHUNK_POSITIONS));
            if run.is_empty() {
                return Ok(());
            }
            let mut rows = [Row::NONE; MAX_ROWS];
            for (row, head) in rows.iter_mut().zip(heads.clone()) {
                *row = self.row(token, head, &view);
            }
            let rows = &rows[..heads.len()];
            self.run(s, rows, kv_head, sequence, run, scratch)?;
            for (row, head) in heads.enumerate() {
                let to = self.state_at(states, token, head, chunk);
                let (m, l, o) = scratch.partial.row(row);
                *to = *m;
                *to.add(1) = *l;
                std::ptr::copy_nonoverlapping(o.as_ptr(), to.add(2), self.head_dim);
            }
            Ok(())
        }
    }

    /// Merges the states of a token's head in order, and writes the result.
    ///
    /// # Safety
    /// Token and head are within bounds; the first phase is over.
    #[inline(always)]
    unsafe fn merge<S: Simd>(
        &self,
        s: S,
        token: usize,
        head: usize,
        scratch: &mut AttentionScratch,
    ) -> Result<(), Fault> {
        let Some(states) = self.states else { return Ok(()) };
        // SAFETY: as promised by the caller; the first phase wrote the states of all runs that the token sees.
        unsafe {
            let (view, _) = self.view(token)?;
            scratch.total.clear(1);
            for chunk in chunks(&view) {
                let from = self.state_at(states, token, head, chunk);
                let (m, l, o) = scratch.partial.row(0);
                *m = *from;
                *l = *from.add(1);
                std::ptr::copy_nonoverlapping(from.add(2), o.as_mut_ptr(), self.head_dim);
                scratch.total.merge(s, &mut scratch.partial, 1, self.head_dim);
            }
            self.write(s, token, head, 0, &mut scratch.total);
            Ok(())
        }
    }

    /// Some tokens, all positions, written at once.
    ///
    /// # Safety
    /// Tokens and heads are within bounds.
    #[inline(always)]
    unsafe fn all_runs<S: Simd>(
        &self,
        s: S,
        tokens: Range<usize>,
        kv_head: usize,
        heads: Range<usize>,
        scratch: &mut AttentionScratch,
    ) -> Result<(), Fault> {
        let mut first = tokens.start;
        while first < tokens.end {
            let mut rows = [Row::NONE; MAX_ROWS];
            let mut n_rows = 0;
            // SAFETY: as promised by the caller.
            unsafe {
                // Neighbours of the same sequence, and all positions that any of them sees.
                let (mut seen, sequence) = self.view(first)?;
                let mut last = first;
                while last < tokens.end {
                    let (view, of) = self.view(last)?;
                    if of != sequence {
                        break;
                    }
                    for head in heads.clone() {
                        rows[n_rows] = self.row(last, head, &view);
                        n_rows += 1;
                    }
                    seen = seen.start.min(view.start)..seen.end.max(view.end);
                    last += 1;
                }
                scratch.total.clear(n_rows);
                for chunk in chunks(&seen) {
                    let run = intersect(&seen, &(chunk * CHUNK_POSITIONS..(chunk + 1) * CHUNK_POSITIONS));
                    self.run(s, &rows[..n_rows], kv_head, sequence, run, scratch)?;
                    scratch.total.merge(s, &mut scratch.partial, n_rows, self.head_dim);
                }
                for token in first..last {
                    for (index, head) in heads.clone().enumerate() {
                        let row = (token - first) * heads.len() + index;
                        self.write(s, token, head, row, &mut scratch.total);
                    }
                }
                first = last;
            }
        }
        Ok(())
    }

    /// # Safety
    /// Token and head are within bounds.
    #[inline(always)]
    unsafe fn row(&self, token: usize, head: usize, view: &Range<usize>) -> Row {
        // SAFETY: as promised by the caller.
        let q = unsafe { self.q.add((token * self.n_head + head) * self.head_dim) };
        Row { q, first: view.start, end: view.end }
    }

    /// The partial state of all rows over a run of positions, block by block.
    ///
    /// # Safety
    /// The rows' queries are readable; KV head and sequence are within bounds, and the run within a sequence's positions.
    #[inline(always)]
    unsafe fn run<S: Simd>(
        &self,
        s: S,
        rows: &[Row],
        kv_head: usize,
        sequence: usize,
        run: Range<usize>,
        scratch: &mut AttentionScratch,
    ) -> Result<(), Fault> {
        let tile = Tile { rows, head_dim: self.head_dim, scale: self.scale, kv: self.kv, kv_head };
        scratch.partial.clear(rows.len());
        s.vectorize(block::Turn { tile: &tile, scratch });
        for block in run.start / BLOCK..run.end.div_ceil(BLOCK) {
            // SAFETY: the run is within the sequence's positions, so the block within its row of the table.
            let id = unsafe { *self.table.add(sequence * self.blocks_per_sequence + block) };
            let id = Fault::index("block", id, self.kv.n_cells / BLOCK)?;
            let cells = intersect(&run, &(block * BLOCK..(block + 1) * BLOCK));
            let block = Block { first_cell: id * BLOCK, first_position: block * BLOCK, positions: cells };
            s.vectorize(block::Attend { tile: &tile, block, scratch });
        }
        Ok(())
    }

    /// Writes the result of a head.
    ///
    /// # Safety
    /// Token and head are within bounds; the row is one of the state's.
    #[inline(always)]
    unsafe fn write<S: Simd>(&self, s: S, token: usize, head: usize, row: usize, state: &mut State) {
        let n = self.head_dim;
        let (_, l, o) = state.row(row);
        // A window of zero sees nothing.
        let factor = if *l > 0.0 || l.is_nan() { 1.0 / *l } else { 0.0 };
        for x in &mut o[..n] {
            *x *= factor;
        }
        // SAFETY: the head lies in the token's row; quantised heads are whole blocks: `supports` says so.
        unsafe {
            let Some(out) = self.quantised else {
                let out = self.out.cast::<f32>().add((token * self.n_head + head) * n);
                return std::ptr::copy_nonoverlapping(o.as_ptr(), out, n);
            };
            for at in (0..n).step_by(Q8_BLOCK) {
                out.write_block(s, token, (head * n + at) / Q8_BLOCK, o.as_ptr().add(at));
            }
        }
    }
}

/// The runs that a range of positions touches.
fn chunks(positions: &Range<usize>) -> Range<usize> {
    positions.start / CHUNK_POSITIONS..positions.end.div_ceil(CHUNK_POSITIONS)
}

fn intersect(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.max(b.start)..a.end.min(b.end)
}
