//! `minfer plan` and `--memory` on small models: figures, refusals, fits, explanations and differences.

mod support;

use minfer_testkit::{TinyArch, TinyModel};
use serde_json::{Value, json};
use std::time::Instant;
use support::{Ran, folder, minfer, tiny, write};

fn bytes(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no size"))
}

fn plan_json(words: &[&str]) -> Value {
    minfer(["plan"].iter().chain(words).chain(&["--json"])).json()
}

/// Fails unless the answer is no: exit code 1.
fn no(ran: &Ran) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
}

#[test]
fn the_figures_add_up() {
    let model = tiny("plan_figures");
    let got = plan_json(&[&model, "--n-ctx", "100", "--cache-type", "f32"]);
    let ledger = got["ledger"].as_array().unwrap();
    let sum = |owner: &str| ledger.iter().filter(|line| line["owner"] == owner).map(|line| bytes(&line["bytes"])).sum();
    assert_eq!(bytes(&got["total_bytes"]), ledger.iter().map(|line| bytes(&line["bytes"])).sum::<u64>());
    let (weights, kv): (u64, u64) = (sum("weights"), sum("kv"));
    assert_eq!((bytes(&got["weights_bytes"]), bytes(&got["kv_bytes"])), (weights, kv));
    assert_eq!(weights, std::fs::metadata(&model).unwrap().len());
    // Two layers, K and V, 128 cells, 2 heads of 16 floats.
    assert_eq!(kv, 2 * 2 * 128 * 32 * 4);
    let arena = &got["arena"];
    let figure = |name: &str| bytes(&arena[name]);
    assert_eq!((arena["optimal"].as_bool(), figure("planned_bytes")), (Some(true), figure("lower_bound_bytes")));
    assert!(figure("planned_bytes") < figure("pool_bytes") && figure("pool_bytes") < figure("naive_bytes"));
    assert!(figure("nodes") > 20 && figure("buffers_pool") > 5);
    assert_eq!(sum("arena"), figure("planned_bytes"));
    let naive = plan_json(&[&model, "--n-ctx", "100", "--cache-type", "f32", "--alloc", "naive"]);
    assert_eq!(bytes(&naive["arena"]["used_bytes"]), figure("naive_bytes"));
    let of_arena = &got["plan"]["arenas"][0];
    assert_eq!(bytes(&of_arena["given_order_bytes"]), figure("lower_bound_bytes"));
    assert_eq!(of_arena["order_is_least"], true);
    // Every value lies within its arena.
    let values = got["plan"]["values"].as_array().unwrap();
    assert!(values.iter().all(|v| bytes(&v["offset"]) + bytes(&v["bytes"]) <= figure("planned_bytes")));
    assert!(values.iter().any(|value| !value["in_place_of"].is_null()));
}

#[test]
fn plans_are_the_same_byte_for_byte() {
    let model = tiny("plan_same");
    let text = || minfer(["plan", &model, "--json"]).ok();
    assert_eq!(text(), text());
}

