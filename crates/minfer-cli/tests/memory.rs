//! The ledger against the process, on real models (Linux): what was planned is what is taken, and limits are kept.
#![cfg(target_os = "linux")]

mod support;

use serde_json::Value;
use std::fmt::Write;
use support::{finish, minfer, minfer_with_stdin, program};

const MIB: f64 = 1_048_576.0;

fn model(file_name: &str) -> String {
    minfer_testkit::model_path(file_name).into_os_string().into_string().unwrap()
}

/// A prompt of about this many tokens, and how many it is.
fn prompt(model: &str, n_words: usize) -> (String, usize) {
    let words = ["memory", "plan", "water", "tree", "seven", "light", "bridge", "cloud"];
    let text = (0..n_words).fold(String::new(), |mut text, i| {
        let _ = write!(text, " {}", words[(i * i + i / 3) % words.len()]);
        text
    });
    let ids = minfer_with_stdin(["tokenize", model], text.as_bytes()).ok();
    let n_tokens = ids.trim().split(',').count();
    (text, n_tokens)
}

/// What a long sentence of `--memory-report` says, in MiB.
fn said(report: &str, after: &str) -> f64 {
    let (_, rest) = report.split_once(after).unwrap_or_else(|| panic!("{after}: {report}"));
    rest.split_whitespace().find_map(|word| word.parse().ok()).unwrap()
}

