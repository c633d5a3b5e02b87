//! Rotary position embedding. Takes positions, then heads and the table of angles; gives the table, then rotated heads.
//! One item per token.

use crate::scratch::Scratch;
use crate::simd::Simd;
use crate::work::{Check, Fault, Task};
use minfer_backend::BackendError;
use minfer_graph::RopeStyle;

/// Per token `n_dims/2` cosines, then as many sines.
pub(crate) struct RopeTable {
    positions: *const i32,
    factors: Option<*const f32>,
    out: *mut f32,
    n_tokens: usize,
    n_dims: usize,
    base: f32,
    freq_scale: f32,
}

impl RopeTable {
    pub(crate) fn check(check: &Check<'_>, n_dims: u32, base: f32, freq_scale: f32) -> Result<Self, BackendError> {
        let (out, n_dims) = (check.output()?, n_dims as usize);
        check.equal("columns of the output", n_dims, out.cols)?;
        let positions = check.column(0, out.rows)?;
        let factors = if check.step.weights.is_empty() { None } else { Some(check.vector(0, n_dims / 2)?) };
        Ok(Self { positions, factors, out: out.start.cast(), n_tokens: out.rows, n_dims, base, freq_scale })
    }
}

impl Task for RopeTable {
    fn items(&self, _phase: usize) -> usize {
        self.n_tokens
    }

    #[inline(always)]
    unsafe fn item<S: Simd>(&self, _s: S, _phase: usize, token: usize, _: &mut Scratch) -> Result<(), Fault> {
        let n = self.n_dims;
        // Angles grow with the position, so single precision would lose their fraction.
        let step = f64::from(self.base).powf(-2.0 / n as f64);
        let mut frequency = 1.0f64;
        // SAFETY: there is a position per token; row `token` of the output is this item's alone; the factors, if any,
        // are `n / 2`.
        unsafe {
            // A position has no upper limit here: the cache knows it. It has a lower one.
            let position = Fault::index("position", *self.positions.add(token), usize::MAX)?;
            let position = position as f64 * f64::from(self.freq_scale);
            let out = self.out.add(token * n);
            for i in 0..n / 2 {
                let factor = self.factors.map_or(1.0, |factors| f64::from(factors.add(i).read_unaligned()));
                let (sin, cos) = (position * frequency / factor).sin_cos();
                *out.add(i) = cos as f32;
                *out.add(n / 2 + i) = sin as f32;
                frequency *= step;
            }
        }
        Ok(())
    }
}

/// Rotates the first `n_dims` of each head.
pub(crate) struct Rope {
    x: *const f32,
    table: *const f32,
    out: *mut f32,
    n_tokens: usize,
    cols: usize,
    head_dim: usize,
    style: RopeStyle,
    n_dims: usize,
}

impl Rope {
    pub(crate) fn check(check: &Check<'_>, style: RopeStyle, head_dim: u32, n_dims: u32) -> Result<Self, BackendError> {
        let (x, table, out) = (check.input(0)?, check.input(1)?, check.output()?);
        let (head_dim, n_dims) = (head_dim as usize, n_dims as usize);
        check.equal("columns of the output", x.cols, out.cols)?;
        check.equal("rows of the output", x.rows, out.rows)?;
        check.equal("columns of the table", n_dims, table.cols)?;
        check.equal("rows of the table", x.rows, table.rows)?;
        check.equal("columns beyond whole heads", 0, x.cols % head_dim)?;
        Ok(Self {
            x: x.start.cast(),
            table: table.start.cast(),
            out: out.start.cast(),
            n_tokens: x.rows,
            cols: x.cols,
            head_dim,
            style,
            n_dims,
        })
    }
}

impl Task for Rope {
    fn items(&self, _phase: usize) -> usize {
        self.n_tokens
    }

    #[inline(always)]
    unsafe fn item<S: Simd>(&self, _s: S, _phase: usize, token: usize, _: &mut Scratch) -> Result<(), Fault> {
        // SAFETY: row `token` lies within all three matrices and is this item's alone; `supports` says that `n_dims` is
        // even and at most `head_dim`. In place, a row is read where it is written.
        unsafe {
            let (x, out) = (self.x.add(token * self.cols), self.out.add(token * self.cols));
            let table = self.table.add(token * self.n_dims);
            for head in (0..self.cols).step_by(self.head_dim) {
                let (x, out) = (x.add(head), out.add(head));
                if !std::ptr::eq(x, out) {
                    std::ptr::copy_nonoverlapping(x, out, self.head_dim);
                }
                rotate(out, table, self.style, self.n_dims);
            }
        }
        Ok(())
    }
}

/// Rotates the first `n_dims` elements of a head by a row of the table.
///
/// # Safety
/// `n_dims` floats of the head are writable and of the table readable.
#[inline(always)]
pub(crate) unsafe fn rotate(head: *mut f32, table: *const f32, style: RopeStyle, n_dims: usize) {
    let half = n_dims / 2;
    for i in 0..half {
        let (a, b) = match style {
            RopeStyle::Adjacent => (2 * i, 2 * i + 1),
            RopeStyle::Halves => (i, i + half),
        };
        // SAFETY: `a`, `b` and `half + i` are below `n_dims`.
        unsafe {
            let (cos, sin) = (*table.add(i), *table.add(half + i));
            let (x, y) = (*head.add(a), *head.add(b));
            *head.add(a) = x * cos - y * sin;
            *head.add(b) = x * sin + y * cos;
        }
    }
}
