//! The commands beside `run` on a small model, and the help.

mod support;

use serde_json::{Value, json};
use support::{finish, minfer, minfer_with_stdin, program, tiny};

#[test]
fn tokenize_gives_ids_and_pieces() {
    let model = tiny("tokenize");
    let got = minfer(["tokenize", &model, "--text", "ab the", "--output", "json"]).json();
    let pieces: Vec<&str> = got["pieces"].as_array().unwrap().iter().map(|piece| piece.as_str().unwrap()).collect();
    assert_eq!(pieces, ["a", "b", " the"]);
    let ids: Vec<String> = got["ids"].as_array().unwrap().iter().map(Value::to_string).collect();
    let line = format!("{}\n", ids.join(","));
    assert_eq!(minfer(["tokenize", &model, "--text", "ab the"]).ok(), line);
    assert_eq!(minfer_with_stdin(["tokenize", &model], b"ab the").ok(), line);
    let file = format!("{model}.txt");
    std::fs::write(&file, "ab the").unwrap();
    assert_eq!(minfer(["tokenize", &model, "--file", &file]).ok(), line);
    minfer(["tokenize", &model, "--file", &file, "--text", "x"]).refused(&["--text", "--file"]);
    // Control tokens are text unless asked for.
    let ids_of = |flags: &[&str]| {
        let words = ["tokenize", &model, "--text", "<|im_end|>", "--output", "json"];
        minfer(words.iter().chain(flags)).json()["ids"].as_array().unwrap().len()
    };
    assert!(ids_of(&[]) > 1);
    assert_eq!(ids_of(&["--parse-special"]), 1);
}

#[test]
fn tokenize_adds_what_the_file_says() {
    let dir = support::folder("bos");
    let mut writer = minfer_testkit::TinyModel::new("tiny", minfer_testkit::TinyArch::Llama).writer();
    writer.set("tokenizer.ggml.add_bos_token", true);
    let path = dir.join("bos.gguf").into_os_string().into_string().unwrap();
    writer.write_file(&path).unwrap();
    let pieces = |flags: &[&str]| {
        let words = ["tokenize", &path, "--text", "a", "--output", "json"];
        minfer(words.iter().chain(flags)).json()["pieces"].clone()
    };
    assert_eq!(pieces(&[]), json!(["<|bos|>", "a"]));
    assert_eq!(pieces(&["--no-special"]), json!(["a"]));
}

#[test]
fn eval_scores_what_the_logits_say() {
    let model = tiny("eval");
    let eval = |ids: &str, flags: &[&str]| {
        let words = ["eval", &model, "--ids", ids, "--cache-type", "f32", "--output", "json"];
        minfer(words.iter().chain(flags)).json()
    };
    let ids = [3u32, 70, 70, 9, 200];
    let whole = eval("3,70,70,9,200", &["--top", "320"]);
    assert_eq!(whole["n_tokens"], 5);
    assert_eq!(whole["top"].as_array().unwrap().len(), 320);
    // The mean over prefixes, each asked for its last row alone.
    let mut nll = 0.0;
    for n in 1..ids.len() {
        let prefix = ids[..n].iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let got = eval(&prefix, &["--top", "320"]);
        let top = got["top"].as_array().unwrap();
        let logit = top.iter().find(|pair| pair[0] == ids[n]).unwrap()[1].as_f64().unwrap();
        nll += got["logsumexp"].as_f64().unwrap() - logit;
        assert!(top.windows(2).all(|pair| pair[0][1].as_f64() >= pair[1][1].as_f64()));
    }
    let mean = whole["mean_nll"].as_f64().unwrap();
    assert!((mean - nll / 4.0).abs() < 1e-3, "{mean} {}", nll / 4.0);
    assert!((whole["perplexity"].as_f64().unwrap() - mean.exp()).abs() < 1e-9);
    // One token has nothing to be scored against.
    let one = eval("3", &[]);
    assert_eq!((&one["mean_nll"], &one["perplexity"]), (&Value::Null, &Value::Null));
    assert_eq!(one["top"].as_array().unwrap().len(), 32);
}

#[test]
fn eval_does_not_depend_on_batches_or_placement() {
    let model = tiny("eval_batches");
    let text = "the and in the an is or ing ".repeat(8);
    let eval = |flags: &[&str]| {
        let words = ["eval", &model, "--text", &text, "--backend", "reference", "--output", "json"];
        minfer(words.iter().chain(flags)).json()
    };
    let expected = eval(&[]);
    for flags in [&["--ubatch", "7"][..], &["--ubatch", "1"], &["--poison"], &["--alloc", "naive"], &["--threads", "1"]]
    {
        let got = eval(flags);
        assert_eq!(got["n_tokens"], expected["n_tokens"]);
        for key in ["mean_nll", "logsumexp"] {
            let (got, expected) = (got[key].as_f64().unwrap(), expected[key].as_f64().unwrap());
            assert!((got - expected).abs() < 1e-5, "{flags:?} {key}: {got} {expected}");
        }
    }
    let table = minfer(["eval", &model, "--text", &text]).ok();
    assert!(table.contains("perplexity") && table.contains("probability"), "{table}");
}

