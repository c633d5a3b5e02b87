//! From *what* to *how, where, at which offset, in which order*.
//!
//! Takes: a [`Graph`](minfer_graph::Graph) and the backends' capabilities. Gives: a [`Plan`]. Must not know: models,
//! files, pointers, tokens. The passes run in one fixed order, in [`plan()`]: assign, fuse, lower, transfer, order,
//! lifetimes, place, verify. Each is a function from one printable value to the next.

mod diff;
mod draft;
mod error;
mod explain;
mod fingerprint;
mod ledger;
mod passes;
pub mod picture;
mod pipeline;
mod plan;
mod print;
mod record;

pub use diff::{ArenaDiff, Cause, Lifetime, Pair, PlanDiff, diff};
pub use error::PlanError;
pub use explain::{Holder, Origin, Peak, order_words, summary_text};
pub use fingerprint::{Fingerprint, fingerprint};
pub use ledger::{Ledger, LedgerLine, Owner};
pub use minfer_memplan::{Certificate, LowerBound, Strategy, Verdict};
pub use passes::{PlanFault, verify_plan};
pub use pipeline::{PassRecord, PlanOptions, plan, plan_recorded};
pub use plan::{Alias, AliasReason, ArenaFigures, ArenaPlan, Place, Plan, PlannedStep, Value};
pub use print::{annotations, plan_text};
pub use record::{ArenaRecord, InPlace, PlanRecord, StepRecord, ValueKind, ValueRecord};
