//! The crate's public face: it takes a [`Problem`] and gives a [`Placed`] answer. Everything public is re-exported
//! here, except problem files, which live in [`csv`], and pictures, in [`svg`].
#![doc = include_str!("../README.md")]

mod bound;
mod budget;
mod check;
pub mod csv;
mod exact;
mod fixed;
mod greedy;
mod lives;
mod naive;
mod place;
mod planned;
mod pool;
mod problem;
mod regions;
mod rising;
mod sections;
pub mod svg;

pub use bound::{LowerBound, lower_bound};
pub use check::{Violation, check, check_certificate};
pub use exact::search_bytes;
pub use place::{
    Blame, Certificate, Options, PlaceError, Placed, Placement, Strategy, UnknownStrategy, Verdict, place, place_until,
    place_with,
};
pub use pool::class_bytes;
pub use problem::{Buffer, Problem, ProblemError};
pub use regions::{Region, Regions, RegionsError, check_regions, place_in_regions};
