//! Ending a run early. Takes nothing; gives [`Interrupt`], a flag that any thread may raise and that the scheduler looks at
//! between steps. Must not know who raises it, or why.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the run of an engine before its next steps, or the next run if there is none. Clones are one flag.
#[derive(Clone, Default, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks for it. One run ends, whoever asked how often before.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Forgets that it was asked for: a flag that was raised when no run was left to end would end the next one. To be
    /// called between runs, before whoever may raise the flag for the next one is told of it: a wish for a run that is
    /// about to start is forgotten too.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether it was asked for; the wish is forgotten.
    pub(crate) fn take(&self) -> bool {
        // Mostly nobody asked, and reading leaves the flag in every core's cache.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}
