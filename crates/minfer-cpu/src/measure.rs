//! What this machine can do at most. Takes a SIMD level and a size; gives bytes read and 8-bit operations per second for
//! any number of threads: the two limits that decode and prefill are held against. Must not know steps or models.

use crate::backend::CpuError;
use crate::capabilities::STACK_BYTES;
use crate::pool::Pool;
use crate::region::{ALIGN, Region};
use crate::simd::{Kernel, Simd, SimdLevel};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bytes that a worker takes at a time.
const CHUNK_BYTES: usize = 256 << 10;
/// Bytes of one pass: long enough for waking the workers not to count, short enough to fall between what else the machine
/// does.
const PASS_BYTES: usize = 32 << 20;
/// Every byte of the memory that is read: as a float it is a small normal number, whose sums are as fast as any.
const BYTE: u8 = 0x11;

/// Steps of the product on one pass over its operands, which stay in the nearest cache.
const DEPTH: usize = 16;
/// Passes between two looks at the clock.
const PASSES: usize = 20_000;

/// Measures this machine. Its memory is written once, so that every page is there and none is shared.
pub struct Probe {
    level: SimdLevel,
    memory: Region,
}

impl Probe {
    /// A probe that reads `bytes` of memory (at least 1 MiB, whole chunks) over and over: more than the caches hold to
    /// measure the memory itself, or as many as something else reads to know its limit.
    pub fn new(level: SimdLevel, bytes: u64) -> Result<Self, CpuError> {
        let bytes = bytes.max(1 << 20).next_multiple_of(CHUNK_BYTES as u64);
        let memory = Region::zeroed(bytes).ok_or(CpuError::OutOfMemory { bytes })?;
        // SAFETY: the region is ours and has so many bytes.
        unsafe { std::ptr::write_bytes(memory.start(), BYTE, bytes as usize) };
        Ok(Self { level, memory })
    }

    /// Bytes it reads.
    pub fn bytes(&self) -> u64 {
        self.memory.len()
    }

    /// Bytes per second that threads read together, going round the memory pass by pass: the best pass within about
    /// `time`.
    pub fn read_bytes_per_s(&self, threads: NonZeroUsize, time: Duration) -> Result<f64, CpuError> {
        let mut pool = pool(threads)?;
        let (start, chunks) = (Bytes(self.memory.start()), self.memory.len() as usize / CHUNK_BYTES);
        let per_pass = chunks.min(PASS_BYTES / CHUNK_BYTES);
        let mut first = 0;
        let pass = best(time, || {
            let next = AtomicUsize::new(0);
            pool.run(&|_, _| {
                loop {
                    let taken = next.fetch_add(1, Relaxed);
                    if taken >= per_pass {
                        return;
                    }
                    let chunk = (first + taken) % chunks;
                    std::hint::black_box(self.level.run(ReadChunk { chunk, of: start }));
                }
            });
            first = (first + per_pass) % chunks;
        });
        Ok((per_pass * CHUNK_BYTES) as f64 / pass)
    }

    /// 8-bit multiplications and additions per second of the level's dot product in threads together, operands in the
    /// nearest cache and sums in registers, as in a matrix product: the best within about `time`.
    pub fn int8_ops_per_s(&self, threads: NonZeroUsize, time: Duration) -> Result<f64, CpuError> {
        let mut pool = pool(threads)?;
        let ops = AtomicUsize::new(0);
        let pass = best(time, || {
            pool.run(&|_, _| {
                ops.store(self.level.run(Dots), Relaxed);
            });
        });
        Ok((ops.into_inner() * threads.get()) as f64 / pass)
    }
}

/// Seconds of the fastest run. The first is not counted: it wakes the workers.
fn best(time: Duration, mut run: impl FnMut()) -> f64 {
    run();
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    loop {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
        if begin.elapsed() >= time {
            return best.max(1e-9);
        }
    }
}

fn pool(threads: NonZeroUsize) -> Result<Pool, CpuError> {
    let threads = threads.get();
    Pool::new(threads, STACK_BYTES).map_err(|source| CpuError::Threads { threads, source })
}

/// Memory that workers read together.
#[derive(Clone, Copy)]
struct Bytes(*const u8);

// SAFETY: nobody writes the memory while its probe is borrowed, which it is as long as workers run.
unsafe impl Sync for Bytes {}

