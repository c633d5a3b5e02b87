//! SVG elements as text. Takes positions in pixels, y down, and escaped text; gives markup; must not know plans.

use std::fmt::Write;

/// Where text is anchored.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A rectangle on the paper.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Frame {
    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// Markup so far.
#[derive(Default)]
pub(super) struct Canvas {
    pub markup: String,
}

impl Canvas {
    /// Any markup, on its own line.
    pub fn raw(&mut self, markup: &str) {
        self.markup.push_str(markup);
        self.markup.push('\n');
    }

    /// A rectangle; `attributes` say how it looks.
    pub fn rect(&mut self, frame: Frame, attributes: &str) {
        let Frame { x, y, width, height } = frame;
        let (x, y, width, height) = (px(x), px(y), px(width), px(height));
        let _ = writeln!(self.markup, r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" {attributes}/>"#);
    }

    /// The same with a tooltip (already escaped).
    pub fn titled_rect(&mut self, frame: Frame, attributes: &str, title: &str) {
        let Frame { x, y, width, height } = frame;
        let (x, y, width, height) = (px(x), px(y), px(width), px(height));
        let _ = writeln!(
            self.markup,
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" {attributes}><title>{title}</title></rect>"#
        );
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = ((px(from.0), px(from.1)), (px(to.0), px(to.1)));
        let _ = writeln!(self.markup, r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#);
    }

    /// One line of text (already escaped), `at` on its baseline.
    pub fn text(&mut self, at: (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let (x, y) = (px(at.0), px(at.1));
        let _ = writeln!(self.markup, r#"<text class="{class}" x="{x}" y="{y}"{anchor}>{text}</text>"#);
    }
}

/// Pixels with at most two decimals.
pub(super) fn px(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
