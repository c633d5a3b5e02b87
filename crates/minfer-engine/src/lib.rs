//! Load, allocate, schedule, step, sample.
//!
//! Takes: a model file and backends, handed in. Gives: [`Engine`], which turns batches of token ids into logits, and
//! [`Session`], which turns a prompt into an answer. Must not know: SIMD, flags, environment variables, HTTP.
//!
//! The pipeline reads top to bottom in `load.rs` (file → model), `blueprint.rs` (model → graph → plan → ledger) and
//! `step.rs` (plan, token ids → logits).

mod alloc;
mod bind;
mod blueprint;
mod budget;
mod cache;
mod change;
mod config;
mod demand;
mod engine;
mod error;
mod fit;
mod interrupt;
mod kv;
mod ledger;
mod load;
mod observe;
mod poison;
mod sampling;
mod scheduler;
mod session;
mod step;
mod stopwatch;
mod trace;

pub use alloc::{GraphAllocator, KvRegions};
pub use bind::{BoundPlan, InputSlot};
pub use blueprint::{Blueprint, CapabilityList, MemoryFigures};
pub use budget::{Budget, Combination, Levers, Remedy, Shortfall, admit};
pub use cache::GraphCache;
pub use change::{Change, Replanner};
pub use config::{
    ContextChoice, ContextReason, DEFAULT_N_CTX, EngineConfig, MAX_N_CTX, MAX_N_SEQUENCES, MAX_N_UBATCH, choose_n_ctx,
};
pub use demand::{Demand, Reach};
pub use engine::Engine;
pub use error::EngineError;
pub use fit::{Fit, Fitted, fit};
pub use interrupt::Interrupt;
pub use kv::{KvCache, KvError, KvKind, SequenceId};
pub use load::Model;
pub use observe::{Observer, RunView};
pub use sampling::{Sampler, SamplerError, SamplingParams};
pub use scheduler::Scheduler;
pub use session::{EndReason, Progress, Session, Timing};
pub use step::{BatchToken, Logits};
pub use stopwatch::{StepTime, Stopwatch};
pub use trace::{StepTrace, Tracer};
