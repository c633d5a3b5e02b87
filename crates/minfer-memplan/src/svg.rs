//! Pictures: takes a problem, offsets and buffers to mark, gives a drawing of time against address as SVG, without scripts
//! or links. Must not judge the placement: overlaps are drawn as they are.

use std::fmt::Write as _;

use crate::csv::Table;
use crate::{LowerBound, lower_bound};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 90.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 36.0;

/// Draws the buffers, one offset each: time to the right, addresses upwards, the lower bound and the capacity as lines.
/// Pointing at a buffer shows its name, lifetime, size and offset. An idle buffer leaves its bytes blank. Missing offsets
/// are drawn at 0. The `marked` buffers, by index, are drawn last and half transparent, in red: those that
/// [`check`](crate::check) complained about, say.
pub fn draw(table: &Table, offsets: &[u64], marked: &[usize]) -> String {
    let buffers = &table.problem.buffers;
    let offset = |i: usize| offsets.get(i).copied().unwrap_or(0);
    let first = buffers.iter().map(|b| b.lower).min().unwrap_or(0);
    let last = buffers.iter().map(|b| b.upper).max().unwrap_or(0);
    let height = (0..buffers.len()).map(|i| offset(i).saturating_add(buffers[i].size)).max().unwrap_or(0);
    let LowerBound { bytes: bound, step, .. } = lower_bound(&table.problem);
    let highest = height.max(bound).max(table.problem.capacity.unwrap_or(0)).max(1);
    let x = |at: u64| {
        LEFT + (WIDTH - LEFT - 10.0) * (at.saturating_sub(first) as f64 / last.saturating_sub(first).max(1) as f64)
    };
    let y = |at: u64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - at as f64 / highest as f64);

    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"11\">"
    );
    let _ = writeln!(svg, "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>");
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"18\">{} buffers, height {height}, lower bound {bound} (step {step})</text>",
        buffers.len()
    );
    let mut order: Vec<usize> = (0..buffers.len()).filter(|&i| buffers[i].size > 0).collect();
    order.sort_by_key(|i| marked.contains(i)); // what is marked lies on top
    for i in order {
        let b = &buffers[i];
        let name = table.ids.get(i).map(String::as_str).unwrap_or_default();
        let (top, bottom) = (y(offset(i).saturating_add(b.size)), y(offset(i)));
        // Neighbouring indices get far hues: the golden angle.
        let hue = (i as f64 * 137.508) % 360.0;
        let (fill, stroke) = match marked.contains(&i) {
            false => (format!("hsl({hue:.0},55%,70%)"), "stroke=\"#444\" stroke-width=\"0.4\""),
            true => ("#e01b24".to_owned(), "fill-opacity=\"0.5\" stroke=\"#b00020\" stroke-width=\"2\""),
        };
        let idle: String = b.idle.iter().map(|p| format!(", idle during [{}, {})", p.start, p.end)).collect();
        // Named once, as a group: a buffer may have as many spans as idle periods, and the name tells all of them.
        let _ = writeln!(
            svg,
            "<g fill=\"{fill}\" {stroke}><title>{}: [{}, {}){idle}, {} bytes \
             at {}</title>",
            escaped(name),
            b.lower,
            b.upper,
            b.size,
            offset(i)
        );
        for span in b.spans() {
            let (left, right) = (x(span.start), x(span.end));
            let (width, height) = (right - left, bottom - top);
            let _ = writeln!(svg, "<rect x=\"{left:.2}\" y=\"{top:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"/>");
        }
        svg.push_str("</g>\n");
    }
    let mut line = |at: u64, colour: &str, name: &str| {
        let (y, right) = (y(at), WIDTH - 10.0);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.2}\" y2=\"{y:.2}\" stroke=\"{colour}\" stroke-dasharray=\"6 3\"/>\
             <text x=\"{:.0}\" y=\"{:.2}\" text-anchor=\"end\" fill=\"{colour}\">{name}</text>",
            LEFT - 6.0,
            y + 4.0
        );
    };
    line(bound, "#b00020", &bound.to_string());
    if let Some(capacity) = table.problem.capacity.filter(|&c| c != bound) {
        line(capacity, "#1a5fb4", &capacity.to_string());
    }
    for (at, anchor) in [(first, "start"), (last, "end")] {
        let (x, y) = (x(at), HEIGHT - BOTTOM + 16.0);
        let _ = writeln!(svg, "<text x=\"{x:.2}\" y=\"{y}\" text-anchor=\"{anchor}\">step {at}</text>");
    }
    svg.push_str("</svg>\n");
    svg
}

/// A name as XML text: its own marks and control characters, which XML cannot hold, are replaced.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => text.push('\u{fffd}'),
            c => text.push(c),
        }
    }
    text
}
