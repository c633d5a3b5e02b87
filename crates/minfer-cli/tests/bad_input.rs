//! Everything a user can get wrong: each one clear sentence, exit code 2, nothing on stdout, no panic.

mod support;

use minfer_testkit::{TinyArch, TinyModel};
use std::fs;
use std::process::Stdio;
use support::{finish, folder, minfer, minfer_with_stdin, program, tiny, write};

fn commands(model: &str) -> [Vec<&str>; 7] {
    [
        vec!["run", model, "hi"],
        vec!["inspect", model],
        vec!["graph", model],
        vec!["plan", model],
        vec!["tokenize", model, "--text", "hi"],
        vec!["bench", model, "-p", "1", "-n", "1", "-r", "1"],
        vec!["eval", model, "--ids", "1,2"],
    ]
}

#[test]
fn files_that_are_no_models() {
    let dir = folder("no_models");
    let file = |name: &str, bytes: &[u8]| {
        fs::write(dir.join(name), bytes).unwrap();
        dir.join(name).into_os_string().into_string().unwrap()
    };
    let whole = TinyModel::new("tiny", TinyArch::Llama).to_bytes();
    let missing = dir.join("missing.gguf").into_os_string().into_string().unwrap();
    let directory = dir.clone().into_os_string().into_string().unwrap();
    for (path, words) in [
        (missing, ["missing.gguf", "no such file"]),
        (directory, ["directory", ".gguf file inside"]),
        (file("text.gguf", b"These are words.\n"), ["text.gguf", "text file"]),
        (file("empty.gguf", b""), ["empty.gguf", "empty"]),
        (file("head.gguf", &whole[..100]), ["head.gguf", "truncated"]),
        (file("cut.gguf", &whole[..whole.len() - 4000]), ["cut.gguf", "truncated"]),
    ] {
        for command in commands(&path) {
            minfer(command).refused(&words);
        }
    }
}

/// All weights NaN.
#[test]
fn weights_that_are_no_numbers() {
    let dir = folder("no_numbers");
    let mut bytes = TinyModel::new("tiny", TinyArch::Llama).to_bytes();
    let n_weights = bytes.len() / 2;
    let start = bytes.len() - n_weights;
    bytes[start..].fill(0xFF);
    let path = dir.join("nan.gguf").into_os_string().into_string().unwrap();
    fs::write(&path, bytes).unwrap();
    minfer(["eval", &path, "--ids", "1,2,3"]).refused(&["no numbers", "damaged"]);
    minfer(["run", &path, "a", "--raw", "-n", "2", "-q"]).refused(&["no numbers", "damaged"]);
}

#[test]
fn words_that_are_no_command() {
    minfer(["inspct", "m.gguf"]).refused(&["inspct", "no such file", "hint: ", "minfer --help"]);
}

#[test]
fn models_that_are_not_supported() {
    let dir = folder("not_supported");
    let model = TinyModel { tied: true, n_embd: 256, head_dim: 64, ..TinyModel::new("tiny", TinyArch::Llama) };
    let path = |name: &str| dir.join(name).into_os_string().into_string().unwrap();

    let mut writer = model.writer();
    writer.set("general.architecture", "mamba");
    writer.write_file(path("mamba.gguf")).unwrap();
    // IQ2_XXS: 66 bytes for 256 values.
    let mut writer = model.writer();
    writer.tensor_unchecked("output.weight", &[256, 320], 16, vec![0; 320 * 66]);
    writer.write_file(path("iq2.gguf")).unwrap();

    for (name, words) in [("mamba.gguf", ["mamba", "llama"]), ("iq2.gguf", ["IQ2_XXS", "output.weight"])] {
        let path = path(name);
        for command in [vec!["run", &path, "hi"], vec!["graph", &path], vec!["eval", &path, "--ids", "1"]] {
            minfer(command).refused(&words);
        }
        // It can still be looked at, and its vocabulary used.
        let inspected = minfer(["inspect", &path]).ok();
        assert!(inspected.contains("no: ") && inspected.contains(words[0]), "{inspected}");
        let inspected = minfer(["inspect", &path, "--output", "json"]).json();
        assert_eq!(inspected["runs"], false);
        assert!(inspected["problem"].as_str().unwrap().contains(words[0]));
        minfer(["tokenize", &path, "--text", "hi"]).ok();
    }
}

