//! Rules on files: length, opening line, names, and that each is part of a crate.
//!
//! Takes the files and packages; gives problems. Must not look at what code does.

use std::collections::{BTreeMap, BTreeSet};

use super::Report;
use super::source::FileRef;
use super::tree::{SourceFile, Tree};

const HARD_CAP_LINES: usize = 800;
const SOFT_CAP_LINES: usize = 400;
const NAMES_THAT_SAY_NOTHING: [&str; 4] = ["utils", "common", "helpers", "manager"];

/// All rules of this module.
pub fn check(tree: &Tree, report: &mut Report) {
    for file in &tree.files {
        check_length(file, report);
        check_opening(file, report);
        check_module_names(file, report);
    }
    for package in &tree.packages {
        if package.name.split('-').any(|part| NAMES_THAT_SAY_NOTHING.contains(&part)) {
            report.problem(format!("{}: a crate name that says nothing", package.name));
        }
    }
    check_orphans(tree, report);
}

fn check_length(file: &SourceFile, report: &mut Report) {
    let n_lines = file.text.lines().count();
    if n_lines > HARD_CAP_LINES {
        report.problem(format!("{}: {n_lines} lines, the cap is {HARD_CAP_LINES}", file.path));
    } else if n_lines > SOFT_CAP_LINES {
        report.note(format!("{}: {n_lines} lines, over the soft cap of {SOFT_CAP_LINES}", file.path));
    }
}

fn check_opening(file: &SourceFile, report: &mut Report) {
    let first = file.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    if !first.starts_with("//!") && !first.starts_with("// @generated") {
        report.problem(format!("{}: does not open with `//!`: what it takes, gives, must not know", file.path));
    }
}

fn check_module_names(file: &SourceFile, report: &mut Report) {
    let Ok(source) = &file.source else { return };
    for (name, line) in source.modules.iter().filter(|(name, _)| NAMES_THAT_SAY_NOTHING.contains(&name.as_str())) {
        report.problem(format!("{}:{line}: `mod {name}`: a name that says nothing", file.path));
    }
}

/// Every file is a target's root or reached from one by `mod` or `include!`.
fn check_orphans(tree: &Tree, report: &mut Report) {
    let by_path: BTreeMap<&str, &SourceFile> = tree.files.iter().map(|file| (file.path.as_str(), file)).collect();
    let roots = tree.packages.iter().flat_map(|package| &package.roots);
    let mut open: Vec<(String, bool)> = roots.map(|root| (root.clone(), true)).collect();
    let mut reached = BTreeSet::new();
    while let Some((path, is_root)) = open.pop() {
        let Some(file) = by_path.get(path.as_str()) else {
            continue;
        };
        if !reached.insert(path.clone()) {
            continue;
        }
        let Ok(source) = &file.source else { continue };
        for file_ref in &source.file_refs {
            open.extend(candidates(&path, is_root, file_ref).into_iter().map(|path| (path, false)));
        }
    }
    for file in tree.files.iter().filter(|file| !reached.contains(&file.path)) {
        report.problem(format!("{}: orphan, no `mod` reaches it", file.path));
    }
}

/// Where the file that `file_ref` in `path` names may lie.
fn candidates(path: &str, is_root: bool, file_ref: &FileRef) -> Vec<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.trim_end_matches(".rs");
    let owns_folder = is_root || stem == "mod";
    let mut below: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    if let Some(explicit) = &file_ref.path {
        // Relative to the file itself; inside inline modules, to their folder.
        if !file_ref.inline.is_empty() {
            below.extend((!owns_folder).then_some(stem));
            below.extend(file_ref.inline.iter().map(String::as_str));
        }
        below.extend(explicit.split('/'));
        return vec![normal(&below)];
    }
    below.extend((!owns_folder).then_some(stem));
    below.extend(file_ref.inline.iter().map(String::as_str));
    let name = file_ref.name.as_deref().unwrap_or_default();
    let folder = normal(&below);
    vec![format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")]
}

/// Joins path parts, resolving `.` and `..`.
fn normal(parts: &[&str]) -> String {
    let mut done: Vec<&str> = Vec::new();
    for part in parts {
        match *part {
            "." => {}
            ".." => {
                done.pop();
            }
            part => done.push(part),
        }
    }
    done.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::tree::Package;
    use super::*;

    fn report(files: &[(&str, &str)], roots: &[&str]) -> Report {
        let roots = roots.iter().map(|root| root.to_string()).collect();
        let tree = Tree {
            files: files.iter().map(|(path, text)| SourceFile::new(path, text)).collect(),
            packages: vec![Package { name: "c".into(), roots, ..Package::default() }],
            ..Tree::default()
        };
        let mut report = Report::default();
        check(&tree, &mut report);
        report
    }

    fn problems_of(text: &str) -> Vec<String> {
        report(&[("c/src/lib.rs", text)], &["c/src/lib.rs"]).problems
    }

    #[test]
    fn a_long_file_fails() {
        let lines = |n: usize| format!("//! x\n{}", "\n".repeat(n - 1));
        assert!(problems_of(&lines(801))[0].contains("801 lines"));
        assert!(problems_of(&lines(800)).is_empty());
        let noted = report(&[("c/src/lib.rs", &lines(401))], &["c/src/lib.rs"]);
        assert!(noted.problems.is_empty() && noted.notes[0].contains("401 lines"));
    }

    #[test]
    fn a_file_without_opening_fails() {
        assert!(problems_of("fn f() {}")[0].contains("does not open"));
        assert!(problems_of("\n//! x\nfn f() {}").is_empty());
        assert!(problems_of("// @generated\nfn f() {}").is_empty());
    }

    #[test]
    fn a_name_that_says_nothing_fails() {
        assert!(problems_of("//! x\nmod helpers {}")[0].contains("lib.rs:2: `mod helpers`"));
        let packages = vec![Package { name: "minfer-common".into(), ..Package::default() }];
        let mut report = Report::default();
        check(&Tree { packages, ..Tree::default() }, &mut report);
        assert!(report.problems[0].contains("minfer-common"));
    }

    #[test]
    fn an_orphan_fails() {
        let files = [
            ("c/src/lib.rs", "//! x\nmod a; mod b { mod c; } #[path = \"odd/d.rs\"] mod e; include!(\"t.rs\");"),
            ("c/src/a.rs", "//! x\nmod deep;"),
            ("c/src/a/deep.rs", "//! x"),
            ("c/src/b/c/mod.rs", "//! x\nmod more;"),
            ("c/src/b/c/more.rs", "//! x"),
            ("c/src/odd/d.rs", "//! x"),
            ("c/src/t.rs", "//! x"),
            ("c/src/lost.rs", "//! x"),
        ];
        assert_eq!(report(&files, &["c/src/lib.rs"]).problems, ["c/src/lost.rs: orphan, no `mod` reaches it"]);
    }
}
