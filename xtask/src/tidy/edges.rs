//! Rule: which crate may depend on which; and ARCHITECTURE.md lists the crates that exist.
//!
//! Takes the packages; gives problems. Must not look at code.

use std::collections::BTreeSet;

use super::Report;
use super::tree::Tree;

/// What each package may name in `[dependencies]`; anything else is a broken rule.
///
/// Edges point down only. Below its own edge a crate may also name what the public types of that
/// edge are made of (dtypes of `gguf` in `graph`, `backend`, `cpu`), never what is beside or above it.
/// Dev-dependencies are free.
const ALLOWED: &[(&str, &[&str])] = &[
    ("minfer-memplan", &[]),
    ("minfer-gguf", &[]),
    ("minfer-text", &[]),
    ("minfer-graph", &["minfer-gguf"]),
    ("minfer-model", &["minfer-gguf", "minfer-graph", "minfer-text"]),
    ("minfer-backend", &["minfer-graph", "minfer-gguf"]),
    ("minfer-cpu", &["minfer-backend", "minfer-graph", "minfer-gguf"]),
    ("minfer-gpu", &["minfer-backend", "minfer-graph", "minfer-gguf"]),
    ("minfer-plan", &["minfer-graph", "minfer-backend", "minfer-memplan"]),
    ("minfer-engine", ENGINE),
    ("minfer", FACADE),
    ("minfer-server", &["minfer"]),
    ("minfer-cli", EVERYTHING),
    ("minfer-testkit", &["minfer-gguf"]),
    ("minfer-tests", TESTS),
    ("minfer-fuzz", &["minfer-gguf", "minfer-memplan", "minfer-text"]),
    ("xtask", &[]),
];

/// The engine gets its backends handed in: it names no `cpu`, no `gpu`.
const ENGINE: &[&str] =
    &["minfer-memplan", "minfer-gguf", "minfer-text", "minfer-graph", "minfer-model", "minfer-backend", "minfer-plan"];

/// The facade re-exports what lies below it.
const FACADE: &[&str] = &[
    "minfer-memplan",
    "minfer-gguf",
    "minfer-text",
    "minfer-graph",
    "minfer-model",
    "minfer-backend",
    "minfer-plan",
    "minfer-engine",
    "minfer-cpu",
    "minfer-gpu",
];

/// Tests of the whole engine share their support code in a library of their own.
const TESTS: &[&str] = &[
    "minfer-gguf",
    "minfer-text",
    "minfer-graph",
    "minfer-model",
    "minfer-backend",
    "minfer-cpu",
    "minfer-plan",
    "minfer-engine",
    "minfer-testkit",
];

const EVERYTHING: &[&str] = &[
    "minfer-memplan",
    "minfer-gguf",
    "minfer-text",
    "minfer-graph",
    "minfer-model",
    "minfer-backend",
    "minfer-plan",
    "minfer-engine",
    "minfer-cpu",
    "minfer-gpu",
    "minfer",
    "minfer-server",
];

const BEGIN: &str = "<!-- crates:begin -->";
const END: &str = "<!-- crates:end -->";

/// Every edge is in the table, every package has a row.
pub fn check(tree: &Tree, report: &mut Report) {
    for package in &tree.packages {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == package.name) else {
            report.problem(format!("{}: unknown crate; give it a row in xtask/src/tidy/edges.rs", package.name));
            continue;
        };
        for edge in package.edges.iter().filter(|edge| !allowed.contains(&edge.as_str())) {
            report.problem(format!("{} depends on {edge}: not an edge of the house", package.name));
        }
    }
}

/// The crate table of ARCHITECTURE.md has exactly the crates below `crates/`.
pub fn check_architecture(tree: &Tree, report: &mut Report) {
    let Some(text) = &tree.architecture else {
        return report.problem("ARCHITECTURE.md is missing".into());
    };
    let Some((table, _)) = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)) else {
        return report.problem(format!("ARCHITECTURE.md: no crate table between `{BEGIN}` and `{END}`"));
    };
    let listed: BTreeSet<&str> = table.lines().filter_map(first_name).collect();
    let packages = tree.packages.iter().filter(|package| package.folder.starts_with("crates/"));
    let exist: BTreeSet<&str> = packages.map(|package| package.name.as_str()).collect();
    for name in exist.difference(&listed) {
        report.problem(format!("ARCHITECTURE.md: the crate table lacks `{name}`"));
    }
    for name in listed.difference(&exist) {
        report.problem(format!("ARCHITECTURE.md: the crate table lists `{name}`, which does not exist"));
    }
}

/// The crate name in backticks in the first cell of a table row.
fn first_name(row: &str) -> Option<&str> {
    let cell = row.trim().strip_prefix('|')?.split('|').next()?;
    cell.split('`').nth(1).map(|name| name.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::super::tree::Package;
    use super::*;

    fn tree(name: &str, edges: &[&str]) -> Tree {
        let edges = edges.iter().map(|edge| edge.to_string()).collect();
        let package = Package { name: name.into(), folder: format!("crates/{name}"), edges, ..Package::default() };
        Tree { packages: vec![package], ..Tree::default() }
    }

    fn problems(check: fn(&Tree, &mut Report), tree: &Tree) -> Vec<String> {
        let mut report = Report::default();
        check(tree, &mut report);
        report.problems
    }

    #[test]
    fn an_edge_up_or_aside_fails() {
        assert!(problems(check, &tree("minfer-plan", &["minfer-memplan"])).is_empty());
        assert!(problems(check, &tree("minfer-plan", &["minfer-model"]))[0].contains("minfer-model"));
        assert!(problems(check, &tree("minfer-plan", &["minfer-gguf"]))[0].contains("minfer-gguf"));
        assert!(problems(check, &tree("minfer-cpu", &["minfer-gpu"]))[0].contains("minfer-gpu"));
        assert!(problems(check, &tree("minfer-engine", &["minfer-cpu"]))[0].contains("minfer-cpu"));
    }

    #[test]
    fn an_unknown_crate_fails() {
        assert!(problems(check, &tree("minfer-new", &[]))[0].contains("unknown crate"));
    }

    #[test]
    fn the_table_points_down_only() {
        // Repeatedly take away crates whose edges are all gone: a cycle would stay.
        let mut left: Vec<_> = ALLOWED.to_vec();
        while !left.is_empty() {
            let names: Vec<&str> = left.iter().map(|(name, _)| *name).collect();
            left.retain(|(_, edges)| edges.iter().any(|edge| names.contains(edge)));
            assert!(left.len() < names.len(), "cycle among {names:?}");
        }
    }

    #[test]
    fn the_crate_table_must_be_true() {
        let mut tree = tree("minfer-gguf", &[]);
        assert!(problems(check_architecture, &tree)[0].contains("missing"));
        tree.architecture = Some("# no table".into());
        assert!(problems(check_architecture, &tree)[0].contains("no crate table"));
        tree.architecture = Some(format!("{BEGIN}\n| crate |\n|---|\n| `minfer-gguf` | x |\n{END}"));
        assert!(problems(check_architecture, &tree).is_empty());
        tree.architecture = Some(format!("{BEGIN}\n| `minfer-old` | x |\n{END}"));
        assert_eq!(problems(check_architecture, &tree).len(), 2);
    }
}
