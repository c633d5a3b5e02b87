//! The `minfer` command: reads flags and environment, picks backends, prints.

fn main() {}
