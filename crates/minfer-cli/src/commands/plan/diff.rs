//! `minfer plan --diff`: two outputs of `--json`, compared. Takes files; gives lines.

use super::super::text::read_bytes;
use crate::exit::{Failure, Outcome};
use crate::output::{self, mib, plain};
use crate::resolve::TextSource;
use anyhow::Result;
use minfer::{Ledger, LedgerLine};
use minfer_plan::{ArenaDiff, Lifetime, PlanDiff, PlanRecord, ValueRecord};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::path::Path;

/// What is read of an output of `--json`.
#[derive(Deserialize)]
#[serde(expecting = "an object with `ledger` and `plan`")]
struct Output {
    /// By name; files of other versions may lack some.
    #[serde(default)]
    settings: Map<String, Value>,
    ledger: Ledger,
    plan: PlanRecord,
}

/// Lines of one kind that are printed before the rest is only counted.
const MOST_LINES: usize = 12;

/// Prints what is different in the second file.
pub fn diff(before: &Path, after: &Path) -> Result<Outcome> {
    let (before, after) = (read(before)?, read(after)?);
    let mut text = Vec::new();
    settings(&mut text, &before.settings, &after.settings)?;
    if is_same(&before, &after) {
        writeln!(text, "the same plan, byte for byte")?;
    } else {
        ledgers(&mut text, &before.ledger, &after.ledger)?;
        plans(&mut text, &before.plan, &after.plan)?;
    }
    // The names are the files'.
    let text = String::from_utf8_lossy(&text);
    output::answer(|out| text.lines().try_for_each(|line| writeln!(out, "{}", plain(line))))?;
    Ok(Outcome::Done)
}

/// Files of other versions say some things in other words, or not at all: what counts is bytes, steps and places.
fn is_same(before: &Output, after: &Output) -> bool {
    let lines = |output: &Output| -> Vec<_> {
        output.ledger.lines.iter().map(|line| (line.owner, line.name.clone(), line.bytes)).collect()
    };
    lines(before) == lines(after)
        && before.plan.steps == after.plan.steps
        && minfer_plan::diff(&before.plan, &after.plan).is_empty()
}

fn read(path: &Path) -> Result<Output> {
    let hint = "`minfer plan MODEL --json > FILE` writes such a file";
    let text = read_bytes(&TextSource::File(path.to_owned()), "").map_err(|failure| failure.hint(hint))?;
    let failed = |error| Failure::new(format!("{}: not an output of --json: {error}", path.display())).hint(hint);
    Ok(serde_json::from_slice(&text).map_err(failed)?)
}

/// The settings that both files name and that changed.
fn settings(out: &mut dyn Write, before: &Map<String, Value>, after: &Map<String, Value>) -> io::Result<()> {
    let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for (name, new) in after {
        if let Some(old) = before.get(name).filter(|&old| old != new) {
            writeln!(out, "{name}: {} -> {}", words(old), words(new))?;
        }
    }
    Ok(())
}

/// The owners that changed, and the sum.
fn ledgers(out: &mut dyn Write, before: &Ledger, after: &Ledger) -> io::Result<()> {
    let bytes = |ledger: &Ledger, name: &str| {
        let line = ledger.lines.iter().find(|line: &&LedgerLine| line.name == name);
        line.map_or(0, |line| line.bytes)
    };
    let gone = before.lines.iter().filter(|line| !after.lines.iter().any(|other| other.name == line.name));
    for line in after.lines.iter().chain(gone) {
        let (old, new) = (bytes(before, &line.name), bytes(after, &line.name));
        if old != new {
            writeln!(out, "{}: {old} -> {new} bytes ({})", line.name, signed(old, new))?;
        }
    }
    let (old, new) = (before.total(), after.total());
    writeln!(out, "total: {old} -> {new} bytes ({}, {})", signed(old, new), mib(new))
}

