//! The passes, in order. Takes a graph and capabilities; gives a verified [`Plan`]. The one visible list of passes:
//!
//! 1. *assign*: a backend per node; first, since what may fuse depends on where it runs.
//! 2. *fuse*: several nodes become one kernel; before *lower*, since quantising looks at the products that remain.
//! 3. *lower*: products get their operand quantised once.
//! 4. *transfer*: values that cross backends get a copy; last rewrite, since it needs the final readers.
//! 5. *order*: where the graph leaves a choice, the order in which less is live at once; after *transfer*, since copies are
//!    steps too, and before *lifetimes*, which follow the order.
//! 6. *lifetimes*: live ranges in execution order, and which values are written in place.
//! 7. *place*: offsets.
//! 8. *verify*: changes nothing, only checks, and shares no code with 6 and 7.

use crate::draft::{Backends, Draft};
use crate::error::PlanError;
use crate::explain::order_words;
use crate::fingerprint::fingerprint;
use crate::passes::{self, Ordered};
use crate::plan::Plan;
use crate::print::plan_text;
use minfer_backend::Capabilities;
use minfer_graph::{Annotation, Graph, to_text, verify};
use minfer_memplan::Strategy;
use std::sync::Arc;

/// How to plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlanOptions {
    /// How offsets are found.
    pub strategy: Strategy,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self { strategy: Strategy::Planned }
    }
}

/// The plan as text after one pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassRecord {
    /// Name of the pass.
    pub pass: &'static str,
    /// The graph or plan after it; `None` when it is the same as before.
    pub text: Option<String>,
    /// What the pass has to say of it: of *order*, what it saved.
    pub note: Option<String>,
}

/// Plans a graph for these backends.
pub fn plan(graph: &Graph, backends: &Backends, options: PlanOptions) -> Result<Plan, PlanError> {
    run(graph, backends, options, &mut |_, _, _| {})
}

/// The same, with the text after every pass.
pub fn plan_recorded(
    graph: &Graph,
    backends: &Backends,
    options: PlanOptions,
) -> Result<(Plan, Vec<PassRecord>), PlanError> {
    let mut records: Vec<PassRecord> = Vec::new();
    let mut last = String::new();
    let plan = run(graph, backends, options, &mut |pass, text, note| {
        let text = text();
        let changed = text != last;
        records.push(PassRecord { pass, text: changed.then(|| text.clone()), note });
        last = text;
    })?;
    Ok((plan, records))
}

type Observer<'a> = dyn FnMut(&'static str, &dyn Fn() -> String, Option<String>) + 'a;

fn run(graph: &Graph, backends: &Backends, options: PlanOptions, seen: &mut Observer) -> Result<Plan, PlanError> {
    verify(graph)?;
    let draft = passes::assign(graph, backends)?;
    seen("assign", &|| draft_text(&draft, backends), None);
    let draft = passes::fuse(draft, backends);
    seen("fuse", &|| draft_text(&draft, backends), None);
    let draft = passes::lower(&draft, backends);
    seen("lower", &|| draft_text(&draft, backends), None);
    let draft = passes::transfer(&draft);
    seen("transfer", &|| draft_text(&draft, backends), None);
    let (draft, ordered) = passes::order(draft, backends);
    seen("order", &|| draft_text(&draft, backends), Some(ordered_text(&ordered, backends)));
    verify(&draft.graph)?;
    let lifetimes = passes::lifetimes(&draft, backends);
    let plan = passes::place(draft, lifetimes, &ordered, backends, options.strategy, fingerprint(graph))?;
    seen("lifetimes and place", &|| plan_text(&plan), None);
    passes::verify_promises(&plan, graph)?;
    seen("verify", &|| plan_text(&plan), None);
    Ok(plan)
}

fn draft_text(draft: &Draft, backends: &Backends) -> String {
    let notes: Vec<Annotation> = draft
        .backends
        .iter()
        .map(|id| Annotation { backend: Some(backends[id.index()].name().to_string()), ..Default::default() })
        .collect();
    to_text(&draft.graph, &notes)
}

/// One line per backend that has values.
fn ordered_text(ordered: &[Ordered], backends: &Backends) -> String {
    let with_values = ordered.iter().zip(backends).filter(|(ordered, _)| ordered.given_bytes > 0);
    let line = |(of, caps): (&Ordered, &Arc<dyn Capabilities>)| {
        format!("{}: {}", caps.name(), order_words(of.given_bytes, of.bytes, of.is_least))
    };
    with_values.map(line).collect::<Vec<_>>().join("\n")
}
