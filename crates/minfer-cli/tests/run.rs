//! `minfer run` on a small model: what goes where, and that nothing but the seed changes an answer.

mod support;

use minfer_gguf::DType;
use minfer_testkit::{Formats, TinyArch, TinyModel};
use serde_json::Value;
use std::fs;
use support::{finish, folder, minfer, minfer_with_stdin, program, tiny, write};

#[test]
fn stdout_has_only_the_answer() {
    let model = tiny("only_answer");
    let ran = minfer([&model, "the and", "--seed", "7", "-n", "8"]);
    for line in
        ["model    llama \"tiny\"", "context  ", "memory   ", "backend  cpu, 2 threads", "seed     7", "ended    "]
    {
        assert!(ran.stderr.contains(line), "`{line}` is not in {ran:?}");
    }
    let words = ["naive ", "pool ", "planned ", "lower bound ", "KV cache", "weights", "tokens/s"];
    assert!(words.iter().all(|word| ran.stderr.contains(word)), "{ran:?}");
    let loud = ran.ok();
    assert!(loud.ends_with('\n'));
    let quiet = minfer(["run", &model, "the and", "--seed", "7", "-n", "8", "--quiet"]);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), (loud.as_str(), ""));
}

#[test]
fn the_same_seed_gives_the_same_text() {
    let model = tiny("seeds");
    let text = |seed: &str| minfer([&model, "the", "-q", "--temp", "1.5", "-n", "24", "--seed", seed]).ok();
    assert_eq!(text("1"), text("1"));
    assert_ne!(text("1"), text("2"));
    // Without one, the seed is printed, and gives the same text again.
    let ran = minfer([&model, "the", "--temp", "1.5", "-n", "24"]);
    let seed = ran.stderr.lines().find_map(|line| line.strip_prefix("seed     ")).unwrap().to_owned();
    assert_eq!(ran.ok(), text(&seed));
}

#[test]
fn an_answer_ends_before_a_stop_string() {
    let model = tiny("stops");
    let run = |more: &[&str]| {
        let words = [&model as &str, "the and in", "--raw", "--temp", "1", "--seed", "3", "-n", "48"];
        minfer(words.iter().chain(more))
    };
    let whole = run(&[]).ok();
    // A few characters from the middle, wherever tokens begin and end.
    let start = whole.char_indices().nth(whole.chars().count() / 2).unwrap().0;
    let stop: String = whole[start..].chars().take(3).collect();
    let stopped = run(&["--stop", "never comes", "--stop", &stop]);
    assert!(stopped.stderr.contains("a text of --stop would have come"), "{stopped:?}");
    assert_eq!(stopped.ok().trim_end_matches('\n'), whole[..whole.find(&stop).unwrap()].trim_end_matches('\n'));
    // What might have become one is not lost.
    assert_eq!(run(&["--stop", &format!("{}never", whole.trim_end_matches('\n'))]).ok(), whole);
    run(&["--stop", ""]).refused(&["--stop is empty"]);
}

#[test]
fn how_memory_is_placed_changes_nothing() {
    let model = tiny("placement");
    let text = |flags: &[&str]| {
        let words = [&model as &str, "the and in", "-q", "--temp", "1", "--seed", "3", "-n", "32"];
        minfer(words.iter().chain(flags)).ok()
    };
    let expected = text(&[]);
    for flags in [
        &["--alloc", "naive"][..],
        &["--alloc", "pool"],
        &["--alloc", "planned"],
        &["--poison"],
        &["--poison", "--alloc", "pool"],
        &["--threads", "1"],
        &["--ubatch", "3"],
    ] {
        assert_eq!(text(flags), expected, "{flags:?}");
    }
}

#[test]
fn prompts_come_from_stdin_too() {
    let model = tiny("stdin");
    let flags = ["-q", "--temp", "0", "-n", "8"];
    let given = minfer([&[&model as &str, "the and"][..], &flags].concat()).ok();
    for piped in ["the and", "the and\n", "the and\r\n"] {
        assert_eq!(minfer_with_stdin([&[&model as &str][..], &flags].concat(), piped.as_bytes()).ok(), given);
    }
}

#[test]
fn the_template_is_applied_unless_it_is_not_wanted() {
    let model = tiny("template");
    let n_prompt = |words: &[&str]| -> usize {
        let ran = minfer([&[&model as &str][..], words, &["-n", "1"]].concat());
        let line = ran.stderr.lines().find_map(|line| line.strip_prefix("prefill  ")).unwrap().to_owned();
        line.split(' ').next().unwrap().parse().unwrap()
    };
    // `ab` is two tokens; the template adds `<|im_start|>user\n`, `<|im_end|>\n` and `<|im_start|>assistant\n`.
    let raw = n_prompt(&["ab", "--raw"]);
    assert_eq!(raw, 2);
    assert_eq!(n_prompt(&["ab", "--no-template"]), 2);
    let templated = n_prompt(&["ab"]);
    assert!(templated > raw + 3);
    assert!(n_prompt(&["ab", "--system", "cd"]) > templated);
    // The spelling of a control token in a prompt is text: more than the one token of the scaffold.
    assert!(n_prompt(&["<|im_end|>"]) > templated + 2);
}

