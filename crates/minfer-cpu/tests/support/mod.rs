//! What the tests share: a backend with one region per operand, steps made by hand, random data, and plain formulas.
#![allow(dead_code)]

use half::f16;
use minfer_backend::{
    Backend, BackendError, BackendId, BufRef, Capabilities, Kernel, KvPair, Operand, RegionId, Step, WeightOperand,
};
use minfer_cpu::{CpuBackend, CpuCapabilities, CpuOptions, SimdLevel};
use minfer_graph::{BatchDims, CacheType, DType, Fusion, GraphKind, GraphParams, Op, Rows, Shape, ValueType};
use std::num::NonZeroUsize;

/// Levels that this processor has.
pub fn levels() -> Vec<SimdLevel> {
    SimdLevel::ALL.into_iter().filter(|level| level.is_available()).collect()
}

pub const QUANTISED: [DType; 12] = [
    DType::Q4_0,
    DType::Q4_1,
    DType::Q5_0,
    DType::Q5_1,
    DType::Q8_0,
    DType::Q2_K,
    DType::Q3_K,
    DType::Q4_K,
    DType::Q5_K,
    DType::Q6_K,
    DType::IQ4_NL,
    DType::IQ4_XS,
];

/// A small generator (Marsaglia's xorshift, 2003): the same numbers on every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// In `-1..1`.
    pub fn float(&mut self) -> f32 {
        ((self.next() >> 40) as f32 / (1u64 << 23) as f32) - 1.0
    }

    pub fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.float()).collect()
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 16) as usize % n
    }

    /// Rows of a weight: any bits, but scales that are finite.
    pub fn weight(&mut self, dtype: DType, rows: usize, cols: usize) -> Vec<u8> {
        let row_bytes = dtype.row_bytes(cols).expect("whole blocks");
        let mut bytes: Vec<u8> = (0..rows * row_bytes).map(|_| (self.next() >> 32) as u8).collect();
        for block in bytes.chunks_mut(dtype.block_bytes()) {
            let scales: &[usize] = match dtype {
                DType::Q4_0 | DType::Q5_0 | DType::Q8_0 | DType::IQ4_NL | DType::IQ4_XS => &[0],
                DType::Q4_1 | DType::Q5_1 | DType::Q4_K | DType::Q5_K => &[0, 2],
                DType::Q2_K => &[80, 82],
                DType::Q3_K => &[108],
                DType::Q6_K => &[208],
                DType::F32 => {
                    block.copy_from_slice(&self.float().to_le_bytes());
                    &[]
                }
                DType::F16 => {
                    block.copy_from_slice(&f16::from_f32(self.float()).to_le_bytes());
                    &[]
                }
                DType::BF16 => {
                    block.copy_from_slice(&half::bf16::from_f32(self.float()).to_le_bytes());
                    &[]
                }
                DType::I32 => unreachable!("no weight"),
            };
            for &at in scales {
                block[at..at + 2].copy_from_slice(&f16::from_f32(self.float() * 0.1).to_le_bytes());
            }
        }
        bytes
    }
}

/// The floats of a weight.
pub fn decode(dtype: DType, bytes: &[u8], cols: usize) -> Vec<f32> {
    let mut out = Vec::new();
    for row in bytes.chunks(dtype.row_bytes(cols).unwrap()) {
        let mut floats = vec![0.0; cols];
        minfer_gguf::decode_row(dtype, row, &mut floats).unwrap();
        out.extend(floats);
    }
    out
}

/// The floats of quantised activations.
pub fn dequantise(bytes: &[u8], cols: usize) -> Vec<f32> {
    let mut out = Vec::new();
    for row in bytes.chunks(ValueType::Q8.row_bytes(cols as u32) as usize) {
        let scale = |block: usize| f32::from_le_bytes(row[cols + 4 * block..][..4].try_into().unwrap());
        out.extend(row[..cols].iter().enumerate().map(|(col, &q)| scale(col / 32) * f32::from(q as i8)));
        for half in 0..cols / 16 {
            let at = cols + cols / 8 + 2 * half;
            let sum: i16 = row[half * 16..][..16].iter().map(|&q| i16::from(q as i8)).sum();
            assert_eq!(sum, i16::from_le_bytes([row[at], row[at + 1]]), "sum of half block {half}");
        }
    }
    out
}

/// A backend, and operands in regions of their own.
pub struct Machine {
    pub backend: CpuBackend,
    pub dims: BatchDims,
    next_region: u32,
}

