//! What a planner may know of a backend, before anything is allocated. Takes kernels; gives yes, no and sizes.

use crate::kernel::Kernel;
use minfer_graph::{DType, GraphParams, Shape, ValueType};

/// What a backend can do and needs. Answers never change during a backend's life, and need no device memory.
pub trait Capabilities: Send + Sync {
    /// Short name, such as `cpu`.
    fn name(&self) -> &str;

    /// Where several backends support a kernel, the highest priority wins.
    fn priority(&self) -> i32;

    /// Whether the backend runs this kernel.
    fn supports(&self, kernel: &Kernel) -> bool;

    /// The type in which products with weights of this format want their first input: `F32` or a quantised one.
    ///
    /// The error of a result is `lasting` if no later product dampens it: a sum onto the residual stream, logits. There a
    /// backend may want finer activations than elsewhere.
    fn activation_type(&self, weight: DType, lasting: bool) -> ValueType;

    /// Bytes of scratch for a step of this kernel on the largest batch. `output` is the shape of the value.
    fn workspace_bytes(&self, kernel: &Kernel, output: Shape, params: &GraphParams) -> u64;

    /// Alignment of every value in an arena, in bytes.
    fn alignment(&self) -> u64;

    /// Bytes that the backend owns beside its regions (threads' scratch and stacks): a line in the ledger.
    fn fixed_bytes(&self) -> u64;

    /// Most bytes in one region, if the device limits it.
    fn max_region_bytes(&self) -> Option<u64> {
        None
    }
}
