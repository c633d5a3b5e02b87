//! `cargo xtask tidy`: the rules of the house, checked on every file.
//!
//! Takes a [`Tree`] (files, packages, licences); gives a [`Report`]. Each rule is a pure function
//! from the tree to problems, in a module of its own. Must not build or run anything of minfer.

mod code;
mod edges;
mod files;
mod licences;
mod rule_tests;
mod source;
pub mod tree;

use anyhow::{Result, bail};

use crate::process::workspace;
use tree::Tree;

/// What the rules found.
#[derive(Debug, Default)]
pub struct Report {
    /// Each breaks a rule: where, and what to do.
    pub problems: Vec<String>,
    /// Worth knowing, breaks nothing.
    pub notes: Vec<String>,
}

impl Report {
    fn problem(&mut self, text: String) {
        self.problems.push(text);
    }

    fn note(&mut self, text: String) {
        self.notes.push(text);
    }
}

/// Checks every rule.
pub fn check(tree: &Tree) -> Report {
    let mut report = Report::default();
    edges::check(tree, &mut report);
    edges::check_architecture(tree, &mut report);
    files::check(tree, &mut report);
    code::check(tree, &mut report);
    rule_tests::check(tree, &mut report);
    licences::check(tree, &mut report);
    report
}

/// The task: checks the workspace, prints, fails if a rule is broken.
pub fn run() -> Result<()> {
    let tree = Tree::read(&workspace())?;
    let report = check(&tree);
    for note in &report.notes {
        eprintln!("note: {note}");
    }
    for problem in &report.problems {
        eprintln!("tidy: {problem}");
    }
    if !report.problems.is_empty() {
        bail!("{} rule(s) of the house broken", report.problems.len());
    }
    println!("tidy: {} files, {} packages: clean", tree.files.len(), tree.packages.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tidy_is_clean() {
        let report = check(&Tree::read(&workspace()).unwrap());
        assert!(report.problems.is_empty(), "\n{}", report.problems.join("\n"));
    }
}
