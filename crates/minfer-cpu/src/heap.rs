//! The heap. Takes what a program says where there is no more of it; gives the program's allocator, which ends in that
//! sentence instead of an abort, and keeps all threads to one arena; must not know who allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The system's heap, for a program's `#[global_allocator]`. Where the system gives no memory, a program is told of it, once;
/// the standard library would abort. Whoever can do without asks [`System`] itself, as regions do.
pub struct Heap {
    none_left: fn(usize) -> !,
    is_told: AtomicBool,
}

impl Heap {
    /// A heap that calls `none_left` with the bytes that it cannot give. The function must not allocate, nor wait for a lock
    /// that another thread may hold; [`end_at_once`] ends it.
    pub const fn new(none_left: fn(usize) -> !) -> Self {
        Self { none_left, is_told: AtomicBool::new(false) }
    }

    fn given(&self, start: *mut u8, bytes: usize) -> *mut u8 {
        if !start.is_null() {
            return start;
        }
        if self.is_told.swap(true, Relaxed) {
            // Another thread is about to end the program. (Or the function allocates: then there is no sentence.)
            std::thread::sleep(Duration::from_secs(1));
            end_at_once(&[], FAILURE);
        }
        (self.none_left)(bytes)
    }
}

// SAFETY: all is done by the system's allocator, with the very arguments; where it gives nothing, nothing is returned.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the same contract.
        self.given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the same contract.
        self.given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps to the same contract, and `start` is the system's.
        self.given(unsafe { System.realloc(start, layout, new_bytes) }, new_bytes)
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the same contract, and `start` is the system's.
        unsafe { System.dealloc(start, layout) }
    }
}

/// The exit code where nothing can be said.
const FAILURE: i32 = 2;

/// Writes a sentence to stderr and ends the process: past every lock, buffer and handler, and without the heap.
pub fn end_at_once(sentence: &[u8], code: i32) -> ! {
    #[cfg(unix)]
    {
        /// From `unistd.h`.
        const STDERR: i32 = 2;
        unsafe extern "C" {
            fn write(file: i32, bytes: *const u8, len: usize) -> isize;
            fn _exit(code: i32) -> !;
        }
        // SAFETY: both are declared as in `unistd.h`; the bytes are a slice's.
        unsafe {
            write(STDERR, sentence.as_ptr(), sentence.len());
            _exit(code)
        }
    }
    #[cfg(not(unix))]
    {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), sentence);
        std::process::exit(code)
    }
}

/// Keeps the heap to one arena, for a program to say at its start. The GNU C library otherwise reserves 64 MiB of addresses
/// for every thread that allocates (mallopt(3), `M_ARENA_MAX`); nothing lies there, yet a limit on addresses (`ulimit -v`)
/// counts them. Workers allocate nothing while they compute, so none waits for another. Does nothing elsewhere.
pub fn one_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// From `malloc.h`.
        const M_ARENA_MAX: i32 = -8;
        unsafe extern "C" {
            fn mallopt(parameter: i32, value: i32) -> i32;
        }
        // SAFETY: `mallopt` is declared as in `malloc.h`, takes two numbers and may be called from any thread. If it does
        // not know the parameter it changes nothing.
        unsafe { mallopt(M_ARENA_MAX, 1) };
    }
}
