//! One step to try, as plain data. Takes values from the generators; gives the kernel it needs; must not know regions.

use super::random::Random;
use crate::kernel::Kernel;
use crate::reference::q8;
use minfer_graph::{BatchDims, DType, KvSide, Op, Rows, Shape, ValueType};

/// An input: its own bytes, or one of the KV regions.
pub enum Input {
    /// Bytes of the rows in this batch.
    Value { shape: Shape, ty: ValueType, bytes: Vec<u8> },
    /// A view of a KV region.
    View(KvSide),
}

/// A weight and its bytes.
pub struct WeightData {
    pub dtype: DType,
    pub rows: usize,
    pub cols: usize,
    pub bytes: Vec<u8>,
}

/// The contents of a layer's KV regions.
pub struct KvData {
    pub k: Vec<u8>,
    pub v: Vec<u8>,
    pub ty: ValueType,
    pub cols: usize,
    pub n_cells: usize,
}

/// What the step gives.
#[derive(Clone, Copy)]
pub struct Output {
    pub shape: Shape,
    pub ty: ValueType,
}

/// A step with everything it reads.
pub struct Case {
    pub op: Op,
    pub inputs: Vec<Input>,
    pub weights: Vec<WeightData>,
    pub output: Output,
    pub kv: Option<KvData>,
    /// The batch.
    pub dims: BatchDims,
    /// The largest batch, which the buffers are sized for.
    pub capacity: BatchDims,
}

impl Case {
    /// A case on `n` tokens without inputs yet; the capacity is larger in some cases.
    pub fn new(random: &mut Random, op: Op, n_tokens: usize, out_cols: usize, ty: ValueType) -> Self {
        let dims = BatchDims { n_tokens: n_tokens as u32, n_outputs: n_tokens as u32 };
        let spare = random.pick(&[0, 0, 1, 5]);
        let capacity = BatchDims { n_tokens: dims.n_tokens + spare, n_outputs: dims.n_outputs + spare };
        let output = Output { shape: Shape::new(Rows::Tokens, out_cols as u32), ty };
        Self { op, inputs: vec![], weights: vec![], output, kv: None, dims, capacity }
    }

    /// What rounding alone may change of an element, however small the element itself is: a sum of large terms can be
    /// nearly nothing. A part of the product of the operands' norms, which bounds it (Cauchy and Schwarz).
    pub fn rounding(&self) -> f32 {
        const PART: f32 = 1e-6;
        let norm = |values: &[f32]| values.iter().map(|v| v * v).sum::<f32>().sqrt();
        let largest = |rows: Vec<Vec<f32>>| rows.iter().map(|row| norm(row)).fold(0.0, f32::max);
        let bound = |matrix: usize| largest(self.input_rows(0)) * largest(self.weight_rows(matrix));
        match self.op {
            Op::Linear | Op::LinearAdd => PART * bound(0),
            // Each factor's error times the other factor, whose size is about its bound over the root of its terms.
            Op::GatedLinear { .. } => {
                let typical = |bound: f32| 1.0 + 4.0 * bound / (self.weights[0].cols as f32).sqrt();
                let (gate, up) = (bound(0), bound(1));
                PART * (gate * typical(up) + up * typical(gate))
            }
            Op::Activate(_) => PART * largest(self.input_rows(0)),
            _ => 0.0,
        }
    }

    fn input_rows(&self, index: usize) -> Vec<Vec<f32>> {
        let Input::Value { shape, ty, bytes } = &self.inputs[index] else { return Vec::new() };
        let cols = shape.cols as usize;
        let row_bytes = ty.row_bytes(shape.cols) as usize;
        let row = |bytes: &[u8]| match ty {
            ValueType::Q8 | ValueType::Q8x2 => {
                let mut values = vec![0.0; cols];
                q8::dequantize(*ty, bytes, &mut values);
                values
            }
            _ => crate::host::numbers::<f32>(bytes).into_owned(),
        };
        bytes.chunks_exact(row_bytes.max(1)).map(row).collect()
    }

    fn weight_rows(&self, index: usize) -> Vec<Vec<f32>> {
        let weight = &self.weights[index];
        let row = |bytes: &[u8]| {
            let mut values = vec![0.0; weight.cols];
            minfer_gguf::decode_row(weight.dtype, bytes, &mut values).expect("the suite's weights are whole rows");
            values
        };
        weight.bytes.chunks_exact(weight.bytes.len() / weight.rows.max(1)).map(row).collect()
    }

    /// Adds rows of floats, one per token, quantised if `ty` is.
    pub fn floats(&mut self, cols: usize, ty: ValueType, values: &[f32]) {
        self.floats_of(Rows::Tokens, cols, ty, values);
    }

    /// Adds rows of floats.
    pub fn floats_of(&mut self, rows: Rows, cols: usize, ty: ValueType, values: &[f32]) {
        let bytes = match ty {
            ValueType::Q8 | ValueType::Q8x2 => {
                let row_bytes = ty.row_bytes(cols as u32) as usize;
                let mut bytes = vec![0; values.len() / cols.max(1) * row_bytes];
                let rows = bytes.chunks_exact_mut(row_bytes).zip(values.chunks_exact(cols));
                rows.for_each(|(row, values)| q8::quantize(ty, values, row));
                bytes
            }
            _ => bytemuck::cast_slice(values).to_vec(),
        };
        self.inputs.push(Input::Value { shape: Shape::new(rows, cols as u32), ty, bytes });
    }

    /// Adds integers in rows of `cols`.
    pub fn integers(&mut self, rows: Rows, cols: usize, values: &[i32]) {
        let bytes = bytemuck::cast_slice(values).to_vec();
        self.inputs.push(Input::Value { shape: Shape::new(rows, cols as u32), ty: ValueType::I32, bytes });
    }

    /// The type of an input.
    pub fn input_type(&self, index: usize) -> ValueType {
        match &self.inputs[index] {
            Input::Value { ty, .. } => *ty,
            Input::View(_) => self.kv.as_ref().map_or(ValueType::F32, |kv| kv.ty),
        }
    }

    /// The kernel that the step needs.
    pub fn kernel(&self) -> Kernel {
        Kernel {
            op: self.op,
            inputs: (0..self.inputs.len()).map(|index| self.input_type(index)).collect(),
            weights: self.weights.iter().map(|weight| weight.dtype).collect(),
            output: self.output.ty,
        }
    }

    /// What tells this case from others of its kernel.
    pub fn describe(&self) -> String {
        let weights: Vec<_> = self.weights.iter().map(|w| format!("{}x{}", w.rows, w.cols)).collect();
        format!(
            "[{:?}, {} tokens of {}, value {}, weights {weights:?}]",
            self.op, self.dims.n_tokens, self.capacity.n_tokens, self.output.shape
        )
    }
}
