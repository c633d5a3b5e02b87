//! Splitting independent rows over threads. Takes the output and a function on a part of it; gives nothing but errors.
//! Each row is computed by one call whatever the number of threads, so results never depend on it.

/// Fewest multiplications for which starting a thread pays.
const MIN_WORK_PER_THREAD: usize = 1 << 18;

/// What can go wrong in a part.
#[derive(Debug)]
pub enum Failed {
    /// A weight row could not be decoded.
    Decode(String),
    /// A thread panicked.
    Panic,
}

/// Calls `run(first, part)` for consecutive parts of `out`, which is rows of `width` elements; `first` is the part's first
/// row. `work` is the number of multiplications in all.
pub fn for_each_part<F>(threads: usize, work: usize, out: &mut [f32], width: usize, run: F) -> Result<(), Failed>
where
    F: Fn(usize, &mut [f32]) -> Result<(), Failed> + Sync,
{
    if out.is_empty() || width == 0 {
        return Ok(());
    }
    let rows = out.len() / width;
    let parts = threads.min(work / MIN_WORK_PER_THREAD).clamp(1, rows);
    if parts == 1 {
        return run(0, out);
    }
    let rows_per_part = rows.div_ceil(parts);
    let run = &run;
    std::thread::scope(|scope| {
        let workers: Vec<_> = out
            .chunks_mut(rows_per_part * width)
            .enumerate()
            .map(|(index, part)| scope.spawn(move || run(index * rows_per_part, part)))
            .collect();
        let results: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap_or(Err(Failed::Panic))).collect();
        results.into_iter().collect()
    })
}
