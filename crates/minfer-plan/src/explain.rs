//! Why an arena is as large as it is. Takes a plan's record; gives the step at which most bytes are live, who holds them,
//! and where each place comes from; must not know what a setting would change.

use crate::record::{ArenaRecord, PlanRecord, StepRecord, ValueKind, ValueRecord};
use std::fmt::{self, Write};

/// The step of an arena at which most bytes are live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peak<'a> {
    /// The arena.
    pub arena: &'a ArenaRecord,
    /// Its number, in execution order.
    pub number: u32,
    /// What runs.
    pub step: &'a StepRecord,
    /// Who holds bytes then, most bytes first. An operand that is being overwritten in place is named by its successor.
    pub holders: Vec<Holder<'a>>,
}

/// A value that holds bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder<'a> {
    /// The value.
    pub value: &'a ValueRecord,
    /// Bytes it occupies: whole units of alignment.
    pub bytes: u64,
    /// Where its place comes from.
    pub origin: Origin<'a>,
}

/// Where a value's place comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin<'a> {
    /// Filled before the first step, so it shares bytes with nothing.
    Pinned,
    /// It takes over the bytes of an operand.
    InPlace {
        /// The operand.
        of: &'a str,
        /// Who may do that.
        reason: &'a str,
    },
    /// Its bytes were another's, who is dead.
    Reuse {
        /// The latest owner.
        of: &'a str,
        /// The first step at which that one was live no more.
        since: u32,
        /// Values that had some of these bytes before, the latest included.
        n_before: usize,
    },
    /// Nobody had these bytes before.
    First,
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Pinned => f.write_str("filled before the first step: shares with nothing"),
            Origin::InPlace { of, reason } => write!(f, "in place of {of}: {reason}"),
            Origin::Reuse { of, since, n_before: 1 } => write!(f, "reuses {of}, dead since step {since}"),
            Origin::Reuse { of, since, n_before } => {
                write!(f, "reuses {of}, dead since step {since}, and {} before it", n_before - 1)
            }
            Origin::First => f.write_str("first to have these bytes"),
        }
    }
}

impl Peak<'_> {
    /// Bytes live at this step.
    pub fn bytes(&self) -> u64 {
        self.holders.iter().map(|holder| holder.bytes).fold(0, u64::saturating_add)
    }
}

impl PlanRecord {
    /// The peak of an arena; `None` for an arena without steps.
    pub fn peak<'a>(&'a self, arena: &'a ArenaRecord) -> Option<Peak<'a>> {
        let number = arena.peak_step;
        let step = self.steps.get(number as usize)?;
        let values = || self.values.iter().filter(|value| value.arena == arena.name);
        let live = || values().filter(|value| value.is_live_at(number));
        let overwritten: Vec<&str> = live().filter_map(|v| v.in_place_of.as_ref().map(|of| of.name.as_str())).collect();
        let holder = |value: &'a ValueRecord| Holder {
            value,
            bytes: value.occupied_bytes(arena.alignment),
            origin: self.origin(value),
        };
        let mut holders: Vec<_> = live().filter(|v| !overwritten.contains(&v.name.as_str())).map(holder).collect();
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
        Some(Peak { arena, number, step, holders })
    }

    /// Where a value's place comes from.
    pub fn origin<'a>(&'a self, value: &'a ValueRecord) -> Origin<'a> {
        if let Some(of) = &value.in_place_of {
            return Origin::InPlace { of: &of.name, reason: &of.reason };
        }
        if value.kind == ValueKind::Input {
            return Origin::Pinned;
        }
        let shares = |other: &&ValueRecord| {
            other.arena == value.arena
                && other.live.1 <= value.live.0
                && other.offset < value.offset.saturating_add(value.bytes)
                && value.offset < other.offset.saturating_add(other.bytes)
        };
        let before = || self.values.iter().filter(shares);
        match before().max_by_key(|other| other.live.1) {
            Some(latest) => Origin::Reuse { of: &latest.name, since: latest.live.1, n_before: before().count() },
            None => Origin::First,
        }
    }
}

