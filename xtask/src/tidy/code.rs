//! Rules on code: where `unsafe` and the environment may be used, and nothing left undone.
//!
//! Takes the files; gives problems. Must not know the crates' edges.

use super::Report;
use super::source::Source;
use super::tree::{SourceFile, Tree};

const UNSAFE_ALLOWED: [&str; 3] = ["crates/minfer-gguf/", "crates/minfer-cpu/", "crates/minfer-gpu/"];
/// The testkit is test code as a whole.
const ENVIRONMENT_ALLOWED: [&str; 4] = ["crates/minfer-cli/", "crates/minfer-testkit/", "xtask/", "tests/"];
/// In two pieces, so that this file does not break its own rule.
const LEFT_UNDONE: &str = concat!("FIX", "ME");

/// All rules of this module.
pub fn check(tree: &Tree, report: &mut Report) {
    for file in &tree.files {
        match &file.source {
            Ok(source) => check_file(file, source, report),
            Err(error) => report.problem(format!("{}: {error}", file.path)),
        }
    }
}

fn check_file(file: &SourceFile, source: &Source, report: &mut Report) {
    let path = &file.path;
    let under = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    if !under(&UNSAFE_ALLOWED) {
        for token in source.find(&["unsafe"]) {
            report.problem(format!("{path}:{}: `unsafe` is for minfer-gguf, minfer-cpu and minfer-gpu", token.line));
        }
    }
    if !under(&ENVIRONMENT_ALLOWED) && !is_test_file(path) {
        for line in environment_reads(source) {
            report
                .problem(format!("{path}:{line}: reads the environment; only minfer-cli does, libraries take values"));
        }
    }
    for words in [&["todo", "!"], &["unimplemented", "!"]] {
        for token in source.find(words) {
            report.problem(format!("{path}:{}: `{}!`", token.line, words[0]));
        }
    }
    for token in source.find(&["#", "[", "ignore"]) {
        report.problem(format!("{path}:{}: `#[ignore]`: a test runs, or it goes", token.line));
    }
    for (i, _) in file.text.lines().enumerate().filter(|(_, line)| line.contains(LEFT_UNDONE)) {
        report.problem(format!("{path}:{}: `{LEFT_UNDONE}`: do it, or file an issue", i + 1));
    }
}

/// Lines that read `env::var*`, outside test code.
fn environment_reads(source: &Source) -> Vec<usize> {
    const READS: [&str; 4] = ["var", "var_os", "vars", "vars_os"];
    let mut lines = Vec::new();
    for (i, window) in source.tokens.windows(4).enumerate() {
        let [env, colon, colon_too, what] = window else {
            continue;
        };
        if env.text != "env" || colon.text != ":" || colon_too.text != ":" || env.in_test {
            continue;
        }
        let mut named = source.tokens[i + 3..].iter();
        let reads = if what.text == "{" {
            named.take_while(|token| token.text != "}").any(|token| READS.contains(&token.text.as_str()))
        } else {
            named.next().is_some_and(|token| READS.contains(&token.text.as_str()))
        };
        if reads {
            lines.push(env.line);
        }
    }
    lines
}

/// A file that holds tests only.
fn is_test_file(path: &str) -> bool {
    let mut parts = path.split('/').rev();
    let stem = parts.next().unwrap_or_default().trim_end_matches(".rs");
    stem == "tests" || stem.ends_with("_tests") || parts.any(|folder| folder == "tests" || folder == "benches")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        let mut report = Report::default();
        check(&Tree { files: vec![SourceFile::new(path, text)], ..Tree::default() }, &mut report);
        report.problems
    }

    #[test]
    fn unsafe_fails_outside_its_crates() {
        let text = "//! x\nfn f() { unsafe { g() } }";
        assert!(problems("crates/minfer-plan/src/lib.rs", text)[0].contains("lib.rs:2: `unsafe`"));
        assert!(problems("crates/minfer-cpu/src/lib.rs", text).is_empty());
    }

    #[test]
    fn reading_the_environment_fails_outside_the_binary() {
        let path = "crates/minfer-engine/src/lib.rs";
        for text in ["fn f() { std::env::var(\"X\"); }", "use std::env::{args, var_os};", "fn f() { env::vars(); }"] {
            assert!(problems(path, text)[0].contains("reads the environment"), "{text}");
            assert!(problems("crates/minfer-cli/src/env.rs", text).is_empty());
            assert!(problems("crates/minfer-engine/tests/real.rs", text).is_empty());
        }
        assert!(problems(path, "#[cfg(test)] mod tests { fn f() { std::env::var(\"X\"); } }").is_empty());
        assert!(problems(path, "use std::env::{args, current_dir}; fn f() { env::temp_dir(); }").is_empty());
    }

    #[test]
    fn work_left_undone_fails() {
        let path = "crates/minfer/src/lib.rs";
        assert!(problems(path, "fn f() { todo!() }")[0].contains("`todo!`"));
        assert!(problems(path, "fn f() { unimplemented!(\"x\") }")[0].contains("`unimplemented!`"));
        assert!(problems(path, "#[test]\n#[ignore = \"slow\"]\nfn f() {}")[0].contains("lib.rs:2"));
        assert!(problems(path, &format!("fn f() {{}} // {LEFT_UNDONE}"))[0].contains(LEFT_UNDONE));
        assert!(problems(path, "// todo!\nfn f() { let _ = \"#[ignore]\"; }").is_empty());
    }

    #[test]
    fn a_file_that_does_not_lex_fails() {
        assert!(problems("crates/minfer/src/lib.rs", "fn f() {")[0].contains("does not lex"));
    }
}
