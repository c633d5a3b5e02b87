//! The program and small models for tests of the whole. Takes words; gives exit code, stdout and stderr.
#![allow(dead_code)] // Every test file is a program of its own and uses a part.

use minfer_testkit::{TinyArch, TinyModel};
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run of the program left.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Fails unless the program succeeded; gives what it printed.
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// The same, parsed.
    pub fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// Fails unless the program refused: exit code 2, nothing on stdout, and on stderr one sentence with these words and
    /// perhaps a hint.
    pub fn refused(self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not in {self:?}");
        }
        let lines: Vec<&str> = self.stderr.lines().collect();
        let is_ours = lines[0].starts_with("error: ") && lines.len() <= 2;
        let is_clap = lines[0].starts_with("error: ") && self.stderr.contains("--help");
        assert!(is_ours || is_clap, "{self:?}");
    }
}

/// The program, in an environment without our variables and with nothing on stdin.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minfer"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MINFER_") {
            command.env_remove(name);
        }
    }
    command.env("MINFER_THREADS", "2").stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub fn finish(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs the program with these words.
pub fn minfer<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Ran {
    finish(program().args(words))
}

/// Runs the program with these words and bytes on stdin.
pub fn minfer_with_stdin<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>, stdin: &[u8]) -> Ran {
    let mut command = program();
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that fails early does not read it.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A new, empty folder for one test.
pub fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A small Llama with a chat template, in a folder of its own.
pub fn tiny(test: &str) -> String {
    write(&folder(test), &TinyModel::new("tiny", TinyArch::Llama))
}

/// Writes a model into a folder.
pub fn write(dir: &Path, model: &TinyModel) -> String {
    let path = dir.join(format!("{}.gguf", model.name));
    std::fs::write(&path, model.to_bytes()).unwrap();
    path.into_os_string().into_string().unwrap()
}
