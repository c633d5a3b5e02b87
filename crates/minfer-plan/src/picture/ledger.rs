//! Everything the process owns, as bars to scale among each other; and the strategies side by side. Takes the ledger and
//! a scene; gives markup and rows; must not know the map's scale.

use super::canvas::{Anchor, Canvas, Frame};
use super::scene::{Layout, Scene};
use super::text;
use crate::ledger::{Ledger, Owner};
use serde::Serialize;

/// Height of a bar, and from one to the next.
const BAR: f64 = 11.0;
const ROW: f64 = 38.0;

/// One bar.
#[derive(Serialize)]
pub(super) struct Row {
    pub owner: &'static str,
    pub note: &'static str,
    pub bytes: u64,
    /// The arenas: how much they take depends on the strategy.
    pub is_arena: bool,
}

/// One row per class of owners that has bytes. The arenas' are those of the layout, whatever the ledger was made for.
pub(super) fn rows(ledger: &Ledger, layout: &Layout) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut seen: Vec<Owner> = Vec::new();
    let lines = ledger.lines.iter().map(|line| line.owner);
    for owner in lines.chain([Owner::Arena]) {
        if seen.contains(&owner) {
            continue;
        }
        seen.push(owner);
        let (label, note) = words(owner);
        let is_arena = owner == Owner::Arena;
        let bytes = if is_arena { layout.heights.iter().sum() } else { ledger.sum(owner) };
        if bytes > 0 {
            rows.push(Row { owner: label, note, bytes, is_arena });
        }
    }
    rows
}

fn words(owner: Owner) -> (&'static str, &'static str) {
    match owner {
        Owner::Weights => ("weights", "mapped from the file"),
        Owner::Kv => ("KV cache", "two regions per layer"),
        Owner::Arena => ("arena", "values, workspaces"),
        Owner::Tokenizer => ("tokenizer", "vocabulary, merges"),
        Owner::Threads => ("threads", "stacks and scratch"),
        Owner::Host => ("host", "logits, sampling, inputs"),
        Owner::Graphs => ("graphs", "tables, graphs, plans"),
        Owner::Program => ("program", "code, stacks, fixed heap"),
    }
}

/// Draws the owners into a column.
pub(super) fn draw_owners(canvas: &mut Canvas, ledger: &Ledger, layout: &Layout, column: Frame) {
    let rows = rows(ledger, layout);
    let total: u64 = rows.iter().map(|row| row.bytes).sum();
    canvas.text((column.x, column.y), Anchor::Start, "head", "The whole process");
    canvas.text((column.right(), column.y), Anchor::End, "head", &text::bytes(total));
    let bars = rows.iter().map(|row| {
        let class = if row.is_arena { "bar marked" } else { "bar" };
        (row.owner, row.note, row.bytes, class)
    });
    draw_bars(canvas, bars, column);
}

/// Draws what one arena takes under each strategy.
pub(super) fn draw_strategies(canvas: &mut Canvas, scene: &Scene, layout: &Layout, arena: usize, column: Frame) {
    let figures = &scene.arenas[arena];
    canvas.text(
        (column.x, column.y),
        Anchor::Start,
        "head",
        &format!("Arena {} by strategy", text::name(&figures.name)),
    );
    let bars = [
        ("naive", "every value its own bytes", figures.naive_bytes),
        ("pool", "recycled by size class", figures.pool_bytes),
        ("planned", "from all live ranges", figures.planned_bytes),
        ("lower bound", "most live at once", figures.lower_bound_bytes),
    ]
    .map(|(name, note, bytes)| (name, note, bytes, if name == layout.strategy { "bar marked" } else { "bar" }));
    draw_bars(canvas, bars, column);
}

/// Height of this many bars with their heading.
pub(super) fn height(n_bars: usize) -> f64 {
    ROW * n_bars as f64 + 14.0
}

fn draw_bars<'a>(canvas: &mut Canvas, bars: impl IntoIterator<Item = (&'a str, &'a str, u64, &'a str)>, column: Frame) {
    let bars: Vec<_> = bars.into_iter().collect();
    let longest = bars.iter().map(|bar| bar.2).max().unwrap_or(1).max(1);
    let mut y = column.y + 26.0;
    for (name, note, bytes, class) in bars {
        let label = format!("{name} <tspan class=\"note\">{note}</tspan>");
        canvas.text((column.x, y), Anchor::Start, "said", &label);
        canvas.text((column.right(), y), Anchor::End, "said", &text::bytes(bytes));
        canvas.rect(Frame { x: column.x, y: y + 5.0, width: column.width, height: BAR }, r#"class="trough""#);
        let width = (column.width * bytes as f64 / longest as f64).max(1.0);
        canvas.rect(Frame { x: column.x, y: y + 5.0, width, height: BAR }, &format!(r#"class="{class}""#));
        y += ROW;
    }
}
