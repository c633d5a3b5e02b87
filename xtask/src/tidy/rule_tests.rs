//! Rule: the promises of the design each have a test of their name.
//!
//! Takes the files; gives problems, and notes for promises whose test is still to come. Must not
//! know what the tests do.

use super::Report;
use super::tree::Tree;

/// A test that must exist.
struct RuleTest {
    /// Number of the rule, as in ARCHITECTURE.md.
    rule: u8,
    /// Name of the test function.
    name: &'static str,
    /// Why it is not there yet; `None` once it must be.
    pending: Option<&'static str>,
}

const fn must(rule: u8, name: &'static str) -> RuleTest {
    RuleTest { rule, name, pending: None }
}

/// The one list. A new promise is a new row; one whose test comes with a later change is
/// `RuleTest { pending: Some("why"), ..must(17, "name") }`, and is printed until it is there.
const RULE_TESTS: &[RuleTest] = &[
    must(1, "liveness_follows_execution_order"),
    must(1, "cycle_graph_allocation_fails"),
    must(2, "inputs_and_outputs_are_pinned"),
    must(3, "liveness_reuses_buffers_along_chain"),
    must(3, "parallel_chains_do_not_share"),
    must(4, "dead_nodes_get_no_buffer"),
    must(5, "alias_requires_sole_consumer_and_same_backend"),
    must(6, "kv_regions_two_per_layer"),
    must(6, "kv_size_change_is_an_error"),
    must(6, "position_beyond_n_ctx_is_an_error"),
    must(7, "allocator_survives_rebuild"),
    must(8, "inputs_are_found_by_name"),
    must(8, "i32_inputs_are_bit_exact"),
    must(9, "staging_is_planned"),
    must(10, "device_pending_data_is_never_read"),
    must(11, "graph_reuse_depends_on_params_only"),
    must(11, "decode_builds_once"),
    must(12, "plan_is_bound_to_its_graph"),
    must(13, "strategies_agree_bitwise"),
    must(14, "fusion_is_neutral"),
    must(15, "estimate_equals_actual"),
    must(16, "budget_is_enforced_before_allocation"),
    must(17, "worker_count_does_not_change_results"),
    must(17, "batching_does_not_change_results"),
];

/// Every listed test exists, unless it is marked as pending.
pub fn check(tree: &Tree, report: &mut Report) {
    check_list(RULE_TESTS, tree, report);
}

fn check_list(list: &[RuleTest], tree: &Tree, report: &mut Report) {
    for RuleTest { rule, name, pending } in list {
        let sources = tree.files.iter().filter_map(|file| file.source.as_ref().ok());
        let exists = sources.into_iter().any(|source| source.find(&["fn", name]).next().is_some());
        match (exists, pending) {
            (true, None) => {}
            (false, None) => report.problem(format!("rule {rule}: no test `{name}` anywhere")),
            (false, Some(why)) => report.note(format!("rule {rule}: test `{name}` is pending: {why}")),
            (true, Some(_)) => report.problem(format!(
                "rule {rule}: test `{name}` exists; take its pending mark away in xtask/src/tidy/rule_tests.rs"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::SourceFile;
    use super::*;

    #[test]
    fn a_promise_without_test_fails() {
        let pending = |rule, name| RuleTest { pending: Some("x"), ..must(rule, name) };
        let files = vec![SourceFile::new("a.rs", "//! fn absent\n#[test]\nfn there() {}\nfn early() {}")];
        let tree = Tree { files, ..Tree::default() };
        let list = [must(1, "there"), must(2, "absent"), pending(3, "later"), pending(4, "early")];
        let mut report = Report::default();
        check_list(&list, &tree, &mut report);
        assert_eq!(report.problems.len(), 2);
        assert!(report.problems[0].contains("`absent`") && report.problems[1].contains("`early` exists"));
        assert!(report.notes[0].contains("`later` is pending"));
    }
}
