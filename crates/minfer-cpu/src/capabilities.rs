//! What the backend can do. Takes kernels; gives yes, no and sizes; allocates nothing, so a planner may ask before any
//! memory is taken.

use crate::ops::attention::{MAX_HEAD_DIM, workspace_bytes};
use crate::options::CpuOptions;
use crate::region::ALIGN;
use crate::scratch::SCRATCH_BYTES;
use crate::work::{BATCH_STEPS, Work};
use minfer_backend::{Capabilities, Kernel};
use minfer_graph::{DType, GraphParams, Op, Shape, ValueType};

/// Stack of a worker; kernels keep a few KiB there.
pub(crate) const STACK_BYTES: usize = 256 << 10;

/// The answers for given options.
#[derive(Clone, Debug)]
pub struct CpuCapabilities {
    threads: usize,
}

impl CpuCapabilities {
    /// The answers that a backend with these options gives.
    pub fn new(options: CpuOptions) -> Self {
        Self { threads: options.threads.get() }
    }
}

impl Capabilities for CpuCapabilities {
    fn name(&self) -> &str {
        "cpu"
    }

    fn priority(&self) -> i32 {
        10
    }

    fn supports(&self, kernel: &Kernel) -> bool {
        supports(kernel)
    }

    fn activation_type(&self, weight: DType, lasting: bool) -> ValueType {
        activation_type(weight, lasting)
    }

    fn workspace_bytes(&self, kernel: &Kernel, _output: Shape, params: &GraphParams) -> u64 {
        match kernel.op {
            Op::Attention(attention) => workspace_bytes(&attention, params),
            _ => 0,
        }
    }

    fn alignment(&self) -> u64 {
        ALIGN as u64
    }

    fn fixed_bytes(&self) -> u64 {
        // The caller is a worker too: it has a scratch, and a stack of its own that is not ours.
        let workers = self.threads * SCRATCH_BYTES + (self.threads - 1) * STACK_BYTES;
        (workers + BATCH_STEPS * size_of::<Work>()) as u64
    }
}

fn activation_type(weight: DType, lasting: bool) -> ValueType {
    match (weight.is_quantized(), lasting) {
        (false, _) => ValueType::F32,
        (true, false) => ValueType::Q8,
        (true, true) => ValueType::Q8x2,
    }
}

/// Whether the kernel is implemented for these types and attributes.
pub(crate) fn supports(kernel: &Kernel) -> bool {
    use ValueType::{F16, F32, I32};
    let (inputs, weights, output) = (kernel.inputs.as_slice(), kernel.weights.as_slice(), kernel.output);
    let floats = weights.iter().skip(kernel.op.n_matrices()).all(|&weight| weight == DType::F32);
    // Types of a product's x and matrices.
    let matrices = &weights[..kernel.op.n_matrices().min(weights.len())];
    let product = |x: ValueType| matrices.iter().all(|&m| m != DType::I32 && m.is_quantized() == x.is_quantised());
    // Types that are written: of rows, or of heads, that are whole blocks if quantised.
    let writes = |cols: u32| output == F32 || output.is_quantised() && cols.is_multiple_of(32);
    let even_dims = |n_dims: u32, head_dim: u32| n_dims > 0 && n_dims.is_multiple_of(2) && n_dims <= head_dim;
    match kernel.op {
        Op::Input | Op::KvView { .. } | Op::Copy => false,
        Op::Embed { .. } => inputs == [I32] && weights.len() == 1 && weights[0] != DType::I32 && output == F32,
        Op::RopeTable { n_dims, .. } => {
            inputs == [I32] && weights.len() <= 1 && floats && output == F32 && even_dims(n_dims, n_dims)
        }
        Op::RmsNorm { group, .. } => inputs == [F32] && weights.len() == 1 && floats && writes(group) && group > 0,
        Op::Linear => {
            inputs.len() == 1 && matches!(weights.len(), 1 | 2) && floats && product(inputs[0]) && output == F32
        }
        Op::LinearAdd => {
            inputs.len() == 2 && inputs[1] == F32 && weights.len() == 1 && product(inputs[0]) && output == F32
        }
        Op::GatedLinear { .. } => inputs.len() == 1 && weights.len() == 2 && product(inputs[0]) && writes(32),
        Op::QkvStore(qkv) => {
            let n_weights = 3 + if qkv.bias { 3 } else { 0 } + if qkv.head_norm_eps.is_some() { 2 } else { 0 };
            let heads = qkv.head_dim <= MAX_HEAD_DIM as u32 && even_dims(qkv.rope_dims, qkv.head_dim);
            let types = inputs.len() == 3 && inputs[1..] == [F32, I32] && product(inputs[0]) && output == F32;
            types && weights.len() == n_weights && floats && heads
        }
        Op::Rope { head_dim, n_dims, .. } => inputs == [F32, F32] && output == F32 && even_dims(n_dims, head_dim),
        Op::KvStore { .. } => inputs == [F32, F32, I32] && matches!(output, F32 | F16),
        Op::Attention(a) => {
            let kv = inputs.len() == 6 && inputs[1] == inputs[2] && matches!(inputs[1], F32 | F16);
            let types = kv && inputs[0] == F32 && inputs[3..] == [I32, I32, I32];
            let heads = a.n_kv_head > 0 && a.n_head.is_multiple_of(a.n_kv_head) && a.n_head > 0;
            types && heads && writes(a.head_dim) && a.head_dim > 0 && a.head_dim <= MAX_HEAD_DIM as u32
        }
        Op::Activate(_) => inputs == [F32] && output == F32,
        Op::Add | Op::Mul => inputs == [F32, F32] && output == F32,
        Op::SelectRows => inputs == [F32, I32] && output == F32,
        Op::Quantize => inputs == [F32] && output.is_quantised(),
    }
}
