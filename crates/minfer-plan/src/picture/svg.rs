//! A plan as one still picture. Takes a plan, a ledger and a caption; gives an SVG document without scripts. The paper is
//! part of it, so it reads the same on light and dark pages.

use super::canvas::{Anchor, Canvas, Frame, px};
use super::panel::{self, Scale};
use super::scene::{Kind, Layout, Scene};
use super::{Caption, ledger, palette, text};
use crate::ledger::Ledger;
use crate::plan::Plan;

const WIDTH: f64 = 1240.0;
const MARGIN: f64 = 28.0;
/// Left edge and width of the maps.
const MAP_X: f64 = 96.0;
const MAP_WIDTH: f64 = 800.0;
/// Left edge and width of the column of bars.
const BARS_X: f64 = 944.0;
const BARS_WIDTH: f64 = 256.0;
/// Where the first map begins, and its height where it is the only one, or one of several.
const MAPS_Y: f64 = 156.0;
const MAP_HEIGHT: f64 = 500.0;
const MAP_HEIGHT_OF_SEVERAL: f64 = 330.0;
/// From one map to the next: heading and label of the peak.
const BETWEEN: f64 = 64.0;

/// Widths in the legend.
const RAMP_WIDTH: f64 = 96.0;
const SWATCH_WIDTH: f64 = 24.0;

const STYLE: &str = include_str!("svg.css");

/// Draws a plan: steps across, addresses up, one rectangle per value, coloured by layer; all other memory as bars beside.
///
/// The answer is the same, byte for byte, for the same arguments.
pub fn svg(plan: &Plan, ledger: &Ledger, caption: &Caption) -> String {
    let mut canvas = Canvas::default();
    let scene = Scene::of(plan);
    let layout = &scene.layouts[0];
    let maps_end = draw_maps(&mut canvas, &scene, layout);
    let bars_end = draw_bars(&mut canvas, &scene, layout, ledger);
    draw_steps(&mut canvas, &scene, maps_end + 8.0);
    let end = draw_legend(&mut canvas, &scene, (maps_end + 88.0).max(bars_end + 16.0));
    document(&canvas, caption, layout, end + 24.0)
}

fn document(canvas: &Canvas, caption: &Caption, layout: &Layout, height: f64) -> String {
    let model = text::name(&caption.model);
    let (width, paper_width, paper_height, height) = (px(WIDTH), px(WIDTH - 1.0), px(height - 1.0), px(height));
    let settings = text::escape(&text::cut(&caption.settings, 160));
    let strategy = &layout.strategy;
    let mut top = Canvas::default();
    top.text((MARGIN, 44.0), Anchor::Start, "title", &text::escape(&text::cut(&caption.model, 80)));
    top.text((MARGIN, 68.0), Anchor::Start, "settings", &format!("{settings} · placement: {strategy}"));
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-labelledby="picture-title">
<title id="picture-title">Memory plan of {model}: execution steps across, addresses up</title>
<style>
{STYLE}</style>
<defs>
<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="3" height="6" fill="#fff" fill-opacity=".75"/></pattern>
<pattern id="dots" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="#fff" fill-opacity=".55"/><circle cx="2.5" cy="2.5" r="1.3" fill="#10141a"/></pattern>
</defs>
<rect class="paper" x="0.5" y="0.5" width="{paper_width}" height="{paper_height}" rx="10"/>
{}{}</svg>
"##,
        top.markup, canvas.markup,
    )
}

/// Draws all arenas below each other; gives where they end.
fn draw_maps(canvas: &mut Canvas, scene: &Scene, layout: &Layout) -> f64 {
    let height = if scene.arenas.len() > 1 { MAP_HEIGHT_OF_SEVERAL } else { MAP_HEIGHT };
    let mut y = MAPS_Y;
    for (index, arena) in scene.arenas.iter().enumerate() {
        let frame = Frame { x: MAP_X, y, width: MAP_WIDTH, height };
        let said = format!("Arena {}: {}", text::name(&arena.name), text::bytes(layout.heights[index]));
        canvas.text((MAP_X, y - 34.0), Anchor::Start, "head", &said);
        panel::draw(canvas, scene, layout, index, frame);
        y += height + BETWEEN;
    }
    if scene.arenas.is_empty() {
        canvas.text((MAP_X, y), Anchor::Start, "said", "no value of this plan is in an arena");
        return y;
    }
    y - BETWEEN
}

fn draw_bars(canvas: &mut Canvas, scene: &Scene, layout: &Layout, ledger: &Ledger) -> f64 {
    let mut column = Frame { x: BARS_X, y: MAPS_Y - 34.0, width: BARS_WIDTH, height: 0.0 };
    ledger::draw_owners(canvas, ledger, layout, column);
    column.y += ledger::height(ledger::rows(ledger, layout).len()) + 30.0;
    for arena in 0..scene.arenas.len() {
        ledger::draw_strategies(canvas, scene, layout, arena, column);
        column.y += ledger::height(4) + 30.0;
    }
    column.y - 30.0
}

