//! Operations on single elements. Takes one or two values of one shape; gives a third, in the place of any or not. Items
//! are runs of elements.

use crate::scratch::Scratch;
use crate::simd::{Simd, math};
use crate::vectors::{load_part, store_part};
use crate::work::{Check, Fault, Task};
use minfer_backend::BackendError;
use minfer_graph::{Activation, Op};

/// Elements of an item.
const ITEM: usize = 4096;

#[derive(Clone, Copy)]
enum Function {
    Activate(Activation),
    Add,
    Mul,
}

/// `out = f(a [, b])`.
pub(crate) struct Elementwise {
    function: Function,
    a: *const f32,
    /// `a` again where there is only one operand.
    b: *const f32,
    out: *mut f32,
    n: usize,
}

impl Elementwise {
    pub(crate) fn check(check: &Check<'_>) -> Result<Self, BackendError> {
        let function = match check.step.kernel.op {
            Op::Activate(activation) => Function::Activate(activation),
            Op::Add => Function::Add,
            Op::Mul => Function::Mul,
            _ => return Err(check.bad("operation", "elementwise", check.step.kernel.op)),
        };
        let (a, out) = (check.input(0)?, check.output()?);
        let b = if check.step.inputs.len() > 1 { check.input(1)? } else { a };
        for other in [b, out] {
            check.equal("columns of an operand", a.cols, other.cols)?;
            check.equal("rows of an operand", a.rows, other.rows)?;
        }
        let n = a.rows * a.cols;
        Ok(Self { function, a: a.start.cast(), b: b.start.cast(), out: out.start.cast(), n })
    }
}

impl Task for Elementwise {
    fn items(&self, _phase: usize) -> usize {
        self.n.div_ceil(ITEM)
    }

    #[inline(always)]
    unsafe fn item<S: Simd>(&self, s: S, _phase: usize, item: usize, _: &mut Scratch) -> Result<(), Fault> {
        for at in (item * ITEM..self.n.min((item + 1) * ITEM)).step_by(S::LANES) {
            // SAFETY: `n - at` elements are there on all sides; those of this item are its alone, and items are whole
            // vectors, so that a vector never reaches into the next.
            unsafe {
                let a = load_part(s, self.a.add(at), self.n - at);
                let b = load_part(s, self.b.add(at), self.n - at);
                let v = match self.function {
                    Function::Activate(activation) => activate(s, activation, a),
                    Function::Add => s.add(a, b),
                    Function::Mul => s.mul(a, b),
                };
                store_part(s, self.out.add(at), self.n - at, v);
            }
        }
        Ok(())
    }
}

/// A gate function.
#[inline(always)]
pub(crate) fn activate<S: Simd>(s: S, activation: Activation, x: S::F) -> S::F {
    match activation {
        Activation::Silu => math::silu(s, x),
        Activation::GeluTanh => math::gelu_tanh(s, x),
    }
}
