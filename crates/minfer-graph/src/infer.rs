//! Shape and type rules. Takes an operation and its operands; gives the shape and type of its value, or what does not
//! fit; must not know nodes or names.

use crate::graph::Weight;
use crate::op::Op;
use crate::params::GraphParams;
use crate::types::{Rows, Shape, ValueType};

/// Operands that do not fit an operation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InferError {
    /// Number of inputs.
    #[error("{op} takes {expected} inputs, got {got}")]
    InputCount {
        /// Operation.
        op: Op,
        /// Inputs it takes.
        expected: usize,
        /// Inputs given.
        got: usize,
    },
    /// Number of weights.
    #[error("{op} takes {expected} weights, got {got}")]
    WeightCount {
        /// Operation.
        op: Op,
        /// Weights it takes.
        expected: &'static str,
        /// Weights given.
        got: usize,
    },
    /// A dimension.
    #[error("{op}: {what} must be {expected}, got {got}")]
    Dimension {
        /// Operation.
        op: Op,
        /// Which operand's dimension.
        what: &'static str,
        /// What fits.
        expected: String,
        /// What came.
        got: String,
    },
}

/// A value as the rules see it.
type Typed = (Shape, ValueType);

/// The shape and type of an operation's value. `kv` is the shape of the regions of the layer that it names. `stated` is the
/// node's own: an input states its shape, and a producer may state a quantised type where its rule gives floats.
pub fn infer_output(
    op: &Op,
    inputs: &[Typed],
    weights: &[&Weight],
    params: &GraphParams,
    kv: Shape,
    stated: Typed,
) -> Result<Typed, InferError> {
    let rules = Rules { op, inputs, weights };
    let (shape, ty) = rules.output(params, kv, stated)?;
    let quantises = stated.1.is_quantised() && ty == ValueType::F32 && shape.cols % 32 == 0;
    Ok((shape, if quantises { stated.1 } else { ty }))
}

struct Rules<'a> {
    op: &'a Op,
    inputs: &'a [Typed],
    weights: &'a [&'a Weight],
}

