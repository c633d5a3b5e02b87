//! `minfer graph`: the compute graph and its plan. Reads headers only, allocates nothing of the plan.

use super::{capabilities, open};
use crate::args::GraphOutput;
use crate::exit::Outcome;
use crate::output;
use crate::resolve::Graph;
use anyhow::Result;
use minfer::EngineConfig;
use minfer_graph::{to_dot, to_json, to_text};
use minfer_model::{build_graph, load_spec};
use minfer_plan::{PlanOptions, annotations, plan, plan_recorded, plan_text};

/// Prints the planned graph, or the graph after every pass.
pub fn graph(settings: &Graph) -> Result<Outcome> {
    let file = open::header(&settings.model)?;
    let spec = load_spec(&file)?;
    let n_ctx = minfer::choose_n_ctx(settings.n_ctx, 0, Some(0), spec.n_ctx_train)?.n_ctx;
    let config = EngineConfig { n_ctx, ..settings.compute.config }.checked()?;
    let capabilities = capabilities(&settings.compute);
    let graph = build_graph(&spec, &config.graph_params(settings.kind, 0)?)?;
    let options = PlanOptions { strategy: config.strategy };
    if settings.passes {
        let (_, records) = plan_recorded(&graph, &capabilities, options)?;
        output::answer(|out| {
            writeln!(out, "== as built\n{}", to_text(&graph, &[]))?;
            for record in &records {
                let text = record.text.as_deref().unwrap_or("same as above\n");
                writeln!(out, "== after {}\n{text}", record.pass)?;
                if let Some(note) = &record.note {
                    writeln!(out, "{note}\n")?;
                }
            }
            Ok(())
        })?;
        return Ok(Outcome::Done);
    }
    let plan = plan(&graph, &capabilities, options)?;
    match settings.output {
        GraphOutput::Text => output::answer(|out| write!(out, "{}", plan_text(&plan)))?,
        GraphOutput::Dot => output::answer(|out| write!(out, "{}", to_dot(&plan.graph, &annotations(&plan))))?,
        GraphOutput::Json => output::answer_json(&to_json(&plan.graph, &annotations(&plan)))?,
    }
    Ok(Outcome::Done)
}
