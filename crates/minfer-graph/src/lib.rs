//! The compute graph: a closed set of operations, shape rules, verification, printing.