impl Rules<'_> {
    fn output(&self, params: &GraphParams, kv: Shape, stated: Typed) -> Result<Typed, InferError> {
        let f32_of = |shape: Shape| (shape, ValueType::F32);
        match *self.op {
            Op::Input => {
                self.counts(0, 0..=0, "none")?;
                Ok(stated)
            }
            Op::Embed { .. } => {
                self.counts(1, 1..=1, "one")?;
                self.column("token ids", self.inputs[0], ValueType::I32)?;
                Ok(f32_of(Shape::new(self.inputs[0].0.rows, self.weights[0].cols)))
            }
            Op::RopeTable { n_dims, .. } => {
                self.counts(1, 0..=1, "at most one")?;
                self.column("positions", self.inputs[0], ValueType::I32)?;
                self.check("rotated dims", n_dims > 0 && n_dims % 2 == 0, "even and positive", n_dims)?;
                if let Some(factors) = self.weights.first() {
                    self.equal("frequency factors", n_dims / 2, factors.cols)?;
                }
                Ok(f32_of(Shape::new(self.inputs[0].0.rows, n_dims)))
            }
            Op::RmsNorm { group, .. } => {
                self.counts(1, 1..=1, "one")?;
                let x = self.float(0)?;
                self.check("group", group > 0 && x.cols % group == 0, "a divisor of the row", group)?;
                self.equal("norm weight", group, self.weights[0].cols)?;
                Ok(f32_of(x))
            }
            Op::Linear => {
                self.counts(1, 1..=2, "one or two")?;
                let x = self.product(0)?;
                let out = self.weights[0].rows;
                if let Some(bias) = self.weights.get(1) {
                    self.equal("bias", out, bias.cols)?;
                }
                Ok(f32_of(Shape::new(x.rows, out)))
            }
            Op::LinearAdd => {
                self.counts(2, 1..=1, "one")?;
                let x = self.product(0)?;
                let out = Shape::new(x.rows, self.weights[0].rows);
                self.same("residual", out, self.float(1)?)?;
                Ok(f32_of(out))
            }
            Op::GatedLinear { .. } => {
                self.counts(1, 2..=2, "two")?;
                let x = self.product(0)?;
                self.product(1)?;
                self.equal("rows of the up matrix", self.weights[0].rows, self.weights[1].rows)?;
                Ok(f32_of(Shape::new(x.rows, self.weights[0].rows)))
            }
            Op::Rope { head_dim, n_dims, .. } => {
                self.counts(2, 0..=0, "none")?;
                let x = self.float(0)?;
                self.heads(x.cols, head_dim, n_dims)?;
                self.same("rope table", Shape::new(x.rows, n_dims), self.float(1)?)?;
                Ok(f32_of(x))
            }
            Op::KvStore { head_dim, .. } => {
                self.counts(3, 0..=0, "none")?;
                let (k, v) = (self.float(0)?, self.float(1)?);
                self.same("v", k, v)?;
                self.check(
                    "head size",
                    head_dim > 0 && k.cols.is_multiple_of(head_dim),
                    "a divisor of the row",
                    head_dim,
                )?;
                self.cached(params, head_dim)?;
                self.column("cells", self.inputs[2], ValueType::I32)?;
                Ok((Shape::new(kv.rows, k.cols), params.cache_type.value_type()))
            }
            Op::KvView { .. } => {
                self.counts(1, 0..=0, "none")?;
                // Behind a fused store the input is q, whose width is not the cache's.
                Ok((kv, params.cache_type.value_type()))
            }
            Op::Attention(a) => {
                self.counts(6, 0..=0, "none")?;
                let q = self.float(0)?;
                self.equal("q columns", a.n_head.saturating_mul(a.head_dim), q.cols)?;
                let shares = a.n_kv_head > 0 && a.n_head % a.n_kv_head == 0;
                self.check("kv heads", shares, "a divisor of the heads", a.n_kv_head)?;
                self.cached(params, a.head_dim)?;
                let kv = (Shape::new(kv.rows, a.n_kv_head.saturating_mul(a.head_dim)), params.cache_type.value_type());
                for (index, what) in [(1, "k view"), (2, "v view")] {
                    self.check_eq(what, kv, self.inputs[index])?;
                }
                self.column("positions", self.inputs[3], ValueType::I32)?;
                self.column("sequence rows", self.inputs[4], ValueType::I32)?;
                let table = Shape::new(Rows::Fixed(params.sequence_capacity), params.blocks_per_sequence());
                self.check_eq("block table", (table, ValueType::I32), self.inputs[5])?;
                Ok(f32_of(q))
            }
            Op::QkvStore(qkv) => {
                let n_weights = 3 + if qkv.bias { 3 } else { 0 } + if qkv.head_norm_eps.is_some() { 2 } else { 0 };
                self.counts(3, n_weights..=n_weights, "three matrices, three biases if any, two norms if any")?;
                let x = self.product(0)?;
                self.product(1)?;
                self.product(2)?;
                let q_cols = qkv.n_head.saturating_mul(qkv.head_dim);
                let kv_cols = qkv.n_kv_head.saturating_mul(qkv.head_dim);
                let widths = [q_cols, kv_cols, kv_cols];
                for (index, width) in widths.into_iter().enumerate() {
                    self.equal("rows of a projection", width, self.weights[index].rows)?;
                    if qkv.bias {
                        self.equal("bias", width, self.weights[3 + index].cols)?;
                    }
                }
                if qkv.head_norm_eps.is_some() {
                    for weight in &self.weights[n_weights - 2..] {
                        self.equal("head norm", qkv.head_dim, weight.cols)?;
                    }
                }
                self.heads(q_cols, qkv.head_dim, qkv.rope_dims)?;
                self.cached(params, qkv.head_dim)?;
                self.same("rope table", Shape::new(x.rows, qkv.rope_dims), self.float(1)?)?;
                self.column("cells", self.inputs[2], ValueType::I32)?;
                Ok(f32_of(Shape::new(x.rows, q_cols)))
            }
            Op::Activate(_) => {
                self.counts(1, 0..=0, "none")?;
                Ok(f32_of(self.float(0)?))
            }
            Op::Add | Op::Mul => {
                self.counts(2, 0..=0, "none")?;
                let a = self.float(0)?;
                self.same("second operand", a, self.float(1)?)?;
                Ok(f32_of(a))
            }
            Op::SelectRows => {
                self.counts(2, 0..=0, "none")?;
                let x = self.float(0)?;
                self.column("output rows", self.inputs[1], ValueType::I32)?;
                Ok(f32_of(Shape::new(self.inputs[1].0.rows, x.cols)))
            }
            Op::Quantize => {
                self.counts(1, 0..=0, "none")?;
                let x = self.float(0)?;
                self.check("columns", x.cols % 32 == 0, "a multiple of 32", x.cols)?;
                Ok((x, if stated.1.is_quantised() { stated.1 } else { ValueType::Q8 }))
            }
            Op::Copy => {
                self.counts(1, 0..=0, "none")?;
                Ok(self.inputs[0])
            }
        }
    }

    fn counts(
        &self,
        inputs: usize,
        weights: std::ops::RangeInclusive<usize>,
        expected: &'static str,
    ) -> Result<(), InferError> {
        if self.inputs.len() != inputs {
            return Err(InferError::InputCount { op: *self.op, expected: inputs, got: self.inputs.len() });
        }
        if !weights.contains(&self.weights.len()) {
            return Err(InferError::WeightCount { op: *self.op, expected, got: self.weights.len() });
        }
        Ok(())
    }

    fn check(&self, what: &'static str, ok: bool, expected: &str, got: impl ToString) -> Result<(), InferError> {
        if ok {
            return Ok(());
        }
        Err(InferError::Dimension { op: *self.op, what, expected: expected.to_string(), got: got.to_string() })
    }

    fn equal(&self, what: &'static str, expected: u32, got: u32) -> Result<(), InferError> {
        self.check(what, expected == got, &expected.to_string(), got)
    }

    fn same(&self, what: &'static str, expected: Shape, got: Shape) -> Result<(), InferError> {
        self.check(what, expected == got, &expected.to_string(), got)
    }

    fn check_eq(&self, what: &'static str, expected: Typed, got: Typed) -> Result<(), InferError> {
        if expected == got {
            return Ok(());
        }
        let text = |(shape, ty): Typed| format!("{shape} {ty}");
        self.check(what, false, &text(expected), text(got))
    }

    fn column(&self, what: &'static str, got: Typed, ty: ValueType) -> Result<(), InferError> {
        self.check_eq(what, (Shape::new(got.0.rows, 1), ty), got)
    }

    fn float(&self, index: usize) -> Result<Shape, InferError> {
        let (shape, ty) = self.inputs[index];
        self.check("type of an operand", ty == ValueType::F32, "f32", ty)?;
        Ok(shape)
    }

    /// The first input as the operand of the product with matrix `matrix`.
    fn product(&self, matrix: usize) -> Result<Shape, InferError> {
        let (x, ty) = self.inputs[0];
        let fits = ty == ValueType::F32 || ty.is_quantised();
        self.check("type of x", fits, "f32, q8 or q8x2", ty)?;
        self.equal("columns of the matrix", x.cols, self.weights[matrix].cols)?;
        Ok(x)
    }

    /// Runs of `elems` elements are whole blocks of the cache's type.
    fn cached(&self, params: &GraphParams, elems: u32) -> Result<(), InferError> {
        self.check("elements cached together", params.cache_type.fits(elems), "a multiple of 32", elems)
    }

    fn heads(&self, cols: u32, head_dim: u32, n_dims: u32) -> Result<(), InferError> {
        self.check("head size", head_dim > 0 && cols.is_multiple_of(head_dim), "a divisor of the row", head_dim)?;
        let fits = n_dims > 0 && n_dims.is_multiple_of(2) && n_dims <= head_dim;
        self.check("rotated dims", fits, "even, positive and at most the head size", n_dims)
    }
}