/// Planned, allocated and resident MiB of a row of `--memory-report`.
fn row(report: &str, name: &str) -> Vec<f64> {
    let line = report.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {report}"));
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// With a context filled to its end, the process takes what the ledger says: each class to the byte as allocated, and all
/// of it together within 1 % and 8 MiB, above and below.
fn check_growth(file_name: &str, n_words: usize, flags: &[&str]) {
    let model = model(file_name);
    let (text, n_tokens) = prompt(&model, n_words);
    let n_ctx = (n_tokens + 4).to_string();
    let words = ["run", &model, "--raw", "--temp", "0", "-n", "4", "--memory-report", "--n-ctx", &n_ctx];
    let ran = minfer_with_stdin(words.iter().chain(flags), text.as_bytes());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = &ran.stderr;
    for class in ["weights ", "kv ", "arena "] {
        let row = row(report, class);
        assert_eq!(row[0], row[1], "{class} planned and allocated: {report}");
    }
    let peak = row(report, "its peak");
    let (planned, measured) = (peak[0], peak[1]);
    println!("{file_name} {flags:?}: planned {planned} MiB, peak {measured} MiB");
    let tolerance = planned * 0.01 + 8.0;
    assert!((planned - measured).abs() <= tolerance, "{report}");
    // The arena and the KV cache are used to their ends.
    for class in ["kv ", "arena "] {
        let row = row(report, class);
        assert!(row[2] >= row[0] - 1.0, "{class} is larger than needed: {report}");
    }
}

#[test]
fn smollm2_takes_what_was_planned() {
    for flags in [&["--ubatch", "128"][..], &["--cache-type", "f32"], &["--alloc", "pool", "--threads", "1"]] {
        check_growth("smollm2-135m-instruct-q4_1.gguf", 500, flags);
    }
}

#[test]
fn gemma_takes_what_was_planned() {
    check_growth("gemma3-270m-q4_k_m.gguf", 300, &[]);
}

/// A short prompt leaves most of the context empty, and most rows of an embedding that is not the output matrix too. What
/// was not used is not in memory; all the rest is, within 1 % and 8 MiB of the ledger, above and below.
#[test]
fn what_is_not_in_memory_is_told() {
    let models = ["smollm2-135m-instruct-q4_1.gguf", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"];
    for file_name in models {
        let model = model(file_name);
        let plan: Value = minfer(["plan", &model, "--json"]).json();
        let on_demand = plan["on_demand_bytes"].as_u64().unwrap();
        assert_eq!(on_demand, if file_name.starts_with("qwen") { 93_592_576 } else { 0 });
        let words = ["run", &model, "The capital of France is", "--raw", "--temp", "0", "-n", "4", "--memory-report"];
        let ran = minfer(words);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let (report, peak) = (&ran.stderr, row(&ran.stderr, "its peak"));
        let (planned, measured) = (said(report, "took back);"), peak[1]);
        println!("{file_name}: planned {} MiB, {planned} of them touched, peak {measured} MiB", peak[0]);
        assert!((planned - measured).abs() <= planned * 0.01 + 8.0, "{report}");
        assert!(said(report, "of the planned") > on_demand as f64 / MIB - 2.0, "{report}");
        if on_demand > 0 {
            let embedding = row(report, "  embedding in it");
            assert!(embedding[0] == embedding[1] && embedding[2] < 2.0, "{report}");
        }
    }
}

/// The program under a limit on its addresses.
fn minfer_within(limit_bytes: u64, words: &[&str]) -> support::Ran {
    minfer_under("-v", limit_bytes, words)
}

/// The program under a limit of the shell's `ulimit`. It leaves no memory dump if it is aborted.
fn minfer_under(which: &str, limit_bytes: u64, words: &[&str]) -> support::Ran {
    finish(&mut under(which, limit_bytes, words))
}

fn under(which: &str, limit_bytes: u64, words: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new("sh");
    let binary = program().get_program().to_owned();
    let set = format!("ulimit -c 0 && ulimit {which} {} && exec \"$0\" \"$@\"", limit_bytes / 1024);
    command.arg("-c").arg(set).arg(binary).args(words);
    command
}

/// What is asked for holds, and so does what the system enforces; whoever says no is named.
#[test]
fn a_size_does_not_lift_what_the_system_enforces() {
    let model = model("smollm2-135m-instruct-q4_1.gguf");
    let of = |flags: &[&str]| -> Value { minfer(["plan", &model, "--json"].iter().chain(flags)).json() };
    let total = of(&[])["total_bytes"].as_u64().unwrap();
    let commands = [
        &["run", &model, "Hi", "--raw", "-n", "1"][..],
        &["eval", &model, "--text", "a b"],
        &["bench", &model, "-p", "4000", "-n", "1"],
    ];
    for words in commands {
        for size in [&["--memory", "64GiB"][..], &[]] {
            let words = [words, size].concat();
            let ran = minfer_within(total / 2, &words);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{words:?}: {ran:?}");
            assert!(
                ran.stderr.contains("ulimit -v allows") && ran.stderr.contains("does not fit"),
                "{words:?}: {ran:?}"
            );
            // Mapped weights do not count, all else does.
            let ran = minfer_under("-d", 11 << 20, &words);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{words:?}: {ran:?}");
            assert!(
                ran.stderr.contains("ulimit -d allows this process 11.0 MiB beside mapped files"),
                "{words:?}: {ran:?}"
            );
        }
    }
    // The one that misses most is told of, so that what helps there helps everywhere.
    let ran = minfer_within(total / 100 * 60, &["run", &model, "Hi", "--raw", "--memory", "1MiB"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("1.0 MiB are allowed"), "{ran:?}");
    assert!(!ran.stderr.contains("ulimit"), "{ran:?}");

    // A plan may be another machine's.
    let ran = minfer_within(total / 100 * 60, &["plan", &model, "--memory", "64GiB"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("here this would not run"), "{ran:?}");
    assert!(ran.stdout.contains("budget   65536.0 MiB: fits"), "{ran:?}");
    let ran = minfer_within(total / 100 * 60, &["plan", &model]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    // What is in force is told when all fits, too.
    let ran = minfer_within(1 << 30, &["plan", &model]);
    assert!(ran.stdout.contains(" MiB (ulimit -v): fits, "), "{ran:?}");
    let ran = minfer_within(total, &["plan", &model, "--fit", "n-ctx"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("is the most that fits in"), "{ran:?}");
    assert!(ran.stdout.contains(" MiB (ulimit -v)"), "{ran:?}");
}

/// The machine is measured before a model is mapped, with no more memory than there is; and a limit on data does not count
/// mapped weights, nor does what is free count it.
#[test]
fn what_fits_is_not_refused_under_a_limit_on_data() {
    let model = model("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    let words = ["bench", &model, "-p", "4", "-n", "2", "-r", "1", "--threads", "1"];
    minfer_under("-d", 300_000 << 10, &words).ok();
    let auto = ["plan", &model, "--n-ctx", "64", "--ubatch", "16", "--memory", "auto"];
    minfer_under("-d", 300_000 << 10, &auto).ok();
}

/// A size is a wish: no machine has a hundred TiB for a context.
#[test]
fn a_size_does_not_lift_what_the_machine_has() {
    let model = model("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    let of = |words: &[&str]| minfer([words, &["--cache-type", "f32", "--memory", "100000GiB"]].concat());
    let bench = of(&["bench", &model, "-p", "4", "-n", "1", "--batch", "4000", "-d", "30000"]);
    assert!(bench.code == Some(1) && bench.stderr.contains("this machine has "), "{bench:?}");
    let plan = of(&["plan", &model, "--n-ctx", "32768", "--slots", "4000"]);
    assert!(plan.code == Some(0) && plan.stderr.contains("here this would not run"), "{plan:?}");
}

/// Headers need no room for the weights: what a process could never map is planned, and refused with figures.
#[test]
fn a_file_beyond_all_addresses_is_planned() {
    let model = model("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    for words in [&["plan", &model][..], &["run", &model, "Hi"], &["bench", &model], &["eval", &model, "--text", "a b"]]
    {
        let ran = minfer_within(120 << 20, words);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("does not fit") && said.contains("largest owners: weights 379.4 MiB"), "{ran:?}");
    }
}

/// Under a limit of the ledger and 6 % on all memory of the process, it completes. Under 5 % less it is refused in advance,
/// whether the system or `--memory` sets the limit.
/// (The limit is on address space, which is never smaller than what is resident.)
#[test]
fn a_process_lives_within_its_ledger() {
    let model = model("smollm2-135m-instruct-q4_1.gguf");
    let plan: Value = minfer(["plan", &model, "--json"]).json();
    let total = plan["total_bytes"].as_u64().unwrap();
    println!("ledger {:.1} MiB", total as f64 / MIB);
    let within = |percent: u64| {
        let words =
            ["run", &model, "The capital of France is", "--raw", "--temp", "0", "-n", "4", "--threads", "2", "-q"];
        minfer_within(total / 100 * percent, &words)
    };
    assert!(!within(105).ok().trim().is_empty());
    // The last of these are smaller than the file, and than what the tables of its vocabulary take beside it.
    for percent in [99, 95, 60, 50, 45] {
        let ran = within(percent);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{percent} %: {ran:?}");
        assert!(ran.stderr.contains("does not fit"), "{percent} %: {ran:?}");
    }
    // Between the ledger and what its addresses take, it is one or the other, and never killed.
    for percent in [100, 101, 102, 103, 104, 105] {
        let ran = within(percent);
        assert!(
            ran.code == Some(0) || ran.code == Some(1) && ran.stderr.contains("does not fit"),
            "{percent} %: {ran:?}"
        );
    }

    let less = (total / 100 * 95).to_string();
    let ran = minfer(["run", &model, "The capital of France is", "--raw", "--memory", &less]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
}

/// However little there is: an answer, or one of the sentences that say what is missing; never a signal, nor a panic.
fn answers_or_says(ran: &support::Ran, what: &str) -> bool {
    let says = |words: &[&str]| words.iter().any(|words| ran.stderr.contains(words));
    match ran.code {
        Some(0) => true,
        Some(1) => {
            assert!(says(&["ulimit -v allows"]), "{what}: {ran:?}");
            true
        }
        Some(2) => {
            let of_memory = ["error: too little memory: ", "cannot map the file: Cannot allocate memory"];
            let of_others = ["cannot allocate ", "cannot start ", "starts no thread with a stack of", "the prompt has"];
            assert!(says(&of_memory) || says(&of_others), "{what}: {ran:?}");
            false
        }
        _ => panic!("{what}: {ran:?}"),
    }
}

/// What answers with some memory answers with more.
#[test]
fn too_little_memory_is_told_in_a_sentence() {
    let model = model("smollm2-135m-instruct-q4_1.gguf");
    let commands = [
        (&["run", &model, "x", "-n", "1"][..], 2000),
        (&["plan", &model], 2000),
        (&["graph", &model], 4000),
        (&["inspect", &model], 4000),
        (&["tokenize", &model, "--text", "x"], 2000),
        (&["template", &model], 4000),
        (&["doctor", &model, "--threads", "1"], 10_000),
    ];
    for (words, step) in commands {
        let mut answered = false;
        for kib in (16_000..=116_000).step_by(step) {
            let ran = minfer_within(kib << 10, words);
            let answers = answers_or_says(&ran, &format!("{words:?} within {kib} KiB"));
            assert!(answers || !answered, "{words:?} answers with less than {kib} KiB: {ran:?}");
            answered = answers;
        }
        assert!(answered, "{words:?}");
    }
}

/// What a problem or a prompt takes is not known before: it too ends with a sentence.
#[test]
fn large_input_ends_in_a_sentence() {
    let dir = support::folder("memory_large");
    let problem = dir.join("problem.csv").into_os_string().into_string().unwrap();
    // Many share every step, so that what is kept of pairs of them is far larger than the text.
    let lines = (0..3500).fold("id,lower,upper,size\n".to_owned(), |mut text, i: u64| {
        let _ = writeln!(text, "b{i},{},{},{}", i % 100, (i % 100 + 1 + i * i % 59).min(100), 1 + i * 7919 % 5000);
        text
    });
    std::fs::write(&problem, lines).unwrap();
    for kib in (18_000..=108_000).step_by(9000) {
        let ran = minfer_within(kib << 10, &["memplan", "solve", &problem, "--timeout", "1"]);
        answers_or_says(&ran, &format!("memplan within {kib} KiB"));
    }
    let prompt = dir.join("prompt.txt");
    std::fs::write(&prompt, "word ".repeat(4 << 20)).unwrap();
    let model = model("smollm2-135m-instruct-q4_1.gguf");
    for kib in [60_000, 100_000, 160_000, 300_000] {
        let mut command = under("-v", kib << 10, &["run", &model, "--raw", "-n", "1"]);
        let ran = finish(command.stdin(std::fs::File::open(&prompt).unwrap()));
        answers_or_says(&ran, &format!("a prompt of 20 MB within {kib} KiB"));
    }
}
