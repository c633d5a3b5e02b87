//! A blueprint as text and as JSON. Takes what was planned; gives lines and one object; plans nothing.

use super::Planned;
use crate::describe;
use crate::limit::Bound;
use crate::output::{Table, mib};
use anyhow::Result;
use minfer::{BackendKind, Change, Fit, Fusion, Ledger, Levers, Owner, Shortfall};
use minfer_plan::PlanRecord;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Model, settings, the ledger, the arenas and what the budget says.
pub fn text(out: &mut dyn Write, planned: &Planned<'_>) -> io::Result<()> {
    let (model, config) = (planned.replanner.model, planned.replanner.config);
    writeln!(out, "model    {}", describe::model(&model.spec, &model.file))?;
    match planned.fit_words() {
        Some(words) => writeln!(out, "fit      {words}")?,
        None => writeln!(out, "context  {}", describe::context(planned.context, model.spec.n_ctx_train))?,
    }
    let (n_ctx, batch, slots) = (config.n_ctx, config.token_capacity(), config.n_sequences);
    writeln!(out, "sizes    context {n_ctx}, batch {batch}, slots {slots}")?;
    writeln!(out)?;
    ledger(out, &planned.blueprint.ledger)?;
    if planned.settings.compute.backend == BackendKind::Reference {
        writeln!(out, "beside these, the reference backend takes temporaries of each step from the heap, unplanned")?;
    }
    writeln!(out)?;
    let mut table = Table::new(&[1, 2, 3, 4]);
    table.row(["arena", "naive", "pool", "planned", "lower bound", ""]);
    for arena in &planned.blueprint.plan.arenas {
        let f = arena.figures;
        let bytes = [f.naive_bytes, f.pool_bytes, f.planned_bytes, f.lower_bound_bytes].map(mib);
        let verdict = match f.planned_bytes.saturating_sub(f.lower_bound_bytes) {
            0 => "planned is proven minimal".to_owned(),
            gap => format!("planned is at most {gap} bytes above the minimum"),
        };
        table.row([arena.name.clone()].into_iter().chain(bytes).chain([verdict]));
    }
    table.write(out, "")?;
    verdict(out, planned)
}

/// What the bound says, if anybody set one or it says no.
pub fn verdict(out: &mut dyn Write, planned: &Planned<'_>) -> io::Result<()> {
    let Some(bound) = planned.bound else { return Ok(()) };
    writeln!(out)?;
    match &planned.shortfall {
        None => {
            let spare = bound.budget.bytes.saturating_sub(bound.budget.needed(&planned.blueprint.ledger));
            writeln!(out, "budget   {}: fits, {} to spare", bound.short_words(), mib(spare))
        }
        Some(shortfall) => describe::shortfall(shortfall, Levers::default(), describe::flag)
            .iter()
            .try_for_each(|line| writeln!(out, "{line}")),
    }
}

/// One row per line, and the sum.
fn ledger(out: &mut dyn Write, ledger: &Ledger) -> io::Result<()> {
    let mut table = Table::new(&[1, 2]);
    table.row(["owner", "bytes", "", "what"]);
    for line in &ledger.lines {
        table.row([line.name.clone(), line.bytes.to_string(), mib(line.bytes), line.detail.clone()]);
    }
    table.row(["total".to_owned(), ledger.total().to_string(), mib(ledger.total())]);
    if ledger.on_demand() > 0 {
        let (bytes, what) = (ledger.on_demand(), "taken only as far as it is read".to_owned());
        table.row(["of it on demand".to_owned(), bytes.to_string(), mib(bytes), what]);
    }
    table.write(out, "")
}

/// Everything, for programs and for `--diff`.
pub fn json(planned: &Planned<'_>) -> Result<Value> {
    let (settings, config, blueprint) = (planned.settings, planned.replanner.config, &planned.blueprint);
    let (ledger, figures) = (&blueprint.ledger, blueprint.figures());
    let mut object = json!({
        "model": settings.model.file_name().map(|name| name.display().to_string()),
        "settings": {
            "n_ctx": config.n_ctx,
            "ubatch": config.n_ubatch,
            "slots": config.n_sequences,
            "cache_type": config.cache_type.value_type().to_string(),
            "alloc": config.strategy.to_string(),
            "backend": settings.compute.backend.name(),
            "threads": settings.compute.threads,
            "fusion": if config.fusion == Fusion::ALL { "all".into() } else { describe::flag(Change::Fusion(config.fusion)) },
        },
        "weights_bytes": ledger.sum(Owner::Weights),
        "kv_bytes": ledger.sum(Owner::Kv),
        "arena": {
            "naive_bytes": figures.naive_bytes,
            "pool_bytes": figures.pool_bytes,
            "planned_bytes": figures.planned_bytes,
            "lower_bound_bytes": figures.lower_bound_bytes,
            "used_bytes": figures.used_bytes,
            "optimal": figures.optimal,
            "nodes": blueprint.graph.nodes.len(),
            "buffers_pool": figures.pool_buffers,
        },
        "total_bytes": ledger.total(),
        "on_demand_bytes": ledger.on_demand(),
        "ledger": ledger,
    });
    if let Some(Bound { budget, by }) = planned.bound {
        object["budget"] = json!({
            "bytes": budget.bytes,
            "set_by": by.name(),
            "weights_count": budget.weights,
            "needed_bytes": budget.needed(ledger),
            "fits": planned.shortfall.is_none(),
        });
    }
    if let Some(shortfall) = &planned.shortfall {
        object["shortfall"] = shortfall_json(shortfall);
    }
    if let Some((_, what, fitted)) = planned.fitted {
        object["fit"] = json!({
            "setting": match what { Fit::NCtx => "n-ctx", Fit::Ubatch => "ubatch", Fit::Slots => "slots" },
            "value": fitted.value,
            "needed_bytes": fitted.needed_bytes,
            "next": fitted.next.map(|(value, bytes)| json!({ "value": value, "needed_bytes": bytes })),
            "most": fitted.most,
        });
    }
    object["plan"] = serde_json::to_value(PlanRecord::new(&blueprint.plan))?;
    Ok(object)
}

fn shortfall_json(shortfall: &Shortfall) -> Value {
    let remedies = shortfall.remedies.iter().map(|remedy| {
        json!({
            "flag": describe::flag(remedy.change),
            "saves_bytes": remedy.saves_bytes,
            "suffices": remedy.suffices,
        })
    });
    json!({
        "owners": shortfall.owners,
        "remedies": remedies.collect::<Vec<_>>(),
        "together": shortfall.together.as_ref().map(|together| json!({
            "flags": together.changes.iter().map(|&change| describe::flag(change)).collect::<Vec<_>>(),
            "needed_bytes": together.needed_bytes,
        })),
        "least_bytes": shortfall.least_bytes,
    })
}