/// The axis of steps: a band coloured by layer, and numbers.
fn draw_steps(canvas: &mut Canvas, scene: &Scene, y: f64) {
    let n_steps = scene.steps.len();
    let band = Frame { x: MAP_X, y, width: MAP_WIDTH, height: 13.0 };
    let scale = Scale::new(band, n_steps, 1);
    canvas.text((MAP_X - 8.0, y + 10.5), Anchor::End, "axis", "layer");
    let mut start = 0;
    for run in scene.steps.chunk_by(|a, b| a.layer == b.layer) {
        let (x, end) = (scale.x(start as f64), start + run.len());
        let width = scale.x(end as f64) - x;
        let (fill, ink) = palette::fill(run[0].layer, scene.n_layer);
        canvas.rect(Frame { x, y, width, height: band.height }, &format!(r#"class="band" fill="{fill}""#));
        let number = run[0].layer.map(|layer| layer.to_string()).unwrap_or_default();
        if text::width(&number, 10.0) + 4.0 <= width {
            let at = px(x + width / 2.0);
            let baseline = px(y + 10.0);
            canvas.raw(&format!(
                r#"<text class="number" x="{at}" y="{baseline}" style="fill:{ink}" text-anchor="middle">{number}</text>"#
            ));
        }
        start = end;
    }
    let every = round_interval(n_steps);
    for step in (0..n_steps).step_by(every) {
        let x = scale.x(step as f64 + 0.5);
        canvas.line((x, y + 14.0), (x, y + 19.0), "tickmark");
        canvas.text((x, y + 31.0), Anchor::Middle, "tick", &step.to_string());
    }
    let label = format!("execution step ({n_steps} steps, in the order they run)");
    canvas.text((MAP_X + MAP_WIDTH / 2.0, y + 50.0), Anchor::Middle, "axis", &label);
}

/// 1, 2 or 5 times a power of ten, so that about ten fit into `n`.
fn round_interval(n: usize) -> usize {
    let mut unit = 1usize;
    loop {
        for times in [1, 2, 5] {
            let every = unit.saturating_mul(times);
            if n / every <= 12 {
                return every;
            }
        }
        unit = unit.saturating_mul(10);
    }
}

/// Draws what the looks mean, in as many rows as it takes; gives where it ends.
fn draw_legend(canvas: &mut Canvas, scene: &Scene, y: f64) -> f64 {
    let mut at = (MARGIN, y);
    if scene.n_layer > 0 {
        let said = if scene.n_layer == 1 { "layer 0".into() } else { format!("layers 0 to {}", scene.n_layer - 1) };
        let (x, y) = legend_entry(canvas, &mut at, RAMP_WIDTH, &said);
        let cells = scene.n_layer.min(32);
        let width = RAMP_WIDTH / f64::from(cells);
        for cell in 0..cells {
            let layer = u64::from(cell) * u64::from(scene.n_layer - 1) / u64::from(cells.max(2) - 1);
            let (fill, _) = palette::fill(u32::try_from(layer).ok(), scene.n_layer);
            let frame = Frame { x: x + width * f64::from(cell), y, width, height: 14.0 };
            canvas.rect(frame, &format!(r#"fill="{fill}""#));
        }
    }
    let (teal, _) = palette::fill(Some(1), 3);
    for (kind, fill, said) in [
        (Kind::Value, palette::NO_LAYER, "no layer"),
        (Kind::Input, palette::NO_LAYER, "pinned (input, output)"),
        (Kind::Staging, &teal, "copy on another backend"),
        (Kind::Workspace, &teal, "workspace"),
    ] {
        if matches!(kind, Kind::Staging | Kind::Workspace) && !scene.items.iter().any(|item| item.kind == kind) {
            continue;
        }
        let (x, y) = legend_entry(canvas, &mut at, SWATCH_WIDTH, said);
        let swatch = Frame { x, y, width: SWATCH_WIDTH, height: 14.0 };
        canvas.rect(swatch, &format!(r#"fill="{fill}""#));
        canvas.rect(swatch, r#"class="body""#);
        panel::draw_kind(canvas, kind, swatch);
    }
    let (x, y) = legend_entry(canvas, &mut at, SWATCH_WIDTH, "in place: takes over the bytes");
    let swatch = Frame { x, y, width: SWATCH_WIDTH, height: 14.0 };
    canvas.rect(swatch, &format!(r#"fill="{teal}""#));
    canvas.rect(swatch, r#"class="body""#);
    panel::draw_take_over(canvas, "#ffffff", x + SWATCH_WIDTH / 2.0, swatch);
    let (x, y) = legend_entry(canvas, &mut at, SWATCH_WIDTH, "lower bound");
    canvas.line((x, y + 7.0), (x + SWATCH_WIDTH, y + 7.0), "bound");
    let (x, y) = legend_entry(canvas, &mut at, 6.0, "peak step");
    canvas.line((x + 3.0, y - 2.0), (x + 3.0, y + 16.0), "peak");
    at.1 + 14.0
}

/// Writes what a swatch of this width means, on the next row if there is no room; gives the swatch's corner.
fn legend_entry(canvas: &mut Canvas, at: &mut (f64, f64), swatch_width: f64, said: &str) -> (f64, f64) {
    let width = swatch_width + 7.0 + text::width(said, 12.0);
    if at.0 + width > WIDTH - MARGIN {
        *at = (MARGIN, at.1 + 24.0);
    }
    let corner = *at;
    canvas.text((corner.0 + swatch_width + 7.0, corner.1 + 11.0), Anchor::Start, "said", said);
    at.0 += width + 20.0;
    corner
}
