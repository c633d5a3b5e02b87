//! What the process really takes, against the ledger. Alone in its file, so that nothing else runs in this process.

use minfer_engine::EngineConfig;
use minfer_plan::Owner;
use minfer_tests::*;

/// Code, stacks and fixed heap of the test, as the command line counts its own.
const PROGRAM_BYTES: u64 = 8 << 20;

/// Starting does not copy the weights, and what the ledger does not name stays small.
#[test]
#[cfg(target_os = "linux")]
fn resident_memory_stays_within_the_ledger() {
    let model = real("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    let config = EngineConfig { n_ctx: 1024, program_bytes: PROGRAM_BYTES, ..EngineConfig::default() };
    let mut engine = engine(&model, cpu(2), config);
    let prompt: Vec<u32> = (0..300).map(|i| (i * 977 + 13) % 150_000).collect();
    greedy(&mut engine, &prompt, 3);
    let (total, file) = (status_bytes("VmHWM:"), status_bytes("RssFile:"));
    let ledger = engine.ledger();
    let tolerance = ledger.total() / 100 + (8 << 20);
    let owned = ledger.total() - ledger.sum(Owner::Weights);
    println!("peak {total}, of files {file}, ledger {} of which weights {}", ledger.total(), ledger.total() - owned);
    assert!(total <= ledger.total() + tolerance, "{total} bytes resident, ledger {}", ledger.total());
    assert!(total - file <= owned + tolerance, "{} bytes beside the mapped file, ledger {owned}", total - file);
}

#[cfg(target_os = "linux")]
fn status_bytes(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find(|line| line.starts_with(field)).expect("a known field");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    kib * 1024
}
