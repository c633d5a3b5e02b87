//! What is different between two plans. Takes two records; gives what moved, whose lifetime or size changed, and which
//! values make the difference at the peak; must not know how it is printed.
//!
//! Values and steps are matched by name, since numbers of steps shift when a step is added.

use crate::record::{ArenaRecord, PlanRecord, ValueRecord};
use std::collections::HashMap;

/// The difference from one plan to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanDiff<'a> {
    /// Arenas of either plan.
    pub arenas: Vec<ArenaDiff<'a>>,
    /// Values that only the second plan has.
    pub added: Vec<&'a ValueRecord>,
    /// Values that only the first plan has.
    pub removed: Vec<&'a ValueRecord>,
    /// Values in both whose size is different.
    pub resized: Vec<Pair<'a>>,
    /// Values in both that live longer in the second plan.
    pub longer: Vec<Lifetime<'a>>,
    /// Values in both that live shorter in the second plan.
    pub shorter: Vec<Lifetime<'a>>,
    /// Values in both that lie elsewhere.
    pub moved: Vec<Pair<'a>>,
}

impl PlanDiff<'_> {
    /// Whether nothing is different that anything would notice.
    pub fn is_empty(&self) -> bool {
        let bytes = |arena: Option<&ArenaRecord>| arena.map(|arena| arena.bytes);
        let values = [self.added.len(), self.removed.len(), self.resized.len(), self.moved.len()];
        let lifetimes = [self.longer.len(), self.shorter.len()];
        values.into_iter().chain(lifetimes).all(|len| len == 0)
            && self.arenas.iter().all(|arena| bytes(arena.before) == bytes(arena.after) && arena.causes.is_empty())
    }
}

/// A value in both plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair<'a> {
    /// In the first.
    pub before: &'a ValueRecord,
    /// In the second.
    pub after: &'a ValueRecord,
}

/// A value and the last steps that read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetime<'a> {
    /// The value in both plans.
    pub pair: Pair<'a>,
    /// Its last step in the first plan.
    pub last_before: &'a str,
    /// Its last step in the second plan.
    pub last_after: &'a str,
}

/// An arena in both plans, or in one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArenaDiff<'a> {
    /// Name of its backend.
    pub name: &'a str,
    /// In the first plan.
    pub before: Option<&'a ArenaRecord>,
    /// In the second plan.
    pub after: Option<&'a ArenaRecord>,
    /// Who makes the difference at the peak, largest change first. The first one is to blame.
    pub causes: Vec<Cause<'a>>,
}

/// A value that holds more or fewer bytes at the second plan's peak than at the first one's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause<'a> {
    /// The value.
    pub value: &'a ValueRecord,
    /// Bytes it adds to the peak; negative if it takes away.
    pub delta_bytes: i64,
}

/// Compares two plans.
pub fn diff<'a>(before: &'a PlanRecord, after: &'a PlanRecord) -> PlanDiff<'a> {
    let old: HashMap<&str, &ValueRecord> = before.values.iter().map(|value| (value.name.as_str(), value)).collect();
    let new: HashMap<&str, &ValueRecord> = after.values.iter().map(|value| (value.name.as_str(), value)).collect();
    let pairs = || after.values.iter().filter_map(|after| Some(Pair { before: old.get(after.name.as_str())?, after }));
    let (longer, shorter) = lifetimes(before, after, pairs());
    PlanDiff {
        arenas: arenas(before, after),
        added: after.values.iter().filter(|value| !old.contains_key(value.name.as_str())).collect(),
        removed: before.values.iter().filter(|value| !new.contains_key(value.name.as_str())).collect(),
        resized: pairs().filter(|pair| pair.before.bytes != pair.after.bytes).collect(),
        longer,
        shorter,
        moved: pairs()
            .filter(|Pair { before, after }| (before.offset, &before.arena) != (after.offset, &after.arena))
            .collect(),
    }
}