#[test]
fn vocabularies_are_tokenised_but_not_run() {
    let dir = folder("vocabulary");
    let whole = TinyModel::new("tiny", TinyArch::Llama).open();
    let mut writer = minfer_gguf::GgufWriter::new();
    for entry in whole.metadata() {
        if entry.key != "general.type" {
            writer.set(entry.key.clone(), entry.value.clone());
        }
    }
    let path = dir.join("vocab.gguf").into_os_string().into_string().unwrap();
    writer.write_file(&path).unwrap();
    minfer(["tokenize", &path, "--text", "the and"]).ok();
    assert!(minfer(["inspect", &path]).ok().contains("only a vocabulary"));
    for command in [vec!["run", &path, "hi"], vec!["graph", &path], vec!["bench", &path]] {
        minfer(command).refused(&["vocabulary", "no weights"]);
    }
}

#[test]
fn numbers_out_of_range() {
    let model = tiny("numbers");
    for (flags, words) in [
        (vec!["--threads", "0"], ["--threads is 0", "1 to 1024"]),
        (vec!["--temp", "-1"], ["--temp is -1", "0 or more"]),
        (vec!["--top-p", "2"], ["--top-p is 2", "at most 1"]),
        (vec!["--min-p", "-1"], ["--min-p is -1", "0 to 1"]),
        (vec!["--top-k", "-1"], ["--top-k is -1", "0 to"]),
        (vec!["--repeat-penalty", "0"], ["--repeat-penalty is 0", "above 0"]),
        (vec!["--n-ctx", "1099511627776"], ["--n-ctx is 1099511627776", "1 to 16777216"]),
        (vec!["--n-ctx", "0"], ["--n-ctx is 0", "1 to"]),
        (vec!["--n-predict", "0"], ["--n-predict is 0", "1 to"]),
        (vec!["--ubatch", "0"], ["--ubatch is 0", "1 to"]),
        (vec!["--threads", "two"], ["two", "--threads"]),
        (vec!["--temp", "warm"], ["warm", "--temp"]),
        (vec!["--cache-type", "f8"], ["f8", "f16"]),
        (vec!["--alloc", "best"], ["best", "planned"]),
        (vec!["--backend", "tpu"], ["tpu", "reference"]),
        (vec!["--frobnicate"], ["--frobnicate", "unexpected"]),
    ] {
        minfer([vec![&model, "hi"], flags].concat()).refused(&words);
    }
}

#[test]
fn token_ids() {
    let model = tiny("token_ids");
    minfer(["eval", &model, "--ids", "1,320"]).refused(&["320", "outside the vocabulary"]);
    minfer(["eval", &model, "--ids", "1,-2"]).refused(&["-2", "token ids"]);
    minfer(["eval", &model, "--ids", "one"]).refused(&["one", "token ids"]);
    minfer(["eval", &model, "--ids", "99999999999"]).refused(&["99999999999", "token ids"]);
    minfer(["eval", &model, "--ids", ""]).refused(&["--ids", "empty"]);
    minfer(["eval", &model]).refused(&["--ids", "--text"]);
    minfer(["eval", &model, "--text", ""]).refused(&["empty"]);
}

#[test]
fn prompts() {
    let model = tiny("prompts");
    minfer([&model, ""]).refused(&["empty", "hint: "]);
    minfer_with_stdin([&model], b"").refused(&["empty"]);
    minfer_with_stdin([&model], b"\n").refused(&["empty"]);
    minfer_with_stdin([&model], b"\xff\xfe").refused(&["stdin", "UTF-8"]);
    let long = "word ".repeat(40);
    minfer([&model, &long, "--raw", "--n-ctx", "16"]).refused(&["tokens", "16", "hint: --n-ctx "]);
    // The model was trained for 512.
    let longer = "word ".repeat(600);
    minfer([&model, &longer]).refused(&["512", "shorten the prompt"]);
}

/// More positions than the model was trained for.
#[test]
fn more_than_the_model_was_trained_for() {
    let model = tiny("trained_for");
    let ids = vec!["1"; 600].join(",");
    minfer(["eval", &model, "--ids", &ids]).refused(&["600", "512"]);
    minfer(["bench", &model, "-p", "1000000"]).refused(&["1000064", "512"]);
}

/// A model's own words do not steer the terminal.
#[test]
fn control_characters_are_spelled() {
    let dir = folder("control");
    let path = dir.join("model.gguf").into_os_string().into_string().unwrap();
    let mut writer = TinyModel::new("tiny", TinyArch::Llama).writer();
    writer.set("tokenizer.chat_template", "{{ raise_exception('\x1b[31mred') }}");
    writer.write_file(&path).unwrap();
    minfer([path.as_str(), "hi"]).refused(&["\\u{1b}[31mred"]);
}

