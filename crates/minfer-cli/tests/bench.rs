//! `minfer bench` and `minfer doctor` on a small model: what they print, and what they refuse. No test looks at a time.

mod support;

use minfer_testkit::{TinyArch, TinyModel};
use serde_json::{Value, json};
use support::{finish, folder, minfer, program, tiny};

/// Numbers by name of an object.
fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} is no number in {value}"))
}

#[test]
fn json_has_the_medians_of_the_first_setup() {
    let model = tiny("bench_json");
    let words = ["bench", &model, "-p", "40", "-n", "3", "-r", "2", "--threads", "1", "--output", "json"];
    let got = minfer(words).json();
    for phase in ["prefill", "decode"] {
        let median = number(&got, &format!("{phase}_tps"));
        let spread = |key: &str| number(&got[phase], key);
        assert!(median > 0.0 && median == spread("median"), "{got}");
        assert!(spread("min") <= median && median <= spread("max"), "{got}");
        assert!(spread("min") <= spread("mean") && spread("mean") <= spread("max") && spread("sd") >= 0.0, "{got}");
    }
    assert_eq!((&got["n_prompt"], &got["n_gen"], &got["threads"]), (&json!(40), &json!(3), &json!(1)));
    let results = got["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!((&results[0]["test"], &results[0]["depth"]), (&json!("prefill"), &json!(0)));
    assert_eq!((&results[1]["test"], &results[1]["depth"]), (&json!("decode"), &json!(40)));
    for result in results {
        assert_eq!(result["samples_tps"].as_array().unwrap().len(), 2);
        for key in ["gb_s", "read_share", "gop_s", "int8_share"] {
            assert!(number(result, key) > 0.0, "{key}: {result}");
        }
        assert!(number(&result["per_round"], "product_ops") > 0.0 && result.get("profile").is_none(), "{result}");
    }
    assert!(number(&got["limits"][0], "read_gb_s") > 0.0 && number(&got["limits"][0], "int8_gop_s") > 0.0);
    // What is left out is null.
    let got = minfer(["bench", &model, "-p", "0", "-n", "2", "-r", "1", "--output", "json"]).json();
    assert_eq!((&got["prefill_tps"], &got["prefill"]), (&Value::Null, &Value::Null));
    assert_eq!(got["results"].as_array().unwrap().len(), 1);
}

#[test]
fn lists_are_tried_in_every_combination() {
    let model = tiny("bench_lists");
    let lists = ["--threads", "1,2", "--cache-type", "f16,f32", "--batch", "1,3", "-d", "0,20", "-pg", "6,2"];
    let words = [&["bench", &model, "-p", "9", "-n", "2", "-r", "1"], &lists[..]].concat();
    let got = minfer([&words[..], &["--output", "json"]].concat()).json();
    let results = got["results"].as_array().unwrap();
    let has = |test: &str, cache: &str, threads: u64, batch: u64, depth: u64| {
        let wanted = json!([test, cache, threads, batch, depth]);
        let keys = ["test", "cache_type", "threads", "batch", "depth"];
        results.iter().filter(|result| json!(keys.map(|key| result[key].clone())) == wanted).count() == 1
    };
    assert_eq!((results.len(), got["limits"].as_array().unwrap().len()), (2 * 2 * 2 * 2 * 3, 2));
    for (cache, threads, batch, depth) in [("f16", 1, 1, 0), ("f32", 2, 3, 20), ("f16", 2, 3, 0)] {
        assert!(has("prefill", cache, threads, batch, depth), "{results:?}");
        assert!(has("decode", cache, threads, batch, depth + 9), "{results:?}");
        assert!(has("mixed", cache, threads, batch, depth), "{results:?}");
    }
    let csv = minfer([&words[..], &["--output", "csv"]].concat()).ok();
    let columns = |line: &str| line.split(',').count();
    assert!(csv.starts_with("phase,n_prompt,n_gen,cache_type,threads,batch,depth,rounds,mean_tps,sd_tps,"), "{csv}");
    assert_eq!((csv.lines().count(), csv.lines().map(columns).max()), (49, csv.lines().map(columns).min()));
    assert!(csv.lines().any(|line| line.starts_with("decode,0,2,f32,2,3,29,1,")), "{csv}");
    let markdown = minfer([&words[..], &["--output", "markdown"]].concat()).ok();
    let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    let bars = |line: &&str| line.matches('|').count();
    assert_eq!((rows.len(), rows.iter().map(bars).max()), (50, rows.iter().map(bars).min()), "{markdown}");
    let table = minfer(words).ok();
    assert!(table.contains("mixed 6+2") && table.contains("mean ± sd") && table.contains("of int8"), "{table}");
    assert!(table.lines().all(|line| line == line.trim_end()), "{table}");
}

#[test]
fn a_profile_has_a_row_for_every_kind_of_operation() {
    let model = tiny("bench_profile");
    let words = ["bench", &model, "-p", "9", "-n", "2", "-r", "1", "--profile"];
    let got = minfer([&words[..], &["--output", "json"]].concat()).json();
    let graph = minfer(["graph", &model, "--output", "json", "--kind", "decode"]).json();
    let nodes = graph["nodes"].as_array().unwrap();
    for result in got["results"].as_array().unwrap() {
        let rows = result["profile"]["ops"].as_array().unwrap();
        for op in nodes.iter().map(|node| node["op"].as_str().unwrap()).filter(|op| !matches!(*op, "input" | "kv_view"))
        {
            assert!(rows.iter().any(|row| row["op"] == op), "{op} is not in {rows:?}");
        }
        let shares: f64 = rows.iter().map(|row| number(row, "share")).sum();
        assert!(shares > 0.0 && shares <= 1.0 + 1e-9, "{shares}");
        let linear = rows.iter().find(|row| row["op"] == "linear").unwrap();
        assert!(number(linear, "gop_s") > 0.0 && linear["weights"] != "", "{linear}");
    }
    for output in ["table", "markdown"] {
        let text = minfer([&words[..], &["--output", output]].concat()).ok();
        for words in ["operation", "qkv_store", "between steps", "step by step"] {
            assert!(text.contains(words), "`{words}` is not in {text}");
        }
    }
    minfer([&words[..], &["--output", "csv"]].concat()).refused(&["--profile", "hint"]);
}

#[test]
fn the_picture_has_a_bar_for_every_result() {
    let model = tiny("bench_svg");
    let svg = format!("{model}.svg");
    let words = ["bench", &model, "-p", "9", "-n", "2", "-r", "2", "--batch", "1,2", "--svg"];
    minfer([&words[..], &[&svg]].concat()).ok();
    let picture = std::fs::read_to_string(&svg).unwrap();
    assert!(picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>"), "{picture}");
    // The paper and four bars.
    assert_eq!(picture.matches("<rect ").count(), 1 + 4, "{picture}");
    for label in ["prefill 9, batch 1", "decode 2, batch 2", "of int8", "of reads"] {
        assert!(picture.contains(label), "`{label}` is not in {picture}");
    }
    assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    minfer([&words[..], &[&model]].concat()).refused(&["this is the model"]);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let model = tiny("bench_refusals");
    for (flags, words) in [
        (&["-p", "0", "-n", "0"][..], &["nothing is left to measure"][..]),
        (&["-pg", "12"], &["12", "512,64"]),
        (&["-pg", "a,1"], &["`a`"]),
        (&["--batch", "1,x"], &["x"]),
        (&["--batch", "0"], &["--batch is 0", "1 to 4096"]),
        (&["--cache-type", "f16,f64"], &["f64"]),
        (&["--threads", "1,4096"], &["--threads is 4096"]),
        (&["-d", "100000"], &["100576", "512"]),
        // A context longer than the model was trained for, whatever the batch.
        (&["--batch", "4096", "-d", "1"], &["577", "512"]),
        (&["--output", "xml"], &["xml"]),
    ] {
        minfer([&["bench", &model, "-r", "1"], flags].concat()).refused(words);
    }
}

/// A batch that is too large is named.
#[test]
fn a_batch_that_does_not_fit_is_named() {
    let model = tiny("bench_budget");
    let words = ["bench", &model, "-p", "4", "-n", "2", "-r", "1", "--batch", "1,4000", "--memory", "32MiB"];
    let ran = minfer(words);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("--batch ") && ran.stderr.contains("that is enough"), "{ran:?}");
}

#[test]
fn doctor_describes_the_machine() {
    let text = minfer(["doctor"]).ok();
    for words in ["simd", "threads", "caches", "memory", "cgroup", "reads GB/s", "8-bit GOP/s"] {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
    let got =
        finish(program().args(["doctor", "--output", "json", "--threads", "3"]).env("MINFER_SIMD", "scalar")).json();
    let threads: Vec<&Value> = got["limits"].as_array().unwrap().iter().map(|limits| &limits["threads"]).collect();
    assert_eq!((threads, &got["simd"]), (vec![&json!(1), &json!(2), &json!(3)], &json!("scalar")));
    assert!(got["limits"].as_array().unwrap().iter().all(|limits| number(limits, "read_gb_s") > 0.0), "{got}");
    assert!(number(&got["threads"], "default") >= 1.0 && got["model"].is_null(), "{got}");
    assert!(got["simd_available"].as_array().unwrap().contains(&json!("scalar")));
}

#[test]
fn doctor_bounds_the_decode_of_a_model() {
    let model = tiny("doctor");
    let got = minfer(["doctor", &model, "--output", "json", "--threads", "1"]).json();
    let tokens = got["model"]["decode"].as_array().unwrap();
    assert_eq!((tokens.len(), &tokens[0]["depth"], &got["model"]["arch"]), (2, &json!(0), &json!("llama")));
    for token in tokens {
        let bytes = number(token, "weight_bytes") + number(token, "kv_read_bytes");
        let expected = number(&got["limits"][0], "read_gb_s") * 1e9 / bytes;
        assert!((token["at_most_tps"][0].as_f64().unwrap() / expected - 1.0).abs() < 1e-9, "{token}");
    }
    let text = minfer(["doctor", &model, "--threads", "1"]).ok();
    assert!(text.contains("tokens/s with 1 thread") && text.contains("of weights"), "{text}");
    minfer(["doctor", &format!("{model}.absent")]).refused(&["absent"]);
}

/// It reads no weights, so it has a bound for a model that could never be mapped here.
#[test]
#[cfg(unix)]
fn doctor_needs_the_header_of_a_model_only() {
    let path = folder("doctor_huge").join("huge.gguf");
    TinyModel::new("huge", TinyArch::Llama).write_sparse(&path, 4 << 30).unwrap();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -v 1000000 && exec \"$0\" doctor --threads 1 \"$1\""]);
    let ran = finish(command.arg(program().get_program()).arg(&path));
    std::fs::remove_file(&path).unwrap();
    assert!(ran.ok().contains("tokens/s with 1 thread"));
}

/// Rounds can take minutes: stderr says what is measured, stdout is the answer.
#[test]
fn stderr_tells_what_is_measured() {
    let model = tiny("bench_progress");
    let words = ["bench", &model, "-p", "8", "-n", "2", "-r", "1", "--batch", "1,40", "-d", "0,5", "--threads", "1"];
    let ran = minfer(words);
    let told: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("measuring ")).collect();
    let expected = [(1, 0), (1, 5), (40, 0), (40, 5)];
    let expected =
        expected.map(|(batch, depth)| format!("measuring batch {batch}, depth {depth}, 1 thread, cache f16"));
    assert_eq!(told, expected, "{ran:?}");
    assert!(!ran.ok().contains("measuring"));
}
