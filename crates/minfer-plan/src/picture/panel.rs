//! The map of one arena: steps across, addresses up, and below it the sum of live bytes. Takes a scene and a frame; gives
//! markup; must not know what stands beside it.

use super::canvas::{Anchor, Canvas, Frame, px};
use super::scene::{Body, Kind, Layout, Scene, peak};
use super::{palette, text};
use std::fmt::Write;

/// Height of the strip of live bytes, and its distance from the map.
const STRIP: f64 = 58.0;
const STRIP_GAP: f64 = 12.0;
/// Part of the map that stays free above the highest byte, for labels.
const HEADROOM: f64 = 0.09;

/// Pixels of steps and bytes.
pub(super) struct Scale {
    frame: Frame,
    n_steps: f64,
    top_bytes: f64,
}

impl Scale {
    pub fn new(frame: Frame, n_steps: usize, highest_bytes: u64) -> Self {
        let top_bytes = highest_bytes.max(1) as f64 / (1.0 - HEADROOM);
        Self { frame, n_steps: n_steps.max(1) as f64, top_bytes }
    }

    pub fn x(&self, step: f64) -> f64 {
        self.frame.x + self.frame.width * step / self.n_steps
    }

    fn y(&self, bytes: u64) -> f64 {
        self.frame.bottom() - self.frame.height * bytes as f64 / self.top_bytes
    }

    /// A block of bytes over some steps.
    fn block(&self, (from, to): (u32, u32), offset: u64, bytes: u64) -> Frame {
        let (x, y) = (self.x(f64::from(from)), self.y(offset.saturating_add(bytes)));
        Frame { x, y, width: self.x(f64::from(to)) - x, height: self.y(offset) - y }
    }
}

/// Draws arena `index` of one layout into `frame`.
pub(super) fn draw(canvas: &mut Canvas, scene: &Scene, layout: &Layout, index: usize, frame: Frame) {
    let bodies = scene.bodies(layout, index);
    let live_bytes = scene.live_bytes(&bodies);
    let (height, bound) = (layout.heights[index], scene.arenas[index].lower_bound_bytes);
    let map = Frame { height: frame.height - STRIP - STRIP_GAP, ..frame };
    let strip = Frame { y: map.bottom() + STRIP_GAP, height: STRIP, ..frame };
    let highest = height.max(bound);
    let scale = Scale::new(map, scene.steps.len(), highest);

    grid(canvas, &scale, highest, "address in the arena, bytes");
    for body in &bodies {
        draw_body(canvas, scene, layout, body, &scale);
    }
    let peak = peak(&live_bytes);
    let strip_scale = Scale::new(strip, scene.steps.len(), bound.max(peak.map_or(0, |(_, bytes)| bytes)));
    draw_live_bytes(canvas, &strip_scale, &live_bytes);
    for scale in [&scale, &strip_scale] {
        let y = scale.y(bound);
        canvas.line((map.x, y), (map.right(), y), "bound");
    }
    if let Some((step, bytes)) = peak {
        draw_peak(canvas, scene, &scale, strip.bottom(), step, bytes);
    }
    draw_heights(canvas, &scale, height, bound);
}

