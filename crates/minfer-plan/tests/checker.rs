//! The checker catches what a planner could get wrong: every mutation of a correct plan that makes it wrong is refused.

mod support;

use minfer_backend::BackendId;
use minfer_graph::*;
use minfer_plan::*;
use support::*;

fn good() -> (Graph, Plan) {
    let graph = llama(params(16), 2);
    let caps = one(TestCaps { quantised: true, workspace: 4096, ..Default::default() });
    let plan = plan(&graph, &caps, PlanOptions::default()).unwrap();
    (graph, plan)
}

fn refused(change: impl FnOnce(&mut Plan)) -> PlanFault {
    let (graph, mut plan) = good();
    change(&mut plan);
    verify_plan(&plan, &graph).expect_err("a wrong plan passed")
}

fn id(plan: &Plan, name: &str) -> usize {
    plan.graph.find(name).unwrap().index()
}

#[test]
fn a_good_plan_passes_at_its_lower_bound() {
    let (graph, plan) = good();
    verify_plan(&plan, &graph).unwrap();
    let arena = &plan.arenas[0];
    assert_eq!(arena.bytes, arena.figures.lower_bound_bytes, "{}", plan_text(&plan));
}

#[test]
fn a_shortened_lifetime_is_refused() {
    let fault = refused(|plan| {
        let at = id(plan, "blk.0.attn_residual");
        plan.values[at].live.end -= 1;
    });
    assert!(matches!(fault, PlanFault::Live { .. }), "{fault}");
}

#[test]
fn swapped_offsets_are_refused() {
    // Two values of different sizes trade offsets: one of them now meets a neighbour or the end.
    let fault = refused(|plan| {
        let (a, b) = (id(plan, "embed"), id(plan, "token_ids"));
        let (Place::Arena { offset: at_a, bytes: len_a }, Place::Arena { offset: at_b, bytes: len_b }) =
            (plan.values[a].place, plan.values[b].place)
        else {
            panic!("both are in the arena")
        };
        plan.values[a].place = Place::Arena { offset: at_b, bytes: len_a };
        plan.values[b].place = Place::Arena { offset: at_a, bytes: len_b };
    });
    assert!(matches!(fault, PlanFault::Overlap { .. } | PlanFault::Alias { .. } | PlanFault::Bounds { .. }), "{fault}");
}

#[test]
fn a_widened_or_narrowed_value_is_refused() {
    for delta in [-64i64, 64] {
        let fault = refused(|plan| {
            let at = id(plan, "embed");
            let Place::Arena { offset, bytes } = plan.values[at].place else { panic!() };
            plan.values[at].place = Place::Arena { offset, bytes: bytes.wrapping_add_signed(delta) };
        });
        assert!(matches!(fault, PlanFault::Place { .. }), "{fault}");
    }
}

#[test]
fn an_alias_with_a_second_reader_is_refused() {
    let fault = refused(|plan| {
        // The attention residual is read by the norm and by the feed-forward's sum.
        let (norm, of) = (id(plan, "blk.0.ffn_norm"), plan.graph.find("blk.0.attn_residual").unwrap());
        let step = plan.values[norm].live.start;
        plan.values[norm].alias = Some(Alias { of, input: 0, step, reason: AliasReason::SoleReader });
        plan.values[norm].place = plan.values[of.index()].place;
    });
    assert!(matches!(fault, PlanFault::Alias { .. } | PlanFault::Place { .. }), "{fault}");
}

#[test]
fn an_alias_of_an_operation_that_cannot_is_refused() {
    let fault = refused(|plan| {
        let (logits, of) = (id(plan, "logits"), plan.graph.find("output_norm").unwrap());
        let step = plan.values[logits].live.start;
        plan.values[logits].alias = Some(Alias { of, input: 0, step, reason: AliasReason::SoleReader });
    });
    assert!(matches!(fault, PlanFault::Alias { .. }), "{fault}");
}

#[test]
fn a_forgotten_alias_is_an_overlap() {
    let fault = refused(|plan| {
        let at = plan.values.iter().position(|value| value.alias.is_some()).unwrap();
        plan.values[at].alias = None;
    });
    assert!(matches!(fault, PlanFault::Overlap { .. }), "{fault}");
}

#[test]
fn a_wrong_witness_is_refused() {
    let fault = refused(|plan| plan.arenas[0].certificate.lower_bound.bytes -= 64);
    assert!(matches!(fault, PlanFault::LowerBound { .. }), "{fault}");
    let fault = refused(|plan| plan.arenas[0].certificate.lower_bound.step = 0);
    assert!(matches!(fault, PlanFault::LowerBound { .. }), "{fault}");
}

#[test]
fn a_missing_extra_or_swapped_step_is_refused() {
    assert!(matches!(refused(|plan| drop(plan.steps.pop())), PlanFault::StepOrder { .. }));
    assert!(matches!(refused(|plan| plan.steps.swap(2, 3)), PlanFault::StepOrder { .. }));
    let fault = refused(|plan| {
        let step = plan.steps[0].clone();
        plan.steps.push(step);
    });
    assert!(matches!(fault, PlanFault::StepOrder { .. }));
}

#[test]
fn a_workspace_over_a_live_value_is_refused() {
    let fault = refused(|plan| {
        let Place::Arena { offset, .. } = plan.values[id(plan, "token_ids")].place else { panic!() };
        let step = plan.steps.iter_mut().find(|step| step.workspace.is_some()).unwrap();
        step.workspace = Some((offset, 4096));
    });
    assert!(matches!(fault, PlanFault::Overlap { .. } | PlanFault::Bounds { .. }), "{fault}");
}

#[test]
fn a_read_across_backends_is_refused() {
    let fault = refused(|plan| {
        let at = id(plan, "blk.0.ffn_norm");
        plan.backends[at] = BackendId(1);
    });
    assert!(matches!(fault, PlanFault::CrossBackend { .. }), "{fault}");
}

#[test]
fn misaligned_bytes_are_refused() {
    let fault = refused(|plan| {
        let at = id(plan, "logits");
        let Place::Arena { offset, bytes } = plan.values[at].place else { panic!() };
        plan.values[at].place = Place::Arena { offset: offset + 4, bytes };
    });
    assert!(matches!(fault, PlanFault::Bounds { .. } | PlanFault::Overlap { .. }), "{fault}");
}

#[test]
fn a_false_reason_is_refused() {
    let fault = refused(|plan| {
        let alias = plan.values.iter_mut().find_map(|value| value.alias.as_mut()).unwrap();
        alias.reason = match alias.reason {
            AliasReason::SoleReader => AliasReason::LastReader,
            AliasReason::LastReader => AliasReason::SoleReader,
        };
    });
    assert!(matches!(fault, PlanFault::Alias { .. }), "{fault}");
}
