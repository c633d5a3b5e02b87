//! The walk of all workers, in step, over a list of checked works. Takes works and workers; gives the first failure; must
//! not know regions or what a work computes.
//!
//! A phase's items are divided into as many stretches as there are workers. Each worker takes those of its own stretch in
//! order, so that the weights it reads follow each other in memory and are asked for ahead; then it helps the others. Which
//! worker computes an item never changes the result.

use crate::pool::{Barrier, Pool, catch};
use crate::scratch::Scratch;
use crate::simd::SimdLevel;
use crate::work::{Fault, Work};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// How many items of a worker's stretch are taken. On a cache line of its own.
#[repr(align(64))]
pub(crate) struct Taken(AtomicUsize);

impl Taken {
    /// One for each worker.
    pub(crate) fn of(threads: usize) -> Box<[Taken]> {
        (0..threads).map(|_| Taken(AtomicUsize::new(0))).collect()
    }
}

/// Why a work did not end well.
pub(crate) enum Failure {
    Fault(Fault),
    Panic,
}

/// Runs the works one after the other. Fails with the index of the first work that does; those after it are not run.
pub(crate) fn run(
    pool: &mut Pool,
    level: SimdLevel,
    works: &[Work],
    scratch: &[Mutex<Scratch>],
    taken: &mut [Box<[Taken]>; 2],
) -> Result<(), (usize, Failure)> {
    for taken in taken.iter_mut().flatten() {
        *taken.0.get_mut() = 0;
    }
    let works = Works(works);
    let run = Run { level, works, scratch, taken, stop: AtomicBool::new(false), failure: Mutex::new(None) };
    pool.run(&|worker, barrier| run.walk(worker, barrier));
    run.failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Checked works that workers share.
struct Works<'a>(&'a [Work]);

// SAFETY: a work is never changed while workers see it. Its pointers are to regions, which live as long as the backend that
// is borrowed for the run; what is written through them is divided into items, each taken by one worker.
unsafe impl Sync for Works<'_> {}

/// One list of works on its way through the workers.
struct Run<'a> {
    level: SimdLevel,
    works: Works<'a>,
    scratch: &'a [Mutex<Scratch>],
    /// Used in turn by phases whose items are shared out.
    taken: &'a [Box<[Taken]>; 2],
    stop: AtomicBool,
    /// The first failure: the index of its work.
    failure: Mutex<Option<(usize, Failure)>>,
}

impl Run<'_> {
    /// What each worker does. All pass the same barriers, whatever happens between them.
    fn walk(&self, worker: usize, barrier: &Barrier) {
        let mut scratch = self.scratch[worker].lock().unwrap_or_else(PoisonError::into_inner);
        let mut turn = 0;
        // A phase of one item is the first worker's, so between two of them nobody has to wait for anybody.
        let mut alone = true;
        for (index, work) in self.works.0.iter().enumerate() {
            for phase in 0..work.phases() {
                let n_items = work.items(phase);
                let was_alone = std::mem::replace(&mut alone, n_items <= 1);
                if !(was_alone && alone) {
                    // Everybody is done with the counters of the phase before; the phase after this one finds them at 0.
                    barrier.wait(|| self.taken[(turn + 1) % 2].iter().for_each(|taken| taken.0.store(0, Relaxed)));
                }
                let done = catch(|| {
                    work.begin(&mut scratch);
                    if !alone {
                        self.share(work, phase, n_items, worker, &self.taken[turn % 2], &mut scratch)
                    } else if worker == 0 && n_items == 1 {
                        self.item(work, phase, 0, &mut scratch)
                    } else {
                        Ok(())
                    }
                });
                match done {
                    Ok(Ok(())) => {}
                    Ok(Err(fault)) => self.fail(index, Failure::Fault(fault)),
                    Err(_) => self.fail(index, Failure::Panic),
                }
                turn += usize::from(!alone);
            }
        }
    }

    /// Takes items until there are no more: those of the worker's own stretch, then what is left of the others'.
    fn share(
        &self,
        work: &Work,
        phase: usize,
        n_items: usize,
        worker: usize,
        taken: &[Taken],
        scratch: &mut Scratch,
    ) -> Result<(), Fault> {
        let n_workers = taken.len();
        for owner in (0..n_workers).map(|other| (worker + other) % n_workers) {
            let (first, end) = (owner * n_items / n_workers, (owner + 1) * n_items / n_workers);
            loop {
                let item = first + taken[owner].0.fetch_add(1, Relaxed);
                if item >= end {
                    break;
                }
                self.item(work, phase, item, scratch)?;
            }
        }
        Ok(())
    }

    /// Computes an item that nobody else takes, unless something failed before.
    fn item(&self, work: &Work, phase: usize, item: usize, scratch: &mut Scratch) -> Result<(), Fault> {
        if self.stop.load(Relaxed) {
            return Ok(());
        }
        // SAFETY: the work was checked against the regions that exist, which the run borrows; of two phases that are not
        // both the first worker's, one comes behind a barrier after the other; each item is taken by one worker.
        unsafe { work.run(self.level, phase, item, scratch) }
    }

    fn fail(&self, index: usize, failure: Failure) {
        self.stop.store(true, Relaxed);
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(earlier, _)| index < *earlier) {
            *first = Some((index, failure));
        }
    }
}