/// Lines at round addresses, their labels, and what the axis counts.
fn grid(canvas: &mut Canvas, scale: &Scale, highest: u64, label: &str) {
    let Frame { x, y, height, .. } = scale.frame;
    canvas.rect(scale.frame, r#"class="field""#);
    let every = (highest / 5).max(1).checked_next_power_of_two().unwrap_or(highest.max(1));
    let mut at = 0u64;
    while at <= highest {
        let line = scale.y(at);
        canvas.line((x, line), (scale.frame.right(), line), "grid");
        canvas.text((x - 8.0, line + 4.0), Anchor::End, "tick", &text::bytes(at));
        let Some(next) = at.checked_add(every) else { break };
        at = next;
    }
    let (x, y) = (px(x - 70.0), px(y + height / 2.0));
    canvas.raw(&format!(
        r#"<text class="axis" text-anchor="middle" transform="translate({x} {y}) rotate(-90)">{label}</text>"#
    ));
}

/// Values that share bytes on purpose, as one outlined body.
fn draw_body(canvas: &mut Canvas, scene: &Scene, layout: &Layout, body: &Body, scale: &Scale) {
    let mut kinds = Vec::new();
    for (index, shown) in &body.links {
        let item = &scene.items[*index];
        let (fill, _) = palette::fill(item.layer, scene.n_layer);
        let block = scale.block((shown.start, shown.end), body.offset, body.bytes);
        let look = format!(r#"class="value" fill="{fill}""#);
        canvas.titled_rect(block, &look, &title(scene, layout, *index));
        kinds.push((item.kind, block));
    }
    let whole = scale.block((body.live.start, body.live.end), body.offset, body.bytes);
    canvas.rect(whole, r#"class="body""#);
    for (kind, block) in kinds {
        draw_kind(canvas, kind, block);
    }
    for (index, shown) in body.links.iter().skip(1) {
        let (_, ink) = palette::fill(scene.items[*index].layer, scene.n_layer);
        draw_take_over(canvas, ink, scale.x(f64::from(shown.start)), whole);
    }
}

/// What tells kinds apart without colour: outline and pattern.
pub(super) fn draw_kind(canvas: &mut Canvas, kind: Kind, block: Frame) {
    let look = match kind {
        Kind::Value => return,
        Kind::Input | Kind::Output => r#"class="pinned""#,
        Kind::Staging => r#"class="staging" fill="url(#hatch)""#,
        Kind::Workspace => r#"class="workspace" fill="url(#dots)""#,
    };
    canvas.rect(block, look);
}

/// The mark where a value takes over the bytes: a bar with an arrow head, as high as there is room for.
pub(super) fn draw_take_over(canvas: &mut Canvas, ink: &str, x: f64, whole: Frame) {
    let half = (whole.height / 4.0).min(4.0);
    let (x1, top, middle, bottom) = (px(x), px(whole.y), whole.y + whole.height / 2.0, px(whole.bottom()));
    let (tip, up, down, middle) = (px(x + half * 1.2), px(middle - half), px(middle + half), px(middle));
    canvas.raw(&format!(
        r#"<path class="mark" stroke="{ink}" fill="{ink}" d="M{x1} {top}V{bottom}M{x1} {up}L{tip} {middle}L{x1} {down}z"/>"#
    ));
}

fn draw_live_bytes(canvas: &mut Canvas, scale: &Scale, live_bytes: &[u64]) {
    canvas.rect(scale.frame, r#"class="field""#);
    let floor = scale.frame.bottom();
    canvas.text((scale.frame.x - 8.0, floor), Anchor::End, "tick", "0 B");
    canvas.text((scale.frame.x - 8.0, scale.frame.y + 10.0), Anchor::End, "axis", "live bytes");
    let mut path = format!("M{} {}", px(scale.frame.x), px(floor));
    let mut before = None;
    for (step, &bytes) in live_bytes.iter().enumerate() {
        if before != Some(bytes) {
            let _ = write!(path, "H{}V{}", px(scale.x(step as f64)), px(scale.y(bytes)));
            before = Some(bytes);
        }
    }
    let _ = write!(path, "H{}V{}z", px(scale.frame.right()), px(floor));
    canvas.raw(&format!(r#"<path class="live" d="{path}"/>"#));
}

fn draw_peak(canvas: &mut Canvas, scene: &Scene, scale: &Scale, bottom: f64, step: usize, bytes: u64) {
    let (top, x) = (scale.frame.y, scale.x(step as f64 + 0.5));
    canvas.line((x, top - 6.0), (x, bottom), "peak");
    let name = text::name(&text::cut(&scene.steps[step].name, 48));
    let label = format!("peak: {} live at step {step}, {name}", text::bytes(bytes));
    let half = text::width(&label, 12.0) / 2.0;
    let (at, anchor) = if x - half < scale.frame.x {
        (x.min(scale.frame.x + 6.0), Anchor::Start)
    } else if x + half > scale.frame.right() {
        (scale.frame.right(), Anchor::End)
    } else {
        (x, Anchor::Middle)
    };
    canvas.text((at, top - 10.0), anchor, "said marked", &label);
}

/// Names the line of the lower bound, and the height where it is another; the bound at the right end where there is no
/// room for both.
fn draw_heights(canvas: &mut Canvas, scale: &Scale, height: u64, bound: u64) {
    let (left, right) = (scale.frame.x + 8.0, scale.frame.right() - 8.0);
    let mut label = |bytes: u64, at_right: bool, class: &str, said: &str| {
        let (y, width) = (scale.y(bytes), text::width(said, 12.0));
        let x = if at_right { right - width } else { left };
        let pill = Frame { x: x - 4.0, y: y - 18.0, width: width + 8.0, height: 15.0 };
        canvas.rect(pill, r#"class="pill""#);
        canvas.text((x, y - 6.0), Anchor::Start, class, said);
    };
    if height == bound {
        let said = format!("height = lower bound = {}: no placement is smaller", text::bytes(bound));
        return label(bound, false, "said marked", &said);
    }
    let is_near = scale.y(bound) - scale.y(height) < 18.0;
    label(height, false, "said", &format!("height {}", text::bytes(height)));
    label(bound, is_near, "said marked", &format!("lower bound {}", text::bytes(bound)));
    let y = scale.y(height);
    canvas.line((scale.frame.x, y), (scale.frame.right(), y), "height");
}

/// What a tooltip says of an item.
fn title(scene: &Scene, layout: &Layout, index: usize) -> String {
    let item = &scene.items[index];
    let (from, to) = item.live;
    let offset = layout.offsets[index];
    let mut title = format!(
        "{}\n{} {}\n{} bytes at offset {}\nlive in steps {from} to {}",
        text::name(&item.name),
        item.op,
        item.shape,
        text::grouped(item.bytes),
        text::grouped(offset),
        to.saturating_sub(1),
    );
    match item.kind {
        Kind::Input => title.push_str("\npinned: filled before the first step"),
        Kind::Output => title.push_str("\npinned: read after the last step"),
        Kind::Value | Kind::Staging | Kind::Workspace => {}
    }
    if let Some(take_over) = &layout.takes_over[index] {
        let of = text::name(&scene.items[take_over.item].name);
        let _ = write!(title, "\nin place of {of}: {}", take_over.why);
    }
    title
}
