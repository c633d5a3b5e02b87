//! Watching a run. Takes nothing; gives the [`Observer`] trait, through which tracing and poisoning see every step without
//! the scheduler knowing them.

use crate::bind::BoundPlan;
use crate::error::EngineError;
use minfer_backend::Backend;
use minfer_graph::BatchDims;

/// A run, as the scheduler takes it and as its observer sees it between steps, when everything has been synchronised. An
/// observer reads and fills through the backends; it must not exchange any part for another.
pub struct RunView<'a> {
    /// The plan that runs.
    pub bound: &'a BoundPlan,
    /// The batch's sizes.
    pub dims: BatchDims,
    /// The backends, for reading and filling.
    pub backends: &'a mut [Box<dyn Backend>],
}

/// Sees a run step by step.
pub trait Observer {
    /// Before the inputs are written.
    fn before_run(&mut self, _view: &mut RunView<'_>) -> Result<(), EngineError> {
        Ok(())
    }

    /// Before step `step` of the plan; the inputs are there.
    fn before_step(&mut self, _step: usize, _view: &mut RunView<'_>) -> Result<(), EngineError> {
        Ok(())
    }

    /// After step `step` of the plan.
    fn after_step(&mut self, step: usize, view: &mut RunView<'_>) -> Result<(), EngineError>;
}
