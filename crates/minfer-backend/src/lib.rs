//! The contract between plans and the machines that run them.
//!
//! Takes: [`Step`]s, each a [`Kernel`] with the bytes it works on. Gives: the [`Backend`] trait, [`Capabilities`] for
//! the planner, and the backends every test can use: [`ReferenceBackend`] (scalar f32, the oracle), [`NullBackend`]
//! (computes nothing) and [`DeferringBackend`] (only queues until it is synchronised). Must not know: plans, models, files.

mod backend;
mod buffer;
mod capabilities;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod deferring;
mod host;
mod kernel;
mod null;
mod reference;
mod step;

pub use backend::{Backend, BackendError, HostBytes};
pub use buffer::{BackendId, BufRef, RegionId};
pub use capabilities::Capabilities;
pub use deferring::DeferringBackend;
pub use host::HostRegions;
pub use kernel::Kernel;
pub use null::{NullBackend, NullCapabilities};
pub use reference::{ReferenceBackend, q8};
pub use step::{KvPair, Operand, Step, WeightOperand};
