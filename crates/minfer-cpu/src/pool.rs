//! Threads that do one job together. Takes a function of the worker's number; gives a return once every worker is done,
//! and a [`Barrier`] to meet at on the way; must not know steps.
//!
//! Workers spin briefly and then sleep: an idle pool uses no processor time. They end when the pool is dropped.

use std::any::Any;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Rounds of spinning before sleep. A pause takes 40 to 140 cycles, so this is 0.1 to 0.5 milliseconds: longer than what
/// one thread does between two tokens, shorter than anybody's idea of idle.
const SPINS: u32 = 10_000;
/// The same where more threads run than processors, so that spinning would keep others from working.
const SPINS_CROWDED: u32 = 20;

/// A number that threads can wait on to change.
struct Signal {
    value: AtomicU32,
    sleepers: AtomicU32,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Signal {
    fn new() -> Self {
        Self { value: AtomicU32::new(0), sleepers: AtomicU32::new(0), lock: Mutex::new(()), wake: Condvar::new() }
    }

    /// Changes the number and wakes everybody.
    fn bump(&self) {
        self.value.fetch_add(1, SeqCst);
        // Either this sees a sleeper, or the sleeper (who counts itself first) sees the new number.
        if self.sleepers.load(SeqCst) > 0 {
            let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.wake.notify_all();
        }
    }

    /// Returns once the number is not `old`.
    fn wait_past(&self, old: u32, spins: u32) {
        for _ in 0..spins {
            if self.value.load(SeqCst) != old {
                return;
            }
            std::hint::spin_loop();
        }
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, SeqCst);
        while self.value.load(SeqCst) == old {
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }
}

/// Where all workers of a job meet: what one wrote before is seen by all after.
pub(crate) struct Barrier {
    threads: u32,
    arrived: AtomicU32,
    round: Signal,
    spins: u32,
}

impl Barrier {
    /// Returns once all threads have called it. `last` runs in between, on the last one to arrive.
    pub(crate) fn wait(&self, last: impl FnOnce()) {
        if self.threads == 1 {
            return last();
        }
        let round = self.round.value.load(SeqCst);
        if self.arrived.fetch_add(1, SeqCst) + 1 == self.threads {
            self.arrived.store(0, SeqCst);
            last();
            self.round.bump();
        } else {
            self.round.wait_past(round, self.spins);
        }
    }
}

/// A job: the worker's number, and where the workers meet.
type Job<'a> = dyn Fn(usize, &Barrier) + Sync + 'a;

struct Shared {
    start: Signal,
    barrier: Barrier,
    /// Written by the caller while all workers wait for `start`, read by them after it; cleared after they are done.
    job: UnsafeCell<Option<*const Job<'static>>>,
    stop: AtomicBool,
}

// SAFETY: `job` is the only member that is not `Sync`; the caller writes it only while every worker is before `start` (all
// have passed the final barrier of the job before), and workers read it only after `start`, which orders the two.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `job` is to a `Sync` function and is used only while `Pool::run` keeps that alive.
unsafe impl Send for Shared {}

/// `threads - 1` threads, and the caller as the first worker.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts the threads. An error if the system refuses one; those already started end.
    pub(crate) fn new(threads: usize, stack_bytes: usize) -> std::io::Result<Pool> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let spins = if threads > processors { SPINS_CROWDED } else { SPINS };
        let barrier = Barrier { threads: threads as u32, arrived: AtomicU32::new(0), round: Signal::new(), spins };
        let shared = Arc::new(Shared {
            start: Signal::new(),
            barrier,
            job: UnsafeCell::new(None),
            stop: AtomicBool::new(false),
        });
        let mut pool = Pool { shared, workers: Vec::with_capacity(threads) };
        for index in 1..threads {
            let shared = pool.shared.clone();
            let builder = std::thread::Builder::new().name(format!("minfer-cpu-{index}")).stack_size(stack_bytes);
            pool.workers.push(builder.spawn(move || work(&shared, index))?);
        }
        Ok(pool)
    }

    /// Runs `job` on every worker. Every worker must meet at the barrier equally often. `&mut`: one job at a time.
    ///
    /// A panic outside of [`catch`] leaves the others waiting, so jobs wrap all their work in it.
    pub(crate) fn run(&mut self, job: &Job<'_>) {
        let shared = &*self.shared;
        if self.workers.is_empty() {
            return job(0, &shared.barrier);
        }
        // SAFETY: the transmute only forgets the lifetime; every worker is done with the job at the final barrier, which
        // this function waits for. No worker reads the cell now: see `Shared`.
        unsafe {
            let job = std::mem::transmute::<*const Job<'_>, *const Job<'static>>(job);
            *shared.job.get() = Some(job);
        }
        shared.start.bump();
        let mine = catch(|| job(0, &shared.barrier));
        // Whatever happened, the job must outlive its use by the others.
        shared.barrier.wait(|| ());
        if let Err(panic) = mine {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        self.shared.start.bump();
        for worker in self.workers.drain(..) {
            // A worker that died is no reason not to wait for the others.
            let _ = worker.join();
        }
    }
}

/// A worker's life.
fn work(shared: &Shared, index: usize) {
    let mut seen = 0;
    loop {
        shared.start.wait_past(seen, shared.barrier.spins);
        seen = seen.wrapping_add(1);
        if shared.stop.load(SeqCst) {
            return;
        }
        // SAFETY: `start` was bumped after the caller wrote the job, and the caller writes it again only after the final
        // barrier below; until then it keeps the job alive.
        if let Some(job) = unsafe { *shared.job.get() } {
            // SAFETY: as above.
            let job = unsafe { &*job };
            // A panic was reported on stderr; the caller sees to the rest.
            let _ = catch(|| job(index, &shared.barrier));
        }
        shared.barrier.wait(|| ());
    }
}

/// Runs `f`; gives what it panicked with as an error.
pub(crate) fn catch<T>(f: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    // A panicking kernel leaves garbage in values, which the caller reports and nobody reads; no invariant breaks.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f))
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
