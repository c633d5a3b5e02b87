//! No option that writes a file writes over one that the same command reads, by whatever name.

mod support;

use minfer_testkit::{TinyArch, TinyModel};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use support::{Ran, finish, folder, minfer, program};

/// A split model, and a file of every kind that a command reads.
struct Bench {
    dir: PathBuf,
    parts: Vec<String>,
}

impl Bench {
    fn new(name: &str) -> Self {
        let dir = folder(name);
        let parts = TinyModel::new("tiny", TinyArch::Llama).writer().write_parts(&dir, "tiny", 2).unwrap();
        Self { dir, parts: parts.into_iter().map(|part| part.into_os_string().into_string().unwrap()).collect() }
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir.join(name);
        fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    }
}

/// The same file under other names.
fn names(path: &str) -> Vec<String> {
    let dir = Path::new(path).parent().unwrap().to_str().unwrap();
    let name = Path::new(path).file_name().unwrap().to_str().unwrap();
    let links = format!("{dir}/links");
    let _ = fs::remove_dir_all(&links);
    fs::create_dir(&links).unwrap();
    let mut names = vec![path.to_owned(), format!("{dir}/./{name}"), format!("{links}/../{name}")];
    names.push(format!("{links}/hard"));
    fs::hard_link(path, format!("{links}/hard")).unwrap();
    #[cfg(unix)]
    {
        names.push(format!("{links}/soft"));
        std::os::unix::fs::symlink(path, format!("{links}/soft")).unwrap();
    }
    names
}

/// Runs with the file's every name; each must be refused for this reason, and the file stay as it is.
fn refuses(file: &str, reason: &str, run: impl Fn(&str) -> Ran) {
    let before = fs::read(file).unwrap();
    for name in names(file) {
        run(&name).refused(&[&name, reason, "will not be overwritten", "hint: "]);
        assert_eq!(fs::read(file).unwrap(), before, "{name}");
    }
}

const OF_RUN: [&str; 3] = ["--trace", "--dump-graph", "--dump-graph-json"];

#[test]
fn the_model_is_kept() {
    let bench = Bench::new("kept_model");
    let model = &bench.parts[0];
    for part in &bench.parts {
        for flag in OF_RUN {
            refuses(part, "this is the model", |name| minfer([model, "hi", "--raw", flag, name]));
        }
        for flag in ["--svg", "--html"] {
            refuses(part, "this is the model", |name| minfer(["plan", model, flag, name]));
        }
        refuses(part, "this is the model", |name| minfer(["bench", model, "-p", "1", "-n", "1", "--svg", name]));
        refuses(part, "this is the model", |name| minfer(["eval", model, "--ids", "1,2", "--trace", name]));
        refuses(part, "this is the model", |name| {
            finish(program().args([model, "hi", "--raw"]).env("MINFER_TRACE", name))
        });
    }
}

#[test]
fn texts_and_templates_are_kept() {
    let bench = Bench::new("kept_texts");
    let model = &bench.parts[0];
    let template = bench.file("template.jinja", "{{ messages[0].content }}");
    let text = bench.file("text.txt", "the and");
    for flag in OF_RUN {
        refuses(&template, "this is the chat template", |name| {
            minfer([model, "hi", "--chat-template", &template, flag, name])
        });
        refuses(&text, "this is the prompt", |name| {
            finish(program().args([model, "--raw", flag, name]).stdin(File::open(&text).unwrap()))
        });
    }
    refuses(&text, "this is the text", |name| minfer(["eval", model, "--file", &text, "--trace", name]));
}

#[test]
fn problems_are_kept() {
    let bench = Bench::new("kept_problems");
    let problem = bench.file("problem.csv", "id,lower,upper,size\na,0,1,4\n");
    refuses(&problem, "this is the problem", |name| minfer(["memplan", "render", &problem, "-o", name]));
    refuses(&problem, "this is the problem", |name| {
        finish(program().args(["memplan", "render", "-", "-o", name]).stdin(File::open(&problem).unwrap()))
    });
}

/// Also the files whose names the program makes.
#[test]
fn what_lies_in_the_folder_for_dumps_is_kept() {
    let bench = Bench::new("kept_in_folder");
    let model = &bench.parts[0];
    for name in ["logits.00000.f32", "kv.0.k.bin"] {
        let text = bench.file(name, "the and");
        let mut command = program();
        command.args(["eval", model, "--file", &text]).env("MINFER_GRAPH_DUMP", &bench.dir);
        finish(&mut command).refused(&[name, "this is the text"]);
        assert_eq!(fs::read_to_string(&text).unwrap(), "the and");
        fs::remove_file(text).unwrap();
    }
}

/// Nor is one output lost to another.
#[test]
fn two_outputs_in_one_file_are_refused() {
    let bench = Bench::new("kept_outputs");
    let (model, out) = (&bench.parts[0], bench.dir.join("out").into_os_string().into_string().unwrap());
    minfer(["plan", model, "--svg", &out, "--html", &out]).refused(&["this is another output"]);
    minfer([model, "hi", "--raw", "--trace", &out, "--dump-graph", &out]).refused(&["this is another output"]);
}

/// What holds nothing may be named twice.
#[test]
#[cfg(unix)]
fn devices_are_read_and_written() {
    let bench = Bench::new("kept_devices");
    minfer([&bench.parts[0], "hi", "--raw", "-n", "1", "--trace", "/dev/null", "--dump-graph", "/dev/null"]).ok();
    minfer(["plan", &bench.parts[0], "--svg", "/dev/null", "--html", "/dev/null"]).ok();
}

/// The answer and a picture do not overwrite each other, nor is one put into the middle of the other.
#[test]
#[cfg(unix)]
fn where_the_answer_goes_nothing_else_does() {
    let bench = Bench::new("kept_answer");
    let (model, out) = (&bench.parts[0], bench.file("answer.txt", "before"));
    let append = || File::options().append(true).open(&out).unwrap();
    for name in ["/dev/stdout", "/dev/fd/1", &out] {
        let output = program().args(["plan", model, "--svg", name]).stdout(append()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(2) && stderr.contains("this is where the answer goes"),
            "{name}: {stderr}"
        );
        assert_eq!(fs::read_to_string(&out).unwrap(), "before", "{name}");
    }
    minfer(["plan", model, "--svg", "/dev/stdout"]).refused(&["/dev/stdout", "this is where the answer goes"]);
    minfer([model, "hi", "--raw", "--trace", "/dev/stdout"]).refused(&["this is where the answer goes"]);
    // What holds nothing may be both.
    let null = || File::options().write(true).open("/dev/null").unwrap();
    let status = program().args(["plan", model, "--svg", "/dev/null"]).stdout(null()).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

/// What a file held stays until there is something to write, and what is not written does not appear.
#[test]
#[cfg(target_os = "linux")]
fn what_fails_leaves_files_as_they_were() {
    let bench = Bench::new("kept_until_written");
    let (model, old) = (&bench.parts[0], bench.file("old.svg", "before"));
    let new = bench.dir.join("new.svg").into_os_string().into_string().unwrap();
    for name in [&old, &new] {
        // Refused by its budget.
        let words = ["bench", model, "-p", "1", "-n", "1", "-r", "1", "--memory", "1MiB", "--svg", name];
        assert_eq!(minfer(words).code, Some(1));
        assert_eq!(fs::read_to_string(&old).unwrap(), "before");
        assert!(!Path::new(&new).exists());
    }
    minfer(["bench", model, "-p", "1", "-n", "1", "-r", "1", "--svg", &old]).ok();
    assert!(fs::read_to_string(&old).unwrap().starts_with("<svg"));
}
