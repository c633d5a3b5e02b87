//! The C library's heap. Takes nothing; makes all threads share one arena; must not know who allocates.

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
