//! The fast CPU backend: worker pool, quantised dots and matrix products, attention; SIMD chosen at run time.
//!
//! Takes: steps on regions of its own. Gives: [`CpuBackend`] to run them, [`CpuCapabilities`] to plan them (which
//! allocates nothing). Must not know: plans, models, files, the environment.
//!
//! A run goes like this. Each [`Step`](minfer_backend::Step) is checked once, on the caller's thread, and becomes a
//! `Work`: raw pointers that are known to lie in their regions (`work`). Then all workers walk the list of works
//! together, take items of each (rows, tiles, heads) from a shared counter, and meet at a barrier before the next.
//! Which worker computes an item never changes how it is computed, so results do not depend on their number.
//!
//! Kernels are written once, over the vectors of `simd`; weight formats are one function each (`blocks`).

// Kernels count with indices: loops over small arrays unroll into registers that way, and what a closure of an iterator
// calls would not inherit the vector instructions of its kernel.
#![allow(clippy::needless_range_loop)]

mod backend;
mod blocks;
mod capabilities;
mod cgroup;
mod heap;
mod machine;
mod measure;
mod ops;
mod options;
mod pool;
mod product;
mod quantize;
mod region;
mod scratch;
mod simd;
mod vectors;
mod walk;
mod work;

pub use backend::{CpuBackend, CpuError};
pub use capabilities::CpuCapabilities;
pub use cgroup::control_groups;
pub use heap::{Heap, end_at_once, one_heap};
pub use machine::{Cache, Machine, Processors};
pub use measure::Probe;
pub use options::{CpuOptions, default_threads};
pub use simd::{SimdLevel, UnknownSimdLevel};