/// What the choice of an order brought: most bytes live at once in the order of the graph as it came, and in the order
/// taken, and whether no order needs less.
pub fn order_words(given_bytes: u64, bytes: u64, is_least: bool) -> String {
    let proof = if is_least { "no order needs less" } else { "whether another needs less was not searched to the end" };
    match given_bytes.saturating_sub(bytes) {
        0 => format!("the order of the graph is kept: at most {bytes} bytes live at once; {proof}"),
        saved => format!(
            "the order of steps saves {saved} bytes: at most {bytes} live at once, {given_bytes} in the graph's own order; {proof}"
        ),
    }
}

/// Per arena: its size under every strategy, its peak step, and who is live then. Short enough to be reviewed.
pub fn summary_text(record: &PlanRecord) -> String {
    let mut text = String::new();
    for arena in &record.arenas {
        let gap = arena.bytes - arena.lower_bound_bytes.min(arena.bytes);
        let _ = writeln!(
            text,
            "arena {} ({}): {} bytes; naive {}, pool {} in {} buffers, planned {}, lower bound {} ({})",
            arena.name,
            arena.strategy,
            arena.bytes,
            arena.naive_bytes,
            arena.pool_bytes,
            arena.pool_buffers,
            arena.planned_bytes,
            arena.lower_bound_bytes,
            if arena.optimal { "proven minimal".to_owned() } else { format!("{gap} bytes above it") },
        );
        let Some(peak) = record.peak(arena) else { continue };
        let _ = writeln!(
            text,
            "peak: {} bytes live at step {} of {}: {} ({}{})",
            peak.bytes(),
            peak.number,
            record.steps.len(),
            peak.step.name,
            peak.step.op,
            peak.step.layer.map(|layer| format!(", layer {layer}")).unwrap_or_default(),
        );
        let mut rows = vec![["bytes", "value", "op", "layer", "shape", "type", "live", "place"].map(str::to_owned)];
        for Holder { value, bytes, origin } in &peak.holders {
            let live = format!("{}..{}", value.live.0, value.live.1);
            let layer = value.layer.map_or_else(|| "-".to_owned(), |layer| layer.to_string());
            let place = format!("at {}, {origin}", value.offset);
            let (name, op, shape) = (value.name.clone(), value.op.clone(), value.shape.clone());
            rows.push([bytes.to_string(), name, op, layer, shape, value.ty.clone(), live, place]);
        }
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 8] = std::array::from_fn(width);
        for row in &rows {
            let _ = write!(text, "  {:>1$}", row[0], widths[0]);
            for (word, width) in row.iter().zip(widths).skip(1) {
                let _ = write!(text, "  {word:<width$}");
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, offset: u64, bytes: u64, live: (u32, u32)) -> ValueRecord {
        ValueRecord {
            name: name.into(),
            kind: ValueKind::Intermediate,
            op: "add".into(),
            layer: None,
            shape: "[1, 1]".into(),
            ty: "f32".into(),
            arena: "cpu".into(),
            offset,
            bytes,
            live,
            in_place_of: None,
        }
    }

    #[test]
    fn a_place_comes_from_the_latest_owner_of_its_bytes() {
        let record = PlanRecord {
            fingerprint: String::new(),
            arenas: Vec::new(),
            steps: Vec::new(),
            values: vec![
                value("early", 0, 64, (0, 2)),
                value("later", 32, 64, (2, 4)),
                value("elsewhere", 96, 64, (0, 5)),
                value("asked", 0, 64, (5, 6)),
            ],
        };
        let origin = |name: &str| record.origin(record.values.iter().find(|v| v.name == name).unwrap());
        assert_eq!(origin("early"), Origin::First);
        assert_eq!(origin("later"), Origin::Reuse { of: "early", since: 2, n_before: 1 });
        assert_eq!(origin("asked"), Origin::Reuse { of: "later", since: 4, n_before: 2 });
        assert_eq!(origin("elsewhere"), Origin::First);
    }
}
