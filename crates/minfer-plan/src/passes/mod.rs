//! One file per pass; their order is in `pipeline.rs`.

mod assign;
mod fuse;
mod lifetimes;
mod lower;
mod order;
mod place;
mod transfer;
mod verify;

pub(crate) use assign::assign;
pub(crate) use fuse::fuse;
pub(crate) use lifetimes::{Lifetimes, lifetimes};
pub(crate) use lower::lower;
pub(crate) use order::{Ordered, order};
pub(crate) use place::place;
pub(crate) use transfer::transfer;
pub(crate) use verify::verify_promises;
pub use verify::{PlanFault, verify_plan};
