//! Products of activations with weight matrices, and what is done with the results before they leave the cache.
//!
//! Takes a checked step of any product operation; gives its value (and KV cells). A product is computed tile by tile: so
//! many rows of the weights times so many tokens, into a buffer of floats that the worker keeps; then an epilogue
//! ([`epilogue`]) turns the tile into the output. One or two tokens are multiplied straight on the file's layout
//! ([`gemv`]); with a few, four rows of weights are unpacked for all of them ([`few`]); for many, panels of weight rows are
//! unpacked and turned once ([`gemm`]). Unquantised weights have kernels of their own ([`float`]).
//!
//! Finely quantised activations (`Q8x2`) are two rows of `Q8` per token, where the second row's scales are 1/256 of the
//! first's. So the integer sums of both rows join into one, `256 · first + second`, before anything is scaled.
//!
//! An output element is computed in the same way whatever the tile, so neither the number of workers nor that of the
//! other tokens changes it, but for one thing: the ways to multiply (by the number of tokens) add the products of a row in
//! a different order, which moves results within the rounding of floats.

mod epilogue;
mod few;
mod float;
mod gemm;
mod gemv;
pub(crate) mod micro;

use crate::blocks::{Chunk, Format, FormatVisitor, with_format};
use crate::ops::attention::MAX_HEAD_DIM;
use crate::quantize::{Q8_BLOCK, Q8Row};
use crate::scratch::Scratch;
use crate::simd::Simd;
use crate::work::{Check, Fault, Matrix, Task};
use epilogue::Epilogue;
use few::FEW_TOKENS;
use minfer_backend::BackendError;
use minfer_graph::ValueType;

/// Most tokens that are multiplied straight on the file's layout. Measured: with more, unpacking for several rows at once is
/// faster.
pub(crate) const GEMV_TOKENS: usize = 2;
/// Rows of weights in an item with many tokens: a panel.
const GEMM_ROWS: usize = 32;
/// Most tokens for which an item is a run of weights: enough to stream.
const SOME_TOKENS: usize = 32;
/// Bytes that weights are asked for ahead of their use.
const PREFETCH: usize = 8192;
/// Bytes of weights in a run.
const RUN_BYTES: usize = 128 << 10;
/// Most tokens in an item: their activations stay in the second-level cache.
const GEMM_TOKENS: usize = 256;
/// Floats of a tile buffer.
const TILE: usize = 32 << 10;

/// What a worker keeps for products.
#[repr(C, align(64))]
pub(crate) struct ProductScratch {
    tile: [f32; TILE],
    buffers: Buffers,
}

/// What the ways to multiply keep while they do.
struct Buffers {
    panel: gemm::Panel,
    float_panel: float::Panel,
    gemv_slice: gemv::Slice,
    few_slices: few::Slices,
    rows: [Chunk; 16],
}

/// Which activations are prepared in a buffer: for which type of weights, from which token and column on. Parts of one step
/// have the same activations, so what one part prepared serves the next; a step begins with nothing.
#[derive(Clone, Copy, PartialEq)]
struct Held([usize; 3]);

impl Held {
    const NOTHING: Self = Self([usize::MAX; 3]);

    /// Says what the buffer will hold from now on, and whether it must be prepared first.
    fn becomes(&mut self, part: &Part, token: usize, col: usize) -> bool {
        let wanted = Self([part.matrix.dtype as usize, part.first_token + token, col]);
        std::mem::replace(self, wanted) != wanted
    }
}

/// The left operand: one row of floats or of `Q8` per token, or two of `Q8` if `fine`.
#[derive(Clone, Copy)]
pub(crate) struct Activations {
    start: *const u8,
    n_tokens: usize,
    cols: usize,
    quantised: bool,
    fine: bool,
}

impl Activations {
    /// Bytes from one token to the next.
    fn token_bytes(&self) -> usize {
        if self.quantised { Q8Row::bytes(self.cols) * (1 + usize::from(self.fine)) } else { self.cols * 4 }
    }
}

/// A checked product.
pub(crate) struct Product {
    matrices: [Matrix; 3],
    x: Activations,
    out: *mut u8,
    out_cols: usize,
    epilogue: Epilogue,
    tiling: Tiling,
}

