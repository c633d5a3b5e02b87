//! Plans as a page to explore. Takes up to one plan per strategy of one graph, a ledger and a caption; gives one HTML
//! document that loads nothing. What is drawn travels as JSON and is drawn by the script.

use super::scene::Scene;
use super::{Caption, PictureError, ledger, palette, text};
use crate::ledger::Ledger;
use crate::plan::Plan;
use serde::Serialize;

const FRAME: &str = include_str!("page/frame.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = concat!(
    include_str!("page/data.js"),
    include_str!("page/map.js"),
    include_str!("page/beside.js"),
    include_str!("page/actions.js"),
);

/// All that the script needs to know.
#[derive(Serialize)]
struct Data<'a> {
    scene: &'a Scene,
    /// Fill, and the colour of marks on it, of each layer.
    layers: Vec<(String, &'static str)>,
    no_layer: (String, &'static str),
    owners: Vec<ledger::Row>,
}

/// Draws plans of one graph, one per strategy, as a page with a switch between them; the first is shown first.
///
/// Give it the plans by `planned`, `pool` and `naive`; one alone makes a page without a switch. The answer is the same,
/// byte for byte, for the same arguments.
///
/// # Errors
///
/// Without a plan, with two plans of one strategy, and with plans of different graphs.
pub fn html(plans: &[&Plan], ledger: &Ledger, caption: &Caption) -> Result<String, PictureError> {
    let scene = Scene::of_all(plans)?;
    let data = Data {
        layers: (0..scene.n_layer).map(|layer| palette::fill(Some(layer), scene.n_layer)).collect(),
        no_layer: palette::fill(None, scene.n_layer),
        owners: ledger::rows(ledger, &scene.layouts[0]),
        scene: &scene,
    };
    // Strings, integers and lists of them are always JSON.
    let json = serde_json::to_string(&data).unwrap_or_default();
    let slots = [
        ("model", text::name(&caption.model)),
        ("settings", text::escape(&text::cut(&caption.settings, 160))),
        ("style", STYLE.to_string()),
        ("data", text::for_script(&json)),
        ("script", SCRIPT.to_string()),
    ];
    Ok(fill(FRAME, &slots))
}

/// The template with its `{{slots}}` filled. Slots are looked for in the template only, never in what was filled in.
fn fill(template: &str, slots: &[(&str, String)]) -> String {
    let mut page = String::new();
    let mut pieces = template.split("{{");
    page.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (slot, rest) = piece.split_once("}}").unwrap_or((piece, ""));
        let content = slots.iter().find(|(name, _)| *name == slot);
        page.push_str(content.map_or("", |(_, content)| content));
        page.push_str(rest);
    }
    page
}
