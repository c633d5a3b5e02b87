//! The naive strategy: takes a valid problem, stacks the buffers by index, each on bytes of its own.

use crate::Problem;
use crate::fixed::Stack;

/// Offsets by index. Fixed buffers stay where they are and share bytes with no free one.
pub(crate) fn offsets(problem: &Problem) -> Vec<u64> {
    let mut stack = Stack::new(problem);
    let offset = |b: &crate::Buffer| match b.offset {
        Some(offset) => offset,
        None if b.size == 0 => 0,
        None => stack.take(b.size, b.alignment).expect("a valid problem stacks within 64 bits"),
    };
    problem.buffers.iter().map(offset).collect()
}