/// How the work is divided. Never depends on the number of workers.
#[derive(Clone, Copy)]
struct Tiling {
    /// Rows of weights in a tile.
    rows: usize,
    n_row_tiles: usize,
    /// Of these, the first are also divided by tokens; the rest are one item each.
    n_divided: usize,
    tokens: usize,
    n_token_tiles: usize,
}

impl Product {
    pub(crate) fn check(check: &Check<'_>) -> Result<Self, BackendError> {
        let (x, out) = (check.input(0)?, check.output()?);
        check.equal("rows of the output", x.rows, out.rows)?;
        let (quantised, fine) = (x.ty.is_quantised(), x.ty == ValueType::Q8x2);
        let x = Activations { start: x.start, n_tokens: x.rows, cols: x.cols, quantised, fine };
        let op = check.step.kernel.op;
        let mut matrices = [check.matrix(0)?; 3];
        for (index, matrix) in matrices.iter_mut().enumerate().take(op.n_matrices()) {
            *matrix = check.matrix(index)?;
            check.equal("columns of a matrix", x.cols, matrix.cols)?;
        }
        if quantised {
            check.equal("columns beyond a multiple of 32", 0, x.cols % Q8_BLOCK)?;
        }
        let epilogue = Epilogue::check(check, &matrices, &out)?;
        let tiling = Tiling::new(&matrices, &x, &epilogue);
        Ok(Self { matrices, x, out: out.start, out_cols: out.cols, epilogue, tiling })
    }
}

impl Tiling {
    fn new(matrices: &[Matrix; 3], x: &Activations, epilogue: &Epilogue) -> Self {
        let [first, ..] = matrices;
        let (rows, n_row_tiles, n_divided) = match epilogue {
            Epilogue::Qkv(qkv) => (qkv.head_dim, qkv.n_head + 2 * qkv.n_kv_head, qkv.n_head),
            // With some tokens only, the time goes into reading weights: in runs, so that each part can be asked for while
            // the one before is multiplied, but in enough of them to share out. Whole blocks of quantised output, and
            // whole panels; two tiles of a gated product fit the buffer.
            _ if x.n_tokens <= SOME_TOKENS => {
                let run = (RUN_BYTES / first.row_bytes.max(1)).min(first.rows / 8).min(TILE / 2 / SOME_TOKENS);
                let rows = (run / GEMM_ROWS * GEMM_ROWS).max(GEMM_ROWS);
                (rows, first.rows.div_ceil(rows), first.rows.div_ceil(rows))
            }
            _ => (GEMM_ROWS, first.rows.div_ceil(GEMM_ROWS), first.rows.div_ceil(GEMM_ROWS)),
        };
        // So that a few tokens are never divided.
        const { assert!(TILE / 2 / stride(MAX_HEAD_DIM) >= FEW_TOKENS) };
        let n_token_tiles = x.n_tokens.div_ceil(GEMM_TOKENS.min(TILE / 2 / stride(rows)));
        let tokens = x.n_tokens.div_ceil(n_token_tiles.max(1));
        Self { rows, n_row_tiles, n_divided, tokens, n_token_tiles }
    }
}

/// Floats from one row of a tile to the next: whole vectors of any level, and whole panels.
const fn stride(rows: usize) -> usize {
    rows.next_multiple_of(GEMM_ROWS)
}

impl Task for Product {
    fn items(&self, _phase: usize) -> usize {
        let Tiling { n_row_tiles, n_divided, n_token_tiles, .. } = self.tiling;
        if n_token_tiles == 0 { 0 } else { n_divided * n_token_tiles + (n_row_tiles - n_divided) }
    }

    fn begin(&self, scratch: &mut Scratch) {
        let buffers = &mut scratch.get::<ProductScratch>().buffers;
        buffers.gemv_slice.held = Held::NOTHING;
        buffers.few_slices.iter_mut().for_each(|slice| slice.held = Held::NOTHING);
    }

