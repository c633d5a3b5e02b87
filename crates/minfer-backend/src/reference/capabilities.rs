//! What the reference backend can do: everything. Takes kernels; gives yes unless the types make no sense.

use crate::capabilities::Capabilities;
use crate::kernel::Kernel;
use minfer_graph::{DType, GraphParams, Op, Shape, ValueType};

/// The reference backend's answers.
#[derive(Clone, Debug)]
pub struct ReferenceCapabilities {
    pub name: String,
    pub priority: i32,
}

impl Capabilities for ReferenceCapabilities {
    fn name(&self) -> &str {
        &self.name
    }

    fn priority(&self) -> i32 {
        self.priority
    }

    fn supports(&self, kernel: &Kernel) -> bool {
        let output_fits = match kernel.op {
            Op::Input | Op::KvView { .. } => false,
            Op::KvStore { .. } => matches!(kernel.output, ValueType::F32 | ValueType::F16),
            Op::Quantize => kernel.output.is_quantised(),
            Op::Copy => kernel.inputs.first() == Some(&kernel.output),
            _ => kernel.output == ValueType::F32 || kernel.output.is_quantised(),
        };
        let quantised_elsewhere =
            kernel.inputs.iter().skip(usize::from(kernel.op.is_product() || kernel.op == Op::Copy));
        let inputs_fit = quantised_elsewhere.into_iter().all(|ty| !ty.is_quantised());
        output_fits && inputs_fit && !kernel.weights.contains(&DType::I32)
    }

    fn activation_type(&self, _weight: DType, _lasting: bool) -> ValueType {
        ValueType::F32
    }

    fn workspace_bytes(&self, _kernel: &Kernel, _output: Shape, _params: &GraphParams) -> u64 {
        0
    }

    fn alignment(&self) -> u64 {
        64
    }

    /// None is planned: the temporaries of a step (its inputs and value as floats, a decoded row per thread) come from
    /// the heap while it runs. This backend judges others; it does not serve.
    fn fixed_bytes(&self) -> u64 {
        0
    }
}