/// Values whose last step is a later one, and those whose last step is an earlier one, in the second plan's order.
fn lifetimes<'a>(
    before: &'a PlanRecord,
    after: &'a PlanRecord,
    pairs: impl Iterator<Item = Pair<'a>>,
) -> (Vec<Lifetime<'a>>, Vec<Lifetime<'a>>) {
    let place: HashMap<&str, usize> =
        after.steps.iter().enumerate().map(|(at, step)| (step.name.as_str(), at)).collect();
    let last = |record: &'a PlanRecord, value: &ValueRecord| {
        let index = (value.live.1 as usize).checked_sub(1)?;
        record.steps.get(index).map(|step| step.name.as_str())
    };
    let (mut longer, mut shorter) = (Vec::new(), Vec::new());
    for pair in pairs {
        let (Some(last_before), Some(last_after)) = (last(before, pair.before), last(after, pair.after)) else {
            continue;
        };
        let lifetime = Lifetime { pair, last_before, last_after };
        // A step that is gone says nothing about later or earlier: then the number of steps decides.
        let order = match place.get(last_before) {
            Some(&at) => (pair.after.live.1 as usize - 1).cmp(&at),
            None => n_steps(pair.after).cmp(&n_steps(pair.before)),
        };
        match order {
            std::cmp::Ordering::Greater => longer.push(lifetime),
            std::cmp::Ordering::Less => shorter.push(lifetime),
            std::cmp::Ordering::Equal => {}
        }
    }
    (longer, shorter)
}

fn arenas<'a>(before: &'a PlanRecord, after: &'a PlanRecord) -> Vec<ArenaDiff<'a>> {
    let only_before = before.arenas.iter().filter(|arena| after.arena(&arena.name).is_none());
    let names = after.arenas.iter().chain(only_before).map(|arena| arena.name.as_str());
    let arena_diff = |name| {
        let (old, new) = (before.arena(name), after.arena(name));
        ArenaDiff { name, before: old, after: new, causes: causes(before, old, after, new) }
    };
    names.map(arena_diff).collect()
}

/// The live sets at both peaks, subtracted.
fn causes<'a>(
    before: &'a PlanRecord,
    old: Option<&'a ArenaRecord>,
    after: &'a PlanRecord,
    new: Option<&'a ArenaRecord>,
) -> Vec<Cause<'a>> {
    let holders = |record: &'a PlanRecord, arena: Option<&'a ArenaRecord>| {
        arena.and_then(|arena| record.peak(arena)).map(|peak| peak.holders).unwrap_or_default()
    };
    let mut causes: Vec<Cause<'a>> = Vec::new();
    for holder in holders(after, new) {
        causes.push(Cause { value: holder.value, delta_bytes: signed(holder.bytes) });
    }
    for holder in holders(before, old) {
        let role = |value: &ValueRecord| (role_of(value), value.op.clone());
        // The same role in another layer is the same cause: which of many equal layers has the peak is chance.
        let same_name = causes.iter().position(|cause| cause.value.name == holder.value.name);
        let same_role = || {
            causes
                .iter()
                .position(|cause| role(cause.value) == role(holder.value) && cause.delta_bytes == signed(holder.bytes))
        };
        match same_name.or_else(same_role) {
            Some(at) => causes[at].delta_bytes = causes[at].delta_bytes.saturating_sub(signed(holder.bytes)),
            None => causes.push(Cause { value: holder.value, delta_bytes: -signed(holder.bytes) }),
        }
    }
    causes.retain(|cause| cause.delta_bytes != 0);
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.delta_bytes.unsigned_abs()));
    // Whoever goes against the difference is not its cause.
    let total = causes.iter().map(|cause| cause.delta_bytes).fold(0, i64::saturating_add);
    causes.sort_by_key(|cause| (cause.delta_bytes < 0) != (total < 0));
    causes
}

fn n_steps(value: &ValueRecord) -> u32 {
    value.live.1.saturating_sub(value.live.0)
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// A name without its layer.
fn role_of(value: &ValueRecord) -> String {
    match value.layer {
        Some(layer) => value.name.replacen(&format!(".{layer}."), ".*.", 1),
        None => value.name.clone(),
    }
}
