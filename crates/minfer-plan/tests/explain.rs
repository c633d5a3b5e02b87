//! Records of plans: what survives a file, who is live at the peak, and what a difference is put down to.

mod support;

use minfer_plan::*;

fn value(name: &str, op: &str, layer: u32, offset: u64, bytes: u64, live: (u32, u32)) -> ValueRecord {
    ValueRecord {
        name: format!("blk.{layer}.{name}"),
        kind: ValueKind::Intermediate,
        op: op.into(),
        layer: Some(layer),
        shape: format!("[1, {}]", bytes / 4),
        ty: "f32".into(),
        arena: "cpu".into(),
        offset,
        bytes,
        live,
        in_place_of: None,
    }
}

fn record(values: Vec<ValueRecord>, steps: &[&str], peak_step: u32, bytes: u64) -> PlanRecord {
    let arena = ArenaRecord {
        name: "cpu".into(),
        strategy: "planned".into(),
        bytes,
        alignment: 64,
        naive_bytes: bytes,
        pool_bytes: bytes,
        pool_buffers: 1,
        planned_bytes: bytes,
        lower_bound_bytes: bytes,
        given_order_bytes: bytes,
        order_is_least: true,
        optimal: true,
        peak_step,
    };
    let step = |name: &&str| StepRecord { name: (*name).into(), op: "op".into(), layer: None, backend: "cpu".into() };
    PlanRecord { fingerprint: String::new(), arenas: vec![arena], steps: steps.iter().map(step).collect(), values }
}

/// Two layers: the norm is read by its product, and the product by the sum.
fn base() -> PlanRecord {
    let values = vec![
        value("norm", "rms_norm", 0, 0, 256, (0, 2)),
        value("up", "linear", 0, 256, 1024, (1, 3)),
        value("norm", "rms_norm", 1, 0, 256, (3, 5)),
        value("up", "linear", 1, 256, 1024, (4, 6)),
    ];
    record(values, &["blk.0.norm", "blk.0.up", "blk.0.sum", "blk.1.norm", "blk.1.up", "blk.1.sum"], 1, 1280)
}

#[test]
fn records_survive_a_file() {
    let record = base();
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<PlanRecord>(&text).unwrap(), record);
}

#[test]
fn equal_plans_have_no_difference() {
    let (before, after) = (base(), base());
    let found = diff(&before, &after);
    assert!(found.added.is_empty() && found.removed.is_empty() && found.resized.is_empty() && found.moved.is_empty());
    assert!(found.longer.is_empty() && found.shorter.is_empty());
    assert!(found.arenas[0].causes.is_empty());
}

/// A norm that is read once more, later, is at the peak of a later step: it is to blame, by the bytes it adds.
#[test]
fn a_longer_life_is_to_blame() {
    let before = base();
    let mut after = base();
    after.values[0].live = (0, 5);
    after.values[2] = value("norm", "rms_norm", 1, 1280, 256, (3, 5));
    after.arenas[0] = ArenaRecord { bytes: 1536, peak_step: 4, ..after.arenas[0].clone() };
    let found = diff(&before, &after);
    let longer: Vec<_> =
        found.longer.iter().map(|l| (l.pair.after.name.as_str(), l.last_before, l.last_after)).collect();
    assert_eq!(longer, [("blk.0.norm", "blk.0.up", "blk.1.up")]);
    assert_eq!(found.moved.len(), 1);
    assert_eq!((found.moved[0].before.offset, found.moved[0].after.offset), (0, 1280));
    let causes: Vec<_> =
        found.arenas[0].causes.iter().map(|cause| (cause.value.name.as_str(), cause.delta_bytes)).collect();
    // The product of the other layer replaces that of the first: no difference, and not named.
    assert_eq!(causes, [("blk.1.norm", 256)]);
}

/// What is split into steps of their own is added, and names the difference; steps keep their names, not their numbers.
#[test]
fn added_values_are_to_blame_and_renumbered_steps_are_not() {
    let before = base();
    let mut after = base();
    after.steps.insert(1, StepRecord { name: "blk.0.gate".into(), ..after.steps[0].clone() });
    let shifted = |live: (u32, u32)| (live.0 + u32::from(live.0 > 0), live.1 + 1);
    after.values.iter_mut().for_each(|value| value.live = shifted(value.live));
    after.values.push(value("gate", "linear", 0, 1280, 1024, (1, 4)));
    after.arenas[0] = ArenaRecord { bytes: 2304, peak_step: 2, ..after.arenas[0].clone() };
    let found = diff(&before, &after);
    assert!(found.longer.is_empty() && found.shorter.is_empty(), "{:?} {:?}", found.longer, found.shorter);
    assert_eq!(found.added.iter().map(|value| value.name.as_str()).collect::<Vec<_>>(), ["blk.0.gate"]);
    let cause = &found.arenas[0].causes[0];
    assert_eq!((cause.value.name.as_str(), cause.value.op.as_str(), cause.delta_bytes), ("blk.0.gate", "linear", 1024));
    let back = diff(&after, &before);
    let cause = &back.arenas[0].causes[0];
    assert_eq!((cause.value.name.as_str(), cause.delta_bytes), ("blk.0.gate", -1024));
}
