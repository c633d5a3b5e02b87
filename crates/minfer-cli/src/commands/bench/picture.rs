//! Results as bars. Takes a report; gives an SVG document without scripts, the same for the same report.
//!
//! The colours are Okabe and Ito's (Color Universal Design, 2008), which all kinds of colour vision tell apart; every bar
//! also has its name and its number beside it.

use super::Report;
use super::rounds::{Measured, Test};
use crate::describe;
use crate::output::shortened;
use minfer_plan::picture::escape;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const MARGIN: f64 = 28.0;
/// Where bars begin and how long the longest is; the number of each follows it.
const BARS_X: f64 = 350.0;
const BARS_WIDTH: f64 = 420.0;
const ROW: f64 = 30.0;
const BAR: f64 = 18.0;

const STYLE: &str = "text{font-family:system-ui,\"Segoe UI\",\"Helvetica Neue\",\"DejaVu Sans\",Arial,sans-serif;fill:#1c232b;font-size:13px}\
.title{font-size:18px;font-weight:650}.note{fill:#55606b;font-size:12px}.head{font-weight:650}\
.number{font-variant-numeric:tabular-nums}.axis{stroke:#9aa4ae}.sd{stroke:#10141a;stroke-width:1.5}";

impl Report<'_> {
    /// One panel per kind of test, since their scales differ.
    pub(super) fn picture(&self) -> String {
        let mut body = String::new();
        let mut y = MARGIN + 18.0;
        for (index, line) in self.lines().iter().enumerate() {
            text(&mut body, MARGIN, y, if index == 0 { "title" } else { "note" }, &shortened(line, 90));
            y += if index == 0 { 22.0 } else { 17.0 };
        }
        for test in [Test::Prefill, Test::Decode, Test::Mixed] {
            let results: Vec<&Measured> = self.results.iter().filter(|measured| measured.test == test).collect();
            if !results.is_empty() {
                y = self.panel(&mut body, y + 20.0, test, &results);
            }
        }
        let height = y + MARGIN - 8.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-label=\"tokens per second\">\n\
             <style>{STYLE}</style>\n\
             <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"10\" fill=\"#fcfcfb\" stroke=\"#d5d9de\"/>\n{body}</svg>\n",
            WIDTH - 1.0,
            height - 1.0,
        )
    }

    /// Draws the bars of one kind of test below `y`; gives where they end.
    fn panel(&self, body: &mut String, y: f64, test: Test, results: &[&Measured]) -> f64 {
        text(body, MARGIN, y, "head", &format!("{}, tokens/s: mean and standard deviation", test.name()));
        let longest = results.iter().map(|measured| measured.tps.mean + measured.tps.sd).fold(0.0, f64::max);
        let scale = if longest > 0.0 { BARS_WIDTH / longest } else { 0.0 };
        let top = y + 12.0;
        for (index, measured) in results.iter().enumerate() {
            let (tps, roofline) = (&measured.tps, self.roofline(measured));
            let middle = top + ROW * (index as f64 + 0.5);
            let (width, low, high) =
                (tps.mean * scale, (tps.mean - tps.sd).max(0.0) * scale, (tps.mean + tps.sd) * scale);
            text(body, MARGIN, middle + 4.5, "", &name(measured, results));
            let _ = writeln!(
                body,
                "<rect x=\"{BARS_X}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\" fill=\"{}\"/>",
                middle - BAR / 2.0,
                colour(test),
            );
            if tps.sd > 0.0 {
                let (low, high) = (BARS_X + low, BARS_X + high);
                let (up, down) = (middle - 4.0, middle + 4.0);
                let _ = writeln!(
                    body,
                    "<path class=\"sd\" d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {up:.1}V{down:.1}M{high:.1} {up:.1}V{down:.1}\"/>",
                );
            }
            let share = match test {
                Test::Prefill => format!(" · {:.0} % of int8", roofline.int8_share * 100.0),
                Test::Decode => format!(" · {:.0} % of reads", roofline.read_share * 100.0),
                Test::Mixed => String::new(),
            };
            text(body, BARS_X + high + 8.0, middle + 4.5, "number", &format!("{:.1}{share}", tps.mean));
        }
        let end = top + ROW * results.len() as f64;
        let _ = writeln!(body, "<path class=\"axis\" d=\"M{BARS_X} {top:.1}V{end:.1}\"/>");
        end
    }
}

/// The test, and of its settings those that differ between results.
fn name(measured: &Measured, results: &[&Measured]) -> String {
    let mut name = measured.label();
    let differs = |of: &dyn Fn(&Measured) -> u64| results.iter().any(|other| of(other) != of(measured));
    let setup = &measured.setup;
    if differs(&|m| m.setup.threads.get() as u64) {
        name.push_str(&format!(", {}", describe::threads(setup.threads)));
    }
    if differs(&|m| m.setup.batch.into()) {
        name.push_str(&format!(", batch {}", setup.batch));
    }
    if differs(&|m| m.setup.depth.into()) {
        name.push_str(&format!(", depth {}", setup.depth));
    }
    if results.iter().any(|other| other.setup.cache_type != setup.cache_type) {
        name.push_str(&format!(", {}", setup.cache_type.value_type()));
    }
    name
}

/// Blue, vermilion and bluish green.
fn colour(test: Test) -> &'static str {
    match test {
        Test::Prefill => "#0072b2",
        Test::Decode => "#d55e00",
        Test::Mixed => "#009e73",
    }
}

fn text(body: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let _ = writeln!(body, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>", escape(words));
}