#[test]
fn templates_that_fail() {
    let dir = folder("templates");
    let mut writer = TinyModel::new("tiny", TinyArch::Llama).writer();
    let path = |name: &str| dir.join(name).into_os_string().into_string().unwrap();
    writer.set("tokenizer.chat_template", "{{ raise_exception('only poems, please') }}");
    writer.write_file(path("refuses.gguf")).unwrap();
    writer.set("tokenizer.chat_template", "{% for m in messages %}");
    writer.write_file(path("broken.gguf")).unwrap();
    minfer([path("refuses.gguf").as_str(), "hi"]).refused(&["only poems, please", "--raw"]);
    minfer([path("broken.gguf").as_str(), "hi"]).refused(&["chat template", "--raw"]);
    minfer([path("broken.gguf").as_str(), "hi", "--raw", "-n", "1"]).ok();
}

#[test]
fn environment() {
    let model = tiny("environment");
    for (name, value) in [("MINFER_NO_FUSE_QKV", "yes"), ("MINFER_NO_FUSE_FFN", "2"), ("MINFER_SIMD", "sse9")] {
        finish(program().args([&model, "hi"]).env(name, value)).refused(&[name, value, "expected", "hint: "]);
    }
    finish(program().args([&model, "hi"]).env("MINFER_THREADS", "0")).refused(&["MINFER_THREADS is 0"]);
    let ran = finish(program().args([&model, "hi", "-q", "-n", "1"]).env("MINFER_NO_SUCH", "1"));
    assert!(ran.stderr.starts_with("warning: MINFER_NO_SUCH"), "{ran:?}");
    ran.ok();
    let ran = finish(program().args([&model, "hi", "-q", "-n", "1"]).env("MINFER_MODELS", "x"));
    assert_eq!(ran.stderr, "");
}

#[test]
fn outputs_that_cannot_be_written() {
    let model = tiny("outputs");
    let before = fs::read(&model).unwrap();
    for flag in ["--trace", "--dump-graph", "--dump-graph-json"] {
        minfer([&model, "hi", flag, "/no/such/folder/out"]).refused(&["/no/such/folder/out", "cannot write"]);
        minfer([&model, "hi", flag, &model]).refused(&["this is the model"]);
    }
    assert_eq!(fs::read(&model).unwrap(), before);
    let dump = format!("{model}/folder");
    finish(program().args([&model, "hi"]).env("MINFER_GRAPH_DUMP", &dump)).refused(&[&dump, "cannot make"]);
}

#[test]
fn more_threads_than_processors_is_a_warning() {
    let model = tiny("threads");
    let ran = minfer([&model, "hi", "--threads", "1000", "-n", "1", "--backend", "reference"]);
    assert!(ran.stderr.contains("warning: 1000 threads"), "{ran:?}");
    ran.ok();
}

#[test]
fn a_closed_pipe_is_silent() {
    let model = tiny("pipe");
    for words in [vec![&model as &str, "hi", "-q"], vec!["inspect", &model], vec!["graph", &model]] {
        let mut child = program().args(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{words:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_a_failure() {
    let model = tiny("full");
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    for words in [vec![&model as &str, "hi", "-q"], vec!["inspect", &model]] {
        let output = program().args(&words).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with("error: cannot write to stdout"), "{words:?}: {stderr}");
    }
    // A trace that fails in the middle ends the run.
    let ran = minfer([&model, "hi", "-q", "--trace", "/dev/full"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("/dev/full: cannot write"), "{ran:?}");
}

#[test]
#[cfg(unix)]
fn words_that_are_not_utf8() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let dir = folder("not_utf8");
    let model = write(&dir, &TinyModel::new("tiny", TinyArch::Llama));
    let odd = OsString::from_vec(b"\xff\xfeodd".to_vec());
    let word = |word: &str| OsString::from(word);
    minfer([word("run"), word(&model), odd.clone()]).refused(&["the prompt is not valid UTF-8"]);
    minfer([word("tokenize"), word(&model), word("--text"), odd.clone()]).refused(&["--text is not valid UTF-8"]);
    // Paths may be.
    let path = dir.join(&odd);
    fs::copy(&model, &path).unwrap();
    minfer([word("inspect"), path.into_os_string()]).ok();
}