    #[inline(always)]
    unsafe fn item<S: Simd>(&self, s: S, _phase: usize, item: usize, scratch: &mut Scratch) -> Result<(), Fault> {
        let Tiling { rows, n_divided, tokens, n_token_tiles, .. } = self.tiling;
        let n_small = n_divided * n_token_tiles;
        let (row_tile, token_tiles) = if item < n_small {
            let token_tile = item % n_token_tiles;
            (item / n_token_tiles, token_tile..token_tile + 1)
        } else {
            (n_divided + item - n_small, 0..n_token_tiles)
        };
        let scratch = scratch.get::<ProductScratch>();
        for token_tile in token_tiles {
            let first_token = token_tile * tokens;
            let n_tokens = tokens.min(self.x.n_tokens.saturating_sub(first_token));
            // SAFETY: the caller's promise is passed on; the tile's rows and tokens are within bounds by construction.
            unsafe { epilogue::tile(s, self, row_tile, rows, first_token, n_tokens, scratch)? };
        }
        Ok(())
    }
}

/// A part of a product: `n_rows` rows of a matrix times `n_tokens` tokens.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    matrix: Matrix,
    first_row: usize,
    n_rows: usize,
    x: Activations,
    first_token: usize,
    n_tokens: usize,
    /// Element `(token, row)` goes to `token · stride + row`; up to the next multiple of 32 rows may be overwritten.
    tile: *mut f32,
    stride: usize,
}

impl Part {
    /// Address of a token's activations.
    ///
    /// # Safety
    /// The token is below `n_tokens`.
    #[inline(always)]
    unsafe fn x(&self, token: usize) -> *const u8 {
        // SAFETY: the part lies within the activations.
        unsafe { self.x.start.add((self.first_token + token) * self.x.token_bytes()) }
    }

    /// A token's quantised activations from column `col` on; the first row of them if there are two.
    ///
    /// # Safety
    /// The token is below `n_tokens`, the column starts a block of its row.
    #[inline(always)]
    unsafe fn q8(&self, token: usize, col: usize) -> Q8Row {
        // SAFETY: as promised by the caller.
        unsafe { Q8Row::at(self.x(token).cast_mut(), 0, self.x.cols).part(col) }
    }

    /// Address of a row of the weights.
    ///
    /// # Safety
    /// The row is below `n_rows`.
    #[inline(always)]
    unsafe fn row(&self, row: usize) -> *const u8 {
        // SAFETY: the part lies within the matrix.
        unsafe { self.matrix.start.add((self.first_row + row) * self.matrix.row_bytes) }
    }

    /// Computes the part; then row `t` of the tile is that of the part's token `t`.
    ///
    /// # Safety
    /// The part lies within matrix and activations, whose types fit each other; the tile has room for `n_tokens ·
    /// stride` floats.
    #[inline(always)]
    unsafe fn compute<S: Simd>(self, s: S, buffers: &mut Buffers) {
        if !self.x.quantised {
            return s.vectorize(float::Multiply { part: self, panel: &mut buffers.float_panel });
        }
        let visitor = Multiply { s, part: self, buffers };
        with_format(self.matrix.dtype, visitor).expect("quantised activations go with quantised weights");
    }
}

struct Multiply<'a, S> {
    s: S,
    part: Part,
    buffers: &'a mut Buffers,
}

impl<S: Simd> FormatVisitor for Multiply<'_, S> {
    type Out = ();

    #[inline(always)]
    fn visit<F: Format>(self) {
        let Self { s, part, buffers } = self;
        // By the batch, not by the part: the last part of a large batch is computed like the others.
        match part.x.n_tokens {
            n if n <= GEMV_TOKENS || const { S::PORTABLE } => {
                s.vectorize(gemv::Multiply::<F>::new(part, &mut buffers.gemv_slice))
            }
            n if n <= FEW_TOKENS => {
                let rows = buffers.rows.first_chunk_mut().expect("there are more");
                s.vectorize(few::Multiply::<F>::new(part, &mut buffers.few_slices, rows))
            }
            _ => s.vectorize(gemm::Multiply::<F>::new(part, &mut buffers.panel, &mut buffers.rows)),
        }
    }
}
