//! Text, DOT and JSON of a graph. Takes a graph and one optional [`Annotation`] per node (from a plan); gives strings;
//! must not know plans.

use crate::graph::{Graph, NodeId};
use serde_json::{Value, json};
use std::fmt::Write;

/// What a plan knows of a node.
#[derive(Clone, Debug, Default)]
pub struct Annotation {
    /// Name of its backend.
    pub backend: Option<String>,
    /// Half-open range of steps in which its value is live.
    pub live: Option<(u32, u32)>,
    /// Where its value is, or why it has no place.
    pub place: Option<String>,
}

/// One line per node: id, name, op, inputs, weights, shape, type and what the plan adds.
pub fn to_text(graph: &Graph, notes: &[Annotation]) -> String {
    let mut text = String::new();
    for id in graph.ids() {
        let node = graph.node(id);
        let inputs: Vec<String> = node.inputs.iter().map(|i| format!("%{}", i.0)).collect();
        let _ = write!(text, "%{:<4} {:<28} {:<12} ({})", id.0, node.name, node.op.name(), inputs.join(", "));
        for weight in &node.weights {
            let weight = &graph.weights[weight.index()];
            let _ = write!(text, " {}:{}", weight.name, weight.dtype);
        }
        let _ = write!(text, " -> {} {}", node.shape, node.ty);
        if let Some(note) = notes.get(id.index()) {
            if let Some(backend) = &note.backend {
                let _ = write!(text, " @{backend}");
            }
            if let Some((from, to)) = note.live {
                let _ = write!(text, " live {from}..{to}");
            }
            if let Some(place) = &note.place {
                let _ = write!(text, " at {place}");
            }
        }
        if graph.outputs.contains(&id) {
            text.push_str(" output");
        }
        text.push('\n');
    }
    text
}

/// Graphviz: one box per node, coloured by backend.
pub fn to_dot(graph: &Graph, notes: &[Annotation]) -> String {
    let mut text =
        String::from("digraph minfer {\n  rankdir=TB;\n  node [shape=box, style=filled, fontname=monospace];\n");
    for id in graph.ids() {
        let node = graph.node(id);
        let note = notes.get(id.index());
        let colour = colour_of(note.and_then(|n| n.backend.as_deref()));
        let live = note.and_then(|n| n.live).map(|(a, b)| format!("\\nlive {a}..{b}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "  n{} [label=\"%{} {}\\n{} {} {}{live}\", fillcolor=\"{colour}\"];",
            id.0,
            id.0,
            escape(&node.name),
            node.op.name(),
            node.shape,
            node.ty
        );
        for input in &node.inputs {
            let _ = writeln!(text, "  n{} -> n{};", input.0, id.0);
        }
    }
    text.push_str("}\n");
    text
}

/// An object with the parameters, the nodes and the outputs.
pub fn to_json(graph: &Graph, notes: &[Annotation]) -> Value {
    let node_json = |id: NodeId| {
        let node = graph.node(id);
        let note = notes.get(id.index()).cloned().unwrap_or_default();
        let weights: Vec<&str> = node.weights.iter().map(|w| graph.weights[w.index()].name.as_str()).collect();
        json!({
            "id": id.0, "name": node.name, "op": node.op.name(), "attributes": node.op, "layer": node.layer,
            "inputs": node.inputs, "weights": weights, "shape": node.shape.to_string(), "type": node.ty.to_string(),
            "backend": note.backend, "live": note.live, "place": note.place,
        })
    };
    json!({
        "params": graph.params,
        "nodes": graph.ids().map(node_json).collect::<Vec<_>>(),
        "outputs": graph.outputs,
    })
}

/// Okabe and Ito's palette (2008), which colour-blind readers can tell apart; the same name always has the same colour.
fn colour_of(backend: Option<&str>) -> &'static str {
    const PALETTE: [&str; 5] = ["#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442"];
    match backend {
        None => "#FFFFFF",
        Some(name) => {
            let sum: usize = name.bytes().map(usize::from).sum();
            PALETTE[sum % PALETTE.len()]
        }
    }
}

fn escape(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"")
}