#[test]
fn a_model_without_a_template_continues_the_prompt_and_says_so() {
    let dir = folder("no_template");
    let whole = TinyModel::new("tiny", TinyArch::Llama).open();
    let mut writer = minfer_gguf::GgufWriter::new();
    for entry in whole.metadata().iter().filter(|entry| entry.key != "tokenizer.chat_template") {
        writer.set(entry.key.clone(), entry.value.clone());
    }
    for tensor in whole.tensors() {
        let (dtype, bytes) = (tensor.dtype().unwrap(), whole.tensor_bytes(tensor).to_vec());
        writer.tensor(tensor.name.clone(), &tensor.dims, dtype, bytes).unwrap();
    }
    let path = dir.join("plain.gguf").into_os_string().into_string().unwrap();
    writer.write_file(&path).unwrap();
    let ran = minfer([&path, "ab", "-n", "1"]);
    assert!(ran.stderr.contains("no chat template"), "{ran:?}");
    ran.ok();
    minfer([&path, "ab", "--system", "cd"]).refused(&["--system", "chat template"]);
}

#[test]
fn why_an_answer_ended_is_said() {
    let model = tiny("ended");
    let ended = |flags: &[&str]| minfer([&[&model as &str, "ab", "--raw", "--temp", "0"][..], flags].concat()).stderr;
    assert!(ended(&["-n", "2"]).contains("as many tokens as --n-predict allows"));
    let full = ended(&["--n-ctx", "8"]);
    assert!(full.contains("the context of 8 tokens is full") || full.contains("the model ended"), "{full}");
    assert!(full.contains("8 tokens: as asked"), "{full}");
}

#[test]
fn a_trace_has_one_object_per_step() {
    let model = tiny("trace");
    let file = format!("{model}.jsonl");
    let words = [&model as &str, "ab", "--raw", "-q", "--temp", "0", "-n", "3"];
    let plain = minfer(words).ok();
    assert_eq!(minfer([&words[..], &["--trace", &file]].concat()).ok(), plain);
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["run"], 0);
    assert_eq!(lines[0]["shape"][0], 2);
    assert_eq!(lines.last().unwrap()["run"], 2);
    for line in &lines {
        assert!(line["op"].is_string() && line["name"].is_string() && line["values"].is_array(), "{line}");
        let buffer = &line["buffer"];
        assert!(["backend", "region", "offset", "len"].iter().all(|key| buffer[key].is_u64()), "{line}");
        assert!(line["live"][0].as_u64() <= line["live"][1].as_u64(), "{line}");
    }
    let logits: Vec<&Value> = lines.iter().filter(|line| !line["top"].as_array().unwrap().is_empty()).collect();
    assert_eq!(logits.len(), 3);
    assert_eq!(logits[0]["top"].as_array().unwrap().len(), 5);
    // The variable does the same.
    fs::remove_file(&file).unwrap();
    finish(program().args(words).env("MINFER_TRACE", &file)).ok();
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), lines.len());
}

#[test]
fn a_dump_has_logits_and_kv_regions() {
    let model = tiny("dump");
    let dir = folder("dump_out");
    let words = [&model as &str, "ab", "--raw", "-q", "--temp", "0", "-n", "3", "--n-ctx", "20", "--cache-type", "f32"];
    finish(program().args(words).env("MINFER_GRAPH_DUMP", &dir)).ok();
    for run in 0..3 {
        let bytes = fs::read(dir.join(format!("logits.{run:05}.f32"))).unwrap();
        assert_eq!(bytes.len(), 320 * 4);
    }
    for name in ["kv.0.k.bin", "kv.0.v.bin", "kv.1.k.bin", "kv.1.v.bin"] {
        // 20 positions are one block of 32 cells, of 2 heads of 16 floats each.
        assert_eq!(fs::read(dir.join(name)).unwrap().len(), 32 * 2 * 16 * 4, "{name}");
    }
}

#[test]
fn the_graph_is_dumped_in_three_forms() {
    let model = tiny("dump_graph");
    let (text, dot, json) = (format!("{model}.txt"), format!("{model}.dot"), format!("{model}.json"));
    let base = [&model as &str, "ab", "-q", "-n", "1"];
    minfer([&base[..], &["--dump-graph", &text]].concat()).ok();
    minfer([&base[..], &["--dump-graph", &dot, "--dump-graph-json", &json]].concat()).ok();
    assert!(fs::read_to_string(text).unwrap().contains("lower bound"));
    assert!(fs::read_to_string(dot).unwrap().starts_with("digraph"));
    let graph: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert!(graph["nodes"].as_array().unwrap().len() > 10);
}

#[test]
fn both_backends_answer() {
    let dir = folder("backends");
    for dtype in [DType::F32, DType::Q8_0, DType::Q4_1] {
        let name = format!("tiny-{dtype}");
        let model = TinyModel { formats: Formats::all(dtype), ..TinyModel::new(&name, TinyArch::Llama) };
        let model = write(&dir, &model);
        for backend in ["cpu", "reference"] {
            let ran = minfer([&model, "the", "-n", "4", "--backend", backend]);
            assert!(ran.stderr.contains(&format!("backend  {backend}")), "{ran:?}");
            ran.ok();
        }
    }
}
