//! What every fuzz target shares: one body, two ways to run it.
//!
//! Takes the body of a target. Under `cargo fuzz` (nightly, `cfg(fuzzing)`) it gives a libFuzzer
//! target. In a plain build it gives a program that runs the body on each seed in
//! `seeds/<target>/` and on a fixed number of mutations of them, the same ones every time: a start
//! of the target on the stable toolchain, no search. Must not know what the bodies do.

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;

/// Mutations when the command line names no number.
const DEFAULT_RUNS: u64 = 2000;

/// Makes `$body`, a `fn(&[u8])`, the target `$name`.
#[macro_export]
macro_rules! target {
    ($name:literal, $body:ident) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $body(data));

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::start($name, $body)
        }
    };
}

/// Runs the seeds of target `name`, then mutations of them; an input that panics is kept.
pub fn start(name: &str, body: fn(&[u8])) -> ExitCode {
    let Ok(n_runs) = std::env::args().nth(1).map_or(Ok(DEFAULT_RUNS), |text| text.parse()) else {
        eprintln!("usage: {name} [number of mutations]");
        return ExitCode::FAILURE;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seeds = read_seeds(&here.join("seeds").join(name));
    let n_files = seeds.len();
    seeds.push(Vec::new());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mutations = (0..n_runs).map(|_| {
        let mut input = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(4) {
            mutate(&mut input, &mut random);
        }
        input
    });
    for input in seeds.iter().cloned().chain(mutations) {
        if panic::catch_unwind(AssertUnwindSafe(|| body(&input))).is_err() {
            let folder = here.join("artifacts").join(name);
            let file = folder.join("crash-start");
            match fs::create_dir_all(&folder).and_then(|()| fs::write(&file, &input)) {
                Ok(()) => eprintln!("{name}: panicked; input kept in {}", file.display()),
                Err(error) => eprintln!("{name}: panicked on {input:?} (not kept: {error})"),
            }
            return ExitCode::FAILURE;
        }
    }
    println!("{name}: {n_files} seeds and {n_runs} mutations, no panic");
    if n_files == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The files of a folder, in name order.
fn read_seeds(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// One small change: what breaks parsers is flipped bits, wrong lengths and missing ends.
fn mutate(input: &mut Vec<u8>, random: &mut Random) {
    const EDGES: [u64; 8] = [0, 1, 0x7f, 0xff, 0x7fff_ffff, 0xffff_ffff, i64::MAX as u64, u64::MAX];
    let at = random.below(input.len() + 1);
    let width = [1, 4, 8][random.below(3)];
    match random.below(6) {
        0 => input.truncate(at),
        1 => input.insert(at, random.next() as u8),
        2 if at < input.len() => input[at] ^= 1 << random.below(8),
        3 if at + width <= input.len() => {
            let edge = EDGES[random.below(EDGES.len())].to_le_bytes();
            input[at..at + width].copy_from_slice(&edge[..width]);
        }
        4 if at < input.len() => drop(input.drain(at..(at + width).min(input.len()))),
        _ => {
            let copy = input[at..(at + width).min(input.len())].to_vec();
            input.splice(at..at, copy);
        }
    }
}

/// A xorshift generator: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number in `0..n`; `n` is not 0.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