/// Reads one chunk, adding it up.
struct ReadChunk {
    chunk: usize,
    of: Bytes,
}

impl Kernel for ReadChunk {
    type Out = f32;

    #[inline(always)]
    fn call<S: Simd>(self, s: S) -> f32 {
        const STREAMS: usize = 8;
        let vector_bytes = S::LANES * 4;
        let mut sums = [s.splat(0.0); STREAMS];
        let mut at = self.chunk * CHUNK_BYTES;
        let end = at + CHUNK_BYTES;
        while at < end {
            for stream in 0..STREAMS {
                // SAFETY: chunks lie within the memory and are whole numbers of vectors.
                sums[stream] = s.add(sums[stream], unsafe { s.load(self.of.0.add(at).cast()) });
                at += vector_bytes;
            }
        }
        let mut total = 0.0;
        for stream in 0..STREAMS {
            total += s.sum(sums[stream]);
        }
        total
    }
}

/// A product of small matrices, over and over; gives how many operations that were.
struct Dots;

#[repr(align(64))]
struct Operands([u8; DEPTH * 8 * ALIGN]);

impl Kernel for Dots {
    type Out = usize;

    #[inline(always)]
    fn call<S: Simd>(self, s: S) -> usize {
        // As many sums as the registers hold beside the operands.
        if S::LANES == 16 { dots::<S, 4, 4>(s) } else { dots::<S, 4, 2>(s) }
    }
}

#[inline(always)]
fn dots<S: Simd, const R: usize, const C: usize>(s: S) -> usize {
    let vector_bytes = S::LANES * 4;
    let mut operands = Operands([0; DEPTH * 8 * ALIGN]);
    for (index, byte) in operands.0.iter_mut().enumerate() {
        // Small enough for the sums of all passes to fit.
        *byte = (index % 16) as u8;
    }
    let mut sums = [[s.zero_i(); C]; R];
    for _ in 0..PASSES {
        // Every pass reads its operands anew: nothing can be computed once for all.
        let from = std::hint::black_box(&operands).0.as_ptr();
        for step in 0..DEPTH {
            let (mut weights, mut activations) = ([s.zero_i(); R], [s.zero_i(); C]);
            let at = step * (R + C) * vector_bytes;
            for row in 0..R {
                // SAFETY: a step has `R + C` vectors, at most eight of at most 64 bytes.
                weights[row] = unsafe { s.load_i(from.add(at + row * vector_bytes)) };
            }
            for column in 0..C {
                // SAFETY: as above.
                activations[column] = unsafe { s.load_i(from.add(at + (R + column) * vector_bytes)) };
            }
            for row in 0..R {
                for column in 0..C {
                    sums[row][column] = s.dot(sums[row][column], weights[row], activations[column]);
                }
            }
        }
    }
    for row in 0..R {
        for column in 0..C {
            std::hint::black_box(s.sum(s.to_f(sums[row][column])));
        }
    }
    PASSES * DEPTH * R * C * vector_bytes * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_measured_with_any_number_of_threads() {
        for level in SimdLevel::ALL.into_iter().filter(|level| level.is_available()) {
            let probe = Probe::new(level, 3 << 20).unwrap();
            for threads in [1, 3].map(|threads| NonZeroUsize::new(threads).unwrap()) {
                for rate in
                    [probe.read_bytes_per_s(threads, Duration::ZERO), probe.int8_ops_per_s(threads, Duration::ZERO)]
                {
                    let rate = rate.unwrap();
                    assert!(rate.is_finite() && rate > 0.0, "{level}: {rate}");
                }
            }
        }
    }

    /// A chunk that was left out, or read twice, would be a lie about the bandwidth.
    #[test]
    fn a_chunk_is_read_whole() {
        let probe = Probe::new(SimdLevel::Scalar, 1).unwrap();
        assert_eq!(probe.bytes(), 1 << 20);
        let word = f32::from_ne_bytes([BYTE; 4]);
        for level in SimdLevel::ALL.into_iter().filter(|level| level.is_available()) {
            let sum = level.run(ReadChunk { chunk: 3, of: Bytes(probe.memory.start()) });
            let expected = word * (CHUNK_BYTES / 4) as f32;
            assert!((sum - expected).abs() <= expected * 1e-3, "{level}: {sum:e} {expected:e}");
        }
    }
}
