//! Runs a bound plan. Takes splits in order; gives every step to its backend, synchronises where values cross, and copies
//! them; stops between steps when asked to; allocates nothing and looks nothing up.

use crate::alloc::BackendList;
use crate::bind::{Split, mismatch};
use crate::error::EngineError;
use crate::interrupt::Interrupt;
use crate::observe::{Observer, RunView};
use minfer_backend::{Backend, BackendError, BufRef};
use minfer_graph::BatchDims;
use minfer_plan::Fingerprint;

/// Rows of work between two looks at the interrupt. A prompt of so many tokens is stopped after any step; of a single
/// token, whose steps are short, many are one walk of the workers.
const ROWS_AT_ONCE: usize = 128;

/// Runs bound plans.
pub struct Scheduler;

impl Scheduler {
    /// Runs all steps of a graph on one batch, or those before an interrupt. Refused when the plan is another graph's.
    pub fn run(
        graph: Fingerprint,
        view: &mut RunView<'_>,
        observers: &mut [&mut dyn Observer],
        interrupt: &Interrupt,
    ) -> Result<(), EngineError> {
        if view.bound.source() != graph {
            return Err(mismatch(graph, view.bound.source()));
        }
        let walked = walk(view, observers, interrupt);
        // Also after a failure: nothing that is still queued may write later, when its bytes are somebody else's.
        let settled = view.backends.iter_mut().try_for_each(|backend| backend.synchronize());
        walked.and(settled.map_err(EngineError::from))
    }
}

fn walk(view: &mut RunView<'_>, observers: &mut [&mut dyn Observer], interrupt: &Interrupt) -> Result<(), EngineError> {
    let (bound, dims) = (view.bound, view.dims);
    // Whoever observes sees every step.
    let at_once = if observers.is_empty() { (ROWS_AT_ONCE / dims.n_tokens.max(1) as usize).max(1) } else { 1 };
    for split in &bound.splits {
        match split {
            Split::Copy { step } => {
                observers.iter_mut().try_for_each(|observer| observer.before_step(*step, view))?;
                copy(&bound.steps[*step], &dims, view.backends)?;
                observers.iter_mut().try_for_each(|observer| observer.after_step(*step, view))?;
            }
            Split::Run { backend, steps } => {
                for first in steps.clone().step_by(at_once) {
                    if interrupt.take() {
                        return Err(EngineError::Interrupted);
                    }
                    observers.iter_mut().try_for_each(|observer| observer.before_step(first, view))?;
                    let end = steps.end.min(first + at_once);
                    view.backends[backend.index()].run(&bound.steps[first..end], &dims)?;
                    if !observers.is_empty() {
                        view.backends[backend.index()].synchronize()?;
                    }
                    observers.iter_mut().try_for_each(|observer| observer.after_step(first, view))?;
                }
            }
        }
    }
    Ok(())
}

/// Copies a value to another backend. The source must have been computed, and the target's bytes may still be read by
/// steps queued there: both are waited for.
fn copy(step: &minfer_backend::Step, dims: &BatchDims, backends: &mut BackendList) -> Result<(), EngineError> {
    let (from, to) = (step.inputs[0].buf, step.output.buf);
    backends[from.backend.index()].synchronize()?;
    backends[to.backend.index()].synchronize()?;
    let len = dims.bytes(step.output.shape, step.output.ty);
    let (source, target) = two(backends, from, to, step)?;
    let mut written = Ok(());
    source.read(BufRef { len, ..from }, &mut |bytes| written = target.write(BufRef { len, ..to }, bytes))?;
    Ok(written?)
}

/// Two different backends, both at hand.
fn two<'a>(
    backends: &'a mut BackendList,
    from: BufRef,
    to: BufRef,
    step: &minfer_backend::Step,
) -> Result<(&'a dyn Backend, &'a mut Box<dyn Backend>), EngineError> {
    let same = || BackendError::BadOperand {
        backend: to.backend.0.to_string(),
        step: step.name.clone(),
        what: "source of a copy",
        expected: "another backend".into(),
        got: "the same".into(),
    };
    let [source, target] = backends.get_disjoint_mut([from.backend.index(), to.backend.index()]).map_err(|_| same())?;
    Ok((&**source, target))
}