#[test]
fn graph_prints_plans() {
    let model = tiny("graph");
    let text = minfer(["graph", &model]).ok();
    assert!(text.contains("@cpu") && text.contains(" live ") && text.contains("lower bound"), "{text}");
    let reference = minfer(["graph", &model, "--backend", "reference", "--kind", "decode"]).ok();
    assert!(reference.contains("@reference"), "{reference}");
    assert!(minfer(["graph", &model, "--output", "dot"]).ok().starts_with("digraph"));
    let json = minfer(["graph", &model, "--output", "json", "--n-ctx", "64", "--tokens", "16"]).json();
    assert_eq!((&json["params"]["n_ctx"], &json["params"]["token_capacity"]), (&json!(64), &json!(16)));
    assert!(json["nodes"][0]["backend"].is_string());
}

#[test]
fn graph_shows_every_pass_and_what_fusion_does() {
    let model = tiny("passes");
    let text = minfer(["graph", &model, "--passes"]).ok();
    for pass in ["as built", "after assign", "after fuse", "after lower", "after transfer", "after verify"] {
        assert!(text.contains(&format!("== {pass}\n")), "{pass}: {text}");
    }
    assert!(text.contains("same as above"), "{text}");
    let n_nodes = |flags: &[&str]| {
        let words = ["graph", &model, "--output", "json"];
        minfer(words.iter().chain(flags)).json()["nodes"].as_array().unwrap().len()
    };
    let fused = n_nodes(&[]);
    assert!(n_nodes(&["--no-fuse-qkv"]) > fused);
    assert!(n_nodes(&["--no-fuse-ffn"]) > fused);
    let by_variable =
        finish(program().args(["graph", &model, "--output", "json"]).env("MINFER_NO_FUSE_FFN", "1")).json();
    assert_eq!(by_variable["nodes"].as_array().unwrap().len(), n_nodes(&["--no-fuse-ffn"]));
}

#[test]
fn inspect_shows_everything() {
    let model = tiny("inspect");
    let text = minfer(["inspect", &model]).ok();
    for words in ["runs       yes", "n_layer", "llama.block_count", "byte-level BPE", "template", "tensors ("] {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
    assert!(text.contains("[string; 320]") && text.lines().all(|line| line.len() < 400), "{text}");
    let with_tensors = minfer(["inspect", &model, "--tensors"]).ok();
    assert!(with_tensors.contains("token_embd.weight") && with_tensors.contains("[320, 64]"), "{with_tensors}");
    let json = minfer(["inspect", &model, "--output", "json"]).json();
    assert_eq!((&json["runs"], &json["hyper_parameters"]["n_head"]), (&json!(true), &json!(4)));
    assert_eq!(json["metadata"]["tokenizer.ggml.tokens"]["len"], 320);
    assert_eq!(json["tensors"][0]["shape"], json!([320, 64]));
    assert_eq!(json["parts"].as_array().unwrap().len(), 1);
    assert!(json["chat_template"].as_str().unwrap().contains("im_start"));
}

#[test]
fn help_is_true() {
    let help = minfer(["--help"]).ok();
    for variable in [
        "MINFER_THREADS",
        "MINFER_SIMD",
        "MINFER_NO_FUSE_QKV",
        "MINFER_NO_FUSE_FFN",
        "MINFER_NO_FUSE_RESIDUAL",
        "MINFER_NO_FUSE_QUANTIZE",
        "MINFER_TRACE",
        "MINFER_GRAPH_DUMP",
    ] {
        assert!(help.contains(variable), "{variable}: {help}");
    }
    for command in ["run", "inspect", "plan", "graph", "tokenize", "template", "bench", "doctor", "eval"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command}: {help}");
        assert!(minfer([command, "--help"]).ok().contains("MODEL"), "{command}");
    }
    assert!(help.contains("Exit codes"));
    let run = minfer(["run", "--help"]).ok();
    for flag in ["--n-ctx", "--temp", "--poison", "--no-fuse-qkv", "--trace", "Ctrl+C", "130"] {
        assert!(run.contains(flag), "{flag}: {run}");
    }
    let plan = minfer(["plan", "--help"]).ok();
    for flag in ["--memory <SIZE>", "--fit <SETTING>", "--explain", "--diff <A.json> <B.json>", "--json", "--slots"] {
        assert!(plan.contains(flag), "{flag}: {plan}");
    }
    assert_eq!(minfer(["--version"]).ok(), format!("minfer {}\n", env!("CARGO_PKG_VERSION")));
    // Nothing at all is a question about usage.
    let none = minfer::<&str>([]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains("Usage"), "{none:?}");
}
