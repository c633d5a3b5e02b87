//! How long each step took, beside what it needed. Takes a run, step by step; gives one [`StepTime`] per step to a sink;
//! changes no result. Must not know what is made of the times.

use crate::demand::{Demand, Reach};
use crate::error::EngineError;
use crate::observe::{Observer, RunView};
use minfer_backend::Kernel;
use std::time::{Duration, Instant};

/// One step's time.
#[derive(Clone, PartialEq, Debug)]
pub struct StepTime<'a> {
    /// What was computed, on which types.
    pub kernel: &'a Kernel,
    /// What that needed.
    pub demand: Demand,
    /// How long it took.
    pub time: Duration,
}

/// Gives every step's time to a sink.
pub struct Stopwatch<F> {
    sink: F,
    reach: Reach,
    start: Instant,
}

impl<F: FnMut(StepTime<'_>)> Stopwatch<F> {
    /// A stopwatch with its sink.
    pub fn new(sink: F) -> Self {
        Self { sink, reach: Reach::default(), start: Instant::now() }
    }
}

impl<F: FnMut(StepTime<'_>)> Observer for Stopwatch<F> {
    fn before_step(&mut self, step: usize, view: &mut RunView<'_>) -> Result<(), EngineError> {
        if step == 0 {
            self.reach = Reach::of_run(view)?;
        }
        self.start = Instant::now();
        Ok(())
    }

    fn after_step(&mut self, step: usize, view: &mut RunView<'_>) -> Result<(), EngineError> {
        let time = self.start.elapsed();
        let demand = Demand::of_step(&view.bound.plan, step, &view.dims, &self.reach);
        (self.sink)(StepTime { kernel: &view.bound.steps[step].kernel, demand, time });
        Ok(())
    }
}
