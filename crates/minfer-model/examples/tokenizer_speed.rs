//! How fast a tokenizer is. Takes GGUF files; gives, for each, the time until it is ready and bytes per second for several
//! texts; must not judge. `cargo run --release -p minfer-model --example tokenizer_speed -- FILE...`
//!
//! Every figure is the best of several rounds: what the machine can do when nothing else runs on it. On Linux it is the time
//! of the processor, so that other work on the machine counts less.

use minfer_gguf::GgufFile;
use minfer_model::load_tokenizer;
use minfer_text::{EncodeOptions, Tokenizer};
use std::error::Error;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let file = GgufFile::open(&path)?;
        let load = || Ok::<_, Box<dyn Error>>(Tokenizer::new(load_tokenizer(&file)?.spec)?);
        let tokenizer = load()?;
        println!("{path}: {} tokens, {} merges", tokenizer.n_vocab(), tokenizer.n_merges());
        println!("  ready in          {:>9.1} ms", 1000.0 * best(|| load().map(drop))?.as_secs_f64());
        for (name, text) in texts() {
            let time = best(|| {
                std::hint::black_box(tokenizer.encode(&text, EncodeOptions::default()));
                Ok(())
            })?;
            let rate = text.len() as f64 / time.as_secs_f64() / 1e6;
            println!("  {name:<18}{:>9.1} ms {rate:>8.1} MB/s", 1000.0 * time.as_secs_f64());
        }
    }
    Ok(())
}

/// The shortest of several rounds.
fn best(mut round: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<Duration, Box<dyn Error>> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let (start, start_cpu) = (Instant::now(), cpu_time());
        round()?;
        let time = cpu_time().zip(start_cpu).map(|(end, start)| end.saturating_sub(start));
        // That clock is coarse.
        let time = time.filter(|&time| time > Duration::from_millis(20)).unwrap_or_else(|| start.elapsed());
        best = best.min(time);
    }
    Ok(best)
}

/// How long this thread has run.
fn cpu_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Ordinary prose and what has broken tokenizers.
fn texts() -> Vec<(&'static str, Vec<u8>)> {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let prose = include_str!("../../../ARCHITECTURE.md");
    let words: Vec<&str> = prose.split_inclusive(' ').collect();
    let mut english = Vec::new();
    while english.len() < 1_000_000 {
        english.extend_from_slice(words[random() % words.len()].as_bytes());
    }
    let bytes = (0..1_000_000).map(|_| random() as u8).collect();
    let same = |c: &str, n: usize| c.repeat(n).into_bytes();
    vec![
        ("1 MB English", english),
        ("1 MB random bytes", bytes),
        ("128,000 x a", same("a", 128_000)),
        ("128,000 x Z", same("Z", 128_000)),
        ("128,000 x space", same(" ", 128_000)),
        ("128,000 x newline", same("\n", 128_000)),
        ("128,000 x digit", same("7", 128_000)),
        ("128,000 x CJK", same("\u{4e2d}", 128_000)),
        ("128,000 x mark", same("\u{301}", 128_000)),
        ("1 MB '\\n x'", same("\n  \n x", 170_000)),
    ]
}