/// A file of 40 GB whose weights are a hole: only its header is read.
#[test]
fn a_huge_file_is_planned_from_its_header() {
    let path = folder("plan_huge").join("huge.gguf");
    let shape = TinyModel {
        n_layer: 80,
        n_embd: 8192,
        n_head: 64,
        n_kv_head: 8,
        head_dim: 128,
        n_ff: 28_672,
        n_ctx_train: 131_072,
        formats: minfer_testkit::Formats::all(minfer_gguf::DType::Q4_K),
        ..TinyModel::new("huge", TinyArch::Llama)
    };
    let len = shape.write_sparse(&path, 40_000_000_000).unwrap();
    let path = path.into_os_string().into_string().unwrap();
    let start = Instant::now();
    let got = plan_json(&[&path, "--n-ctx", "8192", "--memory", "64GiB"]);
    println!("{len} bytes planned in {:?}", start.elapsed());
    assert!(len >= 40_000_000_000);
    assert_eq!(bytes(&got["weights_bytes"]), len);
    assert_eq!(bytes(&got["kv_bytes"]), 80 * 2 * 8192 * 1024 * 2);
    assert_eq!(got["arena"]["optimal"], true);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_no_is_an_answer_and_nothing_is_loaded_after_it() {
    let model = tiny("plan_no");
    let got = plan_json(&[&model, "--cache-type", "f32"]);
    let total = bytes(&got["total_bytes"]);
    let fits = minfer(["plan", &model, "--cache-type", "f32", "--memory", &total.to_string()]).ok();
    assert!(fits.contains("fits, 0.0 MiB to spare"), "{fits}");
    let short = (total - 1).to_string();
    let ran = minfer(["plan", &model, "--cache-type", "f32", "--memory", &short]);
    no(&ran);
    for words in ["does not fit", "largest owners", "--ubatch 256 saves", "; that is enough"] {
        assert!(ran.stdout.contains(words), "`{words}` is not in {ran:?}");
    }
    let ran = minfer(["plan", &model, "--cache-type", "f32", "--memory", &short, "--json"]);
    no(&ran);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["budget"]["fits"], false);
    assert_eq!(json["shortfall"]["owners"].as_array().unwrap().len(), 3);
    for remedy in json["shortfall"]["remedies"].as_array().unwrap() {
        // Each saves what it says.
        let flag: Vec<&str> = remedy["flag"].as_str().unwrap().split(' ').collect();
        let base: &[&str] = if flag[0] == "--cache-type" { &[] } else { &["--cache-type", "f32"] };
        let words: Vec<&str> = [model.as_str()].iter().chain(base).chain(&flag).copied().collect();
        let after = bytes(&plan_json(&words)["total_bytes"]);
        assert_eq!(total - after, bytes(&remedy["saves_bytes"]), "{remedy}");
    }
    // The other commands say it on stderr, and give no answer.
    for command in [
        vec!["run", &model, "hi", "--raw"],
        vec!["bench", &model, "-p", "8", "-n", "8", "-r", "1"],
        vec!["eval", &model, "--ids", "1,2,3"],
    ] {
        let ran = minfer(command.iter().chain(&["--memory", "1MiB"]));
        no(&ran);
        assert_eq!(ran.stdout, "", "{ran:?}");
        assert!(ran.stderr.contains("does not fit") && ran.stderr.contains("nothing was loaded"), "{ran:?}");
        assert!(!ran.stderr.contains("--slots"), "a flag that this command does not have: {ran:?}");
        minfer(command.iter().chain(&["--memory", "64MiB"])).ok();
    }
}

#[test]
fn a_remedy_never_cuts_the_prompt() {
    let model = tiny("plan_prompt");
    let prompt = "the and ".repeat(100);
    let ran = minfer(["run", &model, &prompt, "--raw", "--n-ctx", "512", "--memory", "9MiB"]);
    no(&ran);
    for word in ran.stderr.split_whitespace().collect::<Vec<_>>().windows(2).filter(|pair| pair[0] == "--n-ctx") {
        assert!(word[1].parse::<u64>().unwrap() > 200, "{ran:?}");
    }
}

