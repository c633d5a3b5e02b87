//! The search against the process (Linux): what it says that it takes at most, and what the process takes. A test file of
//! its own, for the peak of a process is that of all its tests.
#![cfg(target_os = "linux")]

use minfer_memplan::{Buffer, Options, Problem, Strategy, Verdict, place_with, search_bytes};

/// 2000 buffers that meet a tenth of the others, too many for the greedy orders.
fn deep() -> Problem {
    let mut x = 1u64;
    let mut below = |end: u64| {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (x >> 33) % end
    };
    let mut buffer = |_| {
        let lower = below(2000);
        Buffer::new(lower, lower + 1 + below(200), 1 + below(1000))
    };
    Problem::new((0..2000).map(&mut buffer).collect())
}

fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
}

#[test]
fn a_deep_search_takes_what_it_says_at_most() {
    let problem = deep();
    let place = |search_nodes| {
        let mut options = Options::default();
        (options.node_budget, options.search_nodes) = (200_000, search_nodes);
        place_with(&problem, Strategy::Planned, &options).unwrap().certificate.verdict
    };
    assert!(matches!(place(0), Verdict::Gap { .. }));
    let before = peak_bytes();
    place(10_000);
    let (taken, limit) = (peak_bytes() - before, search_bytes(&problem, false));
    assert!(limit < 64 << 20, "{limit}");
    assert!(taken < limit, "{taken} of {limit}");
    // It did go deep: tables and lists of that size cannot do with less.
    assert!(taken > 4 << 20, "{taken}");
}
