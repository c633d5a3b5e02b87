//! One file per pass; their order is in `pipeline.rs`.

mod assign;
mod fault;
mod fuse;
mod lifetimes;
mod lower;
mod order;
mod place;
mod transfer;
mod verify;

pub(crate) use assign::assign;
pub use fault::PlanFault;
pub(crate) use fuse::fuse;
pub(crate) use lifetimes::{Lifetimes, lifetimes};
pub(crate) use lower::lower;
pub(crate) use order::{Ordered, order};
pub(crate) use place::place;
pub(crate) use transfer::transfer;
pub use verify::verify_plan;
pub(crate) use verify::verify_promises;