#[test]
fn more_than_the_machine_has_is_refused_without_being_asked() {
    let path = folder("plan_machine").join("wide.gguf");
    // 2^24 positions × 64 layers × 2 × 512 columns × 4 bytes is 4 TiB.
    let shape =
        TinyModel { n_layer: 64, n_ctx_train: 1 << 24, head_dim: 256, ..TinyModel::new("wide", TinyArch::Llama) };
    shape.write_sparse(&path, 0).unwrap();
    let path = path.into_os_string().into_string().unwrap();
    let wide = ["--n-ctx", "16777216", "--cache-type", "f32", "--ubatch", "8"];
    let ran = minfer(["run", &path, "hi", "--raw"].iter().chain(&wide));
    no(&ran);
    assert!(ran.stderr.contains("needed beside the weights, there are"), "{ran:?}");
    no(&minfer(["plan", &path, "--memory", "auto"].iter().chain(&wide)));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn what_fits_loads_under_the_same_budget() {
    let model = tiny("plan_fit");
    let total = bytes(&plan_json(&[&model, "--n-ctx", "200", "--ubatch", "64"])["total_bytes"]).to_string();
    let got = plan_json(&[&model, "--ubatch", "64", "--fit", "n-ctx", "--memory", &total]);
    let value = bytes(&got["fit"]["value"]);
    // 200 positions take whole blocks of 32: up to 224 cost the same.
    assert_eq!((value, bytes(&got["fit"]["next"]["value"])), (224, 225));
    assert_eq!(got["settings"]["n_ctx"], value);
    assert!(bytes(&got["fit"]["next"]["needed_bytes"]) > bytes(&got["budget"]["bytes"]));
    let run = |n_ctx: u64| {
        let n_ctx = n_ctx.to_string();
        minfer(["run", &model, "hi", "--raw", "-n", "2", "--ubatch", "64", "--n-ctx", &n_ctx, "--memory", &total])
    };
    run(value).ok();
    no(&run(value + 1));
    let text = minfer(["plan", &model, "--ubatch", "64", "--fit", "n-ctx", "--memory", &total]).ok();
    assert!(text.contains("--n-ctx 224 is the most that fits"), "{text}");
    let got = plan_json(&[&model, "--n-ctx", "200", "--fit", "ubatch", "--memory", &total]);
    assert_eq!((&got["fit"]["value"], &got["fit"]["most"]), (&json!(64), &json!(200)));
    let got = plan_json(&[&model, "--n-ctx", "200", "--fit", "ubatch", "--memory", "1GiB"]);
    assert_eq!(got["fit"]["value"], 200, "no batch is longer than all contexts");
    let got = plan_json(&[&model, "--n-ctx", "200", "--ubatch", "64", "--fit", "slots", "--memory", &total]);
    assert_eq!(got["fit"]["value"], 1);
    no(&minfer(["plan", &model, "--fit", "slots", "--memory", "100KiB"]));
    minfer(["plan", &model, "--fit", "n-ctx", "--n-ctx", "5"]).refused(&["--fit n-ctx", "--n-ctx"]);
}

#[test]
fn words_that_are_no_size_are_refused() {
    let model = tiny("plan_words");
    for size in ["2G", "lots", "-1", "1e9", ""] {
        minfer(["plan", &model, &format!("--memory={size}")]).refused(&["--memory", "2GiB"]);
    }
    minfer(["plan", &model, "--n-ctx", "9223372036854775808"]).refused(&["--n-ctx", "16777216"]);
    minfer(["plan", &model, "--n-ctx", "4294967295"]).refused(&["--n-ctx", "16777216"]);
    minfer(["plan", &model, "--slots", "0"]).refused(&["--slots", "1 to 4096"]);
    minfer(["plan"]).refused(&["MODEL"]);
}

#[test]
fn explain_names_the_peak_and_what_settings_change() {
    let model = tiny("plan_explain");
    let text = minfer(["plan", &model, "--explain"]).ok();
    for words in [
        "peak: ",
        "bytes live at step",
        "linear",
        "filled before the first step",
        "the order of the graph is kept",
        "no order needs less",
        "--ubatch 256",
        "--alloc naive",
    ] {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
    // What it says of a setting is what a plan of that setting says.
    let line = text.lines().find(|line| line.starts_with("--n-ctx 256")).unwrap();
    let after = bytes(&plan_json(&[&model, "--n-ctx", "256"])["total_bytes"]) as f64 / f64::from(1 << 20);
    assert!(line.contains(&format!(" {after:.1} MiB")), "{line} {after}");
}

#[test]
fn pictures_are_written_and_never_over_the_model() {
    let model = tiny("plan_picture");
    let (svg, html) = (format!("{model}.svg"), format!("{model}.html"));
    minfer(["plan", &model, "--svg", &svg, "--html", &html]).ok();
    let (svg, html) = (std::fs::read_to_string(svg).unwrap(), std::fs::read_to_string(html).unwrap());
    assert!(svg.starts_with("<svg") && svg.contains("tiny.gguf") && svg.contains("blk.1.attn"), "{svg}");
    assert!(html.contains("naive") && html.contains("pool") && html.contains("tiny.gguf"), "{html}");
    minfer(["plan", &model, "--svg", &model]).refused(&["this is the model"]);
    minfer(["plan", &model, "--html", "/nowhere/at/all.html"]).refused(&["all.html", "cannot write"]);
}

#[test]
fn diff_names_what_changed_and_who_is_to_blame() {
    let dir = folder("plan_diff");
    let model = write(&dir, &TinyModel::new("tiny", TinyArch::Llama));
    let file = |name: &str, flags: &[&str]| {
        let path = dir.join(name).into_os_string().into_string().unwrap();
        std::fs::write(&path, minfer(["plan", &model, "--json"].iter().chain(flags)).ok()).unwrap();
        path
    };
    let (a, same) = (file("a.json", &[]), file("same.json", &[]));
    assert_eq!(minfer(["plan", "--diff", &a, &same]).ok(), "the same plan, byte for byte\n");
    // A file of an earlier version says less, and some of it in other words.
    let mut old: Value = serde_json::from_str(&std::fs::read_to_string(&a).unwrap()).unwrap();
    for field in ["given_order_bytes", "order_is_least"] {
        old["plan"]["arenas"][0].as_object_mut().unwrap().remove(field).unwrap();
    }
    old["settings"].as_object_mut().unwrap().remove("threads").unwrap();
    old["ledger"][0]["detail"] = json!("in other words");
    let path = dir.join("old.json").into_os_string().into_string().unwrap();
    std::fs::write(&path, old.to_string()).unwrap();
    assert_eq!(minfer(["plan", "--diff", &path, &a]).ok(), "the same plan, byte for byte\n");
    let text = minfer(["plan", "--diff", &path, &file("f32.json", &["--cache-type", "f32", "--threads", "1"])]).ok();
    assert!(text.starts_with("cache_type: f16 -> f32\nKV cache, full attention: "), "{text}");
    old["plan"].as_object_mut().unwrap().remove("values").unwrap();
    std::fs::write(&path, old.to_string()).unwrap();
    minfer(["plan", "--diff", &path, &a]).refused(&["old.json", "missing field `values`", "--json"]);
    // A setting may change nothing: no batch is longer than the context.
    let text = minfer(["plan", "--diff", &a, &file("ubatch.json", &["--ubatch", "600"])]).ok();
    assert_eq!(text, "ubatch: 512 -> 600\nthe same plan, byte for byte\n");
    let unfused = file("unfused.json", &["--no-fuse-ffn"]);
    let text = minfer(["plan", "--diff", &a, &unfused]).ok();
    for words in [
        "fusion: all -> --no-fuse-ffn\n",
        "arena cpu: ",
        "peak of cpu: ",
        "to blame: blk.",
        "only in the second plan",
        "moved: ",
    ] {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
    let larger = file("larger.json", &["--ubatch", "256", "--n-ctx", "256"]);
    let text = minfer(["plan", "--diff", &larger, &a]).ok();
    assert!(text.contains("KV cache, full attention: 65536 -> 131072 bytes (+65536)"), "{text}");
    assert!(text.contains("another size: "), "{text}");
    // Numbers of a file may be any: no panic, some answer.
    let text = std::fs::read_to_string(&a).unwrap();
    let mut wild: Value = serde_json::from_str(&text).unwrap();
    for value in wild["plan"]["values"].as_array_mut().unwrap() {
        (value["offset"], value["bytes"], value["live"]) = (json!(u64::MAX), json!(u64::MAX), json!([9, 3]));
    }
    wild["plan"]["values"][0]["live"] = json!([0, u32::MAX]);
    wild["plan"]["arenas"][0]["alignment"] = json!(0);
    wild["ledger"][0]["bytes"] = json!(u64::MAX);
    let path = dir.join("wild.json").into_os_string().into_string().unwrap();
    std::fs::write(&path, wild.to_string()).unwrap();
    minfer(["plan", "--diff", &a, &path]).ok();
    minfer(["plan", "--diff", &path, &a]).ok();
    // Nor do its names steer the terminal.
    wild["ledger"][0]["name"] = json!("\u{1b}[31mred");
    wild["plan"]["values"][0]["name"] = json!("\u{1b}[31mred");
    std::fs::write(&path, wild.to_string()).unwrap();
    let text = minfer(["plan", "--diff", &a, &path]).ok();
    assert!(text.contains("\\u{1b}[31mred") && !text.contains('\u{1b}'), "{text}");
    minfer(["plan", "--diff", &a, &model]).refused(&["tiny.gguf", "--json"]);
    minfer(["plan", "--diff", &a, "missing.json"]).refused(&["missing.json", "cannot read"]);
}

/// The README's example is what the program says, byte for byte.
#[test]
fn the_example_in_the_readme_is_true() {
    let readme = include_str!("../../../README.md");
    let (_, rest) = readme.split_once("```text\n$ minfer ").unwrap();
    let (command, rest) = rest.split_once('\n').unwrap();
    let (expected, _) = rest.split_once("```").unwrap();
    let model = |word: &str| match word.strip_suffix(".gguf") {
        Some(_) => minfer_testkit::model_path(word).display().to_string(),
        None => word.to_owned(),
    };
    let ran = minfer(command.split(' ').map(model));
    no(&ran);
    assert_eq!(ran.stdout, expected);
}
