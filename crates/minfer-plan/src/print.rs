//! A plan as text. Takes a plan; gives what people and golden tests read.

use crate::plan::{Place, Plan};
use minfer_graph::{Annotation, KvSide, to_text};
use std::fmt::Write;

/// What the plan knows of each node, for the graph's own printers.
pub fn annotations(plan: &Plan) -> Vec<Annotation> {
    let name = |id: minfer_backend::BackendId| {
        plan.arena(id).map_or_else(|| format!("backend {}", id.0), |arena| arena.name.clone())
    };
    plan.values
        .iter()
        .zip(&plan.backends)
        .map(|(value, &backend)| {
            let place = match value.place {
                Place::Arena { offset, bytes } => match value.alias {
                    None => format!("{offset}+{bytes}"),
                    Some(alias) => {
                        format!("{offset}+{bytes} in place of %{}, {}", alias.of.0, alias.reason.words())
                    }
                },
                Place::Kv { layer, side } => {
                    format!("kv.{layer}.{}", if side == KvSide::K { "k" } else { "v" })
                }
                Place::Nowhere => "nowhere (dead)".to_string(),
            };
            Annotation {
                backend: Some(name(backend)),
                live: (!value.live.is_empty()).then_some((value.live.start, value.live.end)),
                place: Some(place),
            }
        })
        .collect()
}

/// The nodes with their places, then one line per arena.
pub fn plan_text(plan: &Plan) -> String {
    let mut text = to_text(&plan.graph, &annotations(plan));
    for arena in &plan.arenas {
        let f = &arena.figures;
        let _ = writeln!(
            text,
            "arena {} ({}): {} bytes; naive {}, pool {} in {} buffers, planned {}, lower bound {} at step {}",
            arena.name,
            arena.strategy,
            arena.bytes,
            f.naive_bytes,
            f.pool_bytes,
            f.pool_buffers,
            f.planned_bytes,
            f.lower_bound_bytes,
            arena.certificate.lower_bound.step
        );
    }
    text
}