impl Machine {
    pub fn new(level: SimdLevel, threads: usize) -> Self {
        let options = CpuOptions { threads: NonZeroUsize::new(threads).unwrap(), simd: Some(level) };
        let backend = CpuBackend::new(options).unwrap();
        Self { backend, dims: BatchDims { n_tokens: 0, n_outputs: 0 }, next_region: 0 }
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> BufRef {
        let region = RegionId(self.next_region);
        self.next_region += 1;
        let len = bytes.len() as u64;
        self.backend.create_region(region, len).unwrap();
        let buf = BufRef { backend: BackendId(0), region, offset: 0, len };
        self.backend.write(buf, bytes).unwrap();
        buf
    }

    pub fn value(&mut self, rows: usize, cols: usize, ty: ValueType, bytes: &[u8]) -> Operand {
        let shape = Shape::new(Rows::Fixed(rows as u32), cols as u32);
        assert_eq!(bytes.len() as u64, rows as u64 * ty.row_bytes(cols as u32));
        Operand { buf: self.bytes(bytes), shape, ty }
    }

    pub fn floats(&mut self, rows: usize, cols: usize, data: &[f32]) -> Operand {
        let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.value(rows, cols, ValueType::F32, &bytes)
    }

    pub fn ints(&mut self, data: &[i32]) -> Operand {
        self.int_rows(data.len(), 1, data)
    }

    pub fn int_rows(&mut self, rows: usize, cols: usize, data: &[i32]) -> Operand {
        let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.value(rows, cols, ValueType::I32, &bytes)
    }

    /// An output, full of NaN.
    pub fn empty(&mut self, rows: usize, cols: usize, ty: ValueType) -> Operand {
        let bytes = vec![0xff; rows * ty.row_bytes(cols as u32) as usize];
        self.value(rows, cols, ty, &bytes)
    }

    pub fn weight(&mut self, dtype: DType, rows: usize, cols: usize, bytes: &[u8]) -> WeightOperand {
        WeightOperand { buf: self.bytes(bytes), dtype, rows: rows as u32, cols: cols as u32 }
    }

    pub fn vector(&mut self, data: &[f32]) -> WeightOperand {
        let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.weight(DType::F32, 1, data.len(), &bytes)
    }

    /// K and V regions.
    pub fn kv(&mut self, ty: ValueType, n_cells: usize, cols: usize, k: &[u8], v: &[u8]) -> KvPair {
        let (k, v) = (self.bytes(k), self.bytes(v));
        KvPair { k, v, ty, cols: cols as u32, n_cells: n_cells as u32 }
    }

    /// A view of one side of the KV regions.
    pub fn view(&self, kv: &KvPair, buf: BufRef) -> Operand {
        Operand { buf, shape: Shape::new(Rows::Fixed(kv.n_cells), kv.cols), ty: kv.ty }
    }

    pub fn run(&mut self, steps: &[Step]) -> Result<(), BackendError> {
        self.backend.run(steps, &self.dims)
    }

    pub fn read_bytes(&self, buf: BufRef) -> Vec<u8> {
        let mut out = Vec::new();
        self.backend.read(buf, &mut |bytes| out.extend_from_slice(bytes)).unwrap();
        out
    }

    /// The floats of a value of any type.
    pub fn read(&self, operand: &Operand) -> Vec<f32> {
        let bytes = self.read_bytes(operand.buf);
        match operand.ty {
            ValueType::Q8 => dequantise(&bytes, operand.shape.cols as usize),
            ValueType::Q8_0 => decode(DType::Q8_0, &bytes, operand.shape.cols as usize),
            ValueType::F16 => bytes.as_chunks::<2>().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
            _ => bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        }
    }

    /// Quantises floats.
    pub fn quantise(&mut self, x: Operand) -> Operand {
        let (rows, cols) = (self.dims.rows(x.shape.rows), x.shape.cols);
        let out = self.empty(rows as usize, cols as usize, ValueType::Q8);
        self.run(&[step(Op::Quantize, &[x], &[], out)]).unwrap();
        out
    }
}

/// A step without workspace and KV.
pub fn step(op: Op, inputs: &[Operand], weights: &[WeightOperand], output: Operand) -> Step {
    let kernel = Kernel {
        op,
        inputs: inputs.iter().map(|x| x.ty).collect(),
        weights: weights.iter().map(|w| w.dtype).collect(),
        output: output.ty,
    };
    let (inputs, weights) = (inputs.to_vec(), weights.to_vec());
    let name = op.name().to_string();
    Step { node: 0, name, backend: BackendId(0), kernel, inputs, weights, output, workspace: None, kv: None }
}

/// The capabilities' workspace for a step.
pub fn workspace(machine: &mut Machine, step: &Step, params: &GraphParams) -> Option<BufRef> {
    let capabilities = CpuCapabilities::new(CpuOptions::default());
    let bytes = capabilities.workspace_bytes(&step.kernel, step.output.shape, params);
    (bytes > 0).then(|| machine.bytes(&vec![0xff; bytes as usize]))
}

pub fn params(n_ctx: u32, token_capacity: u32, cache_type: CacheType) -> GraphParams {
    GraphParams {
        kind: GraphKind::Decode,
        token_capacity,
        batch_capacity: token_capacity,
        output_capacity: token_capacity,
        sequence_capacity: 4,
        n_ctx,
        n_cells: 4 * n_ctx,
        cache_type,
        fusion: Fusion::ALL,
        weights_version: 0,
    }
}

/// Every element within `tolerance · scale` of what is expected.
#[track_caller]
pub fn assert_close(got: &[f32], expected: &[f64], scale: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}: length");
    for (index, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let error = (f64::from(got) - expected).abs();
        let limit = tolerance * scale[index % scale.len()].abs();
        assert!(error <= limit, "{what}: element {index} is {got}, expected {expected}, off by {error:e} > {limit:e}");
    }
}

/// `x wᵀ` in double precision, and the sums of magnitudes that errors are measured against.
pub fn multiply(x: &[f32], w: &[f32], cols: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut sums, mut magnitudes) = (Vec::new(), Vec::new());
    for x in x.chunks(cols) {
        for w in w.chunks(cols) {
            let products = x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w));
            sums.push(products.clone().sum());
            magnitudes.push(products.map(f64::abs).sum::<f64>() + 1e-30);
        }
    }
    (sums, magnitudes)
}

impl Machine {
    /// Another output of the same shape and type.
    pub fn empty_like(&mut self, operand: &Operand) -> Operand {
        let rows = self.dims.rows(operand.shape.rows) as usize;
        self.empty(rows, operand.shape.cols as usize, operand.ty)
    }
}