fn plans(out: &mut dyn Write, before: &PlanRecord, after: &PlanRecord) -> io::Result<()> {
    let diff = minfer_plan::diff(before, after);
    for arena in &diff.arenas {
        arena_lines(out, arena, before, after)?;
    }
    let PlanDiff { added, removed, resized, longer, shorter, moved, .. } = diff;
    let whole = |value: &&ValueRecord| format!("{} ({}, {} bytes)", value.name, value.op, value.bytes);
    list(out, "only in the second plan", added.iter().map(whole))?;
    list(out, "only in the first plan", removed.iter().map(whole))?;
    let sizes = resized.iter().map(|pair| {
        let (old, new) = (pair.before.bytes, pair.after.bytes);
        format!("{} ({}): {old} -> {new} bytes", pair.after.name, pair.after.op)
    });
    list(out, "another size", sizes)?;
    let ends = |lifetime: &Lifetime<'_>| {
        let Lifetime { pair, last_before, last_after } = lifetime;
        format!("{}: until {last_after}, was until {last_before}", pair.after.name)
    };
    list(out, "lives longer", longer.iter().map(ends))?;
    list(out, "lives shorter", shorter.iter().map(ends))?;
    let places = moved
        .iter()
        .map(|pair| format!("{}: at {}, was at {}", pair.after.name, pair.after.offset, pair.before.offset));
    list(out, "moved", places)
}

fn arena_lines(out: &mut dyn Write, arena: &ArenaDiff<'_>, before: &PlanRecord, after: &PlanRecord) -> io::Result<()> {
    let bytes = |arena: Option<&minfer_plan::ArenaRecord>| arena.map_or(0, |arena| arena.bytes);
    let (old, new) = (bytes(arena.before), bytes(arena.after));
    let name = arena.name;
    writeln!(out, "arena {name}: {old} -> {new} bytes ({})", signed(old, new))?;
    let peak = |record: &PlanRecord, arena: Option<&minfer_plan::ArenaRecord>| {
        let peak = arena.and_then(|arena| record.peak(arena));
        peak.map_or("nothing".into(), |peak| format!("{} bytes at {} ({})", peak.bytes(), peak.step.name, peak.step.op))
    };
    writeln!(out, "peak of {name}: {} -> {}", peak(before, arena.before), peak(after, arena.after))?;
    let Some(first) = arena.causes.first() else { return Ok(()) };
    writeln!(out, "to blame: {} ({}), {:+} bytes", first.value.name, first.value.op, first.delta_bytes)?;
    let causes = arena.causes.iter().skip(1);
    let cause = |cause: &minfer_plan::Cause<'_>| {
        format!("{} ({}), {:+} bytes", cause.value.name, cause.value.op, cause.delta_bytes)
    };
    list(out, "also at the peak", causes.map(cause))
}

/// Lines that are equal but for the layer are one line.
fn list(out: &mut dyn Write, title: &str, lines: impl Iterator<Item = String>) -> io::Result<()> {
    let mut groups: Vec<(String, String, usize)> = Vec::new();
    for line in lines {
        let role = without_layers(&line);
        match groups.iter_mut().find(|(other, ..)| *other == role) {
            Some((_, _, count)) => *count += 1,
            None => groups.push((role, line, 1)),
        }
    }
    let n_lines: usize = groups.iter().map(|(.., count)| count).sum();
    if n_lines == 0 {
        return Ok(());
    }
    writeln!(out, "{title}: {n_lines}")?;
    for (role, line, count) in groups.iter().take(MOST_LINES) {
        match count {
            1 => writeln!(out, "  {line}")?,
            count => writeln!(out, "  {role}, in {count} layers")?,
        }
    }
    match groups.iter().skip(MOST_LINES).map(|(.., count)| count).sum::<usize>() {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

/// Names of layers, such as `blk.3.`, without their number.
fn without_layers(line: &str) -> String {
    let mut parts = line.split("blk.");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        text.push_str(if rest.len() < part.len() { "blk.*" } else { "blk." });
        text.push_str(rest);
    }
    text
}

fn signed(before: u64, after: u64) -> String {
    let sign = if after < before { "-" } else { "+" };
    format!("{sign}{}", after.abs_diff(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_equal_layers_are_one() {
        assert_eq!(without_layers("blk.3.up: until blk.12.sum"), "blk.*.up: until blk.*.sum");
        let mut out = Vec::new();
        let lines = ["blk.0.up, 8 bytes", "embed", "blk.1.up, 8 bytes", "blk.1.down"].map(str::to_owned);
        list(&mut out, "moved", lines.into_iter()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "moved: 4\n  blk.*.up, 8 bytes, in 2 layers\n  embed\n  blk.1.down\n");
    }
}
