//! How an operation is computed: on which types. Takes graph types; gives the question a planner asks a backend.

use minfer_graph::{DType, Op, ValueType};
use std::fmt;

/// An operation on concrete types.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// What is computed.
    pub op: Op,
    /// Types of the inputs.
    pub inputs: Vec<ValueType>,
    /// Block formats of the weights.
    pub weights: Vec<DType>,
    /// Type of the value. A quantised [`ValueType`] on an operation that gives floats means: quantise what you write.
    pub output: ValueType,
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.op)?;
        for (index, input) in self.inputs.iter().enumerate() {
            write!(f, "{}{input}", if index > 0 { ", " } else { "" })?;
        }
        for (index, weight) in self.weights.iter().enumerate() {
            write!(f, "{}{weight}", if index > 0 { ", " } else { "; " })?;
        }
        write!(f, ") -> {}", self.output)
    }
}
