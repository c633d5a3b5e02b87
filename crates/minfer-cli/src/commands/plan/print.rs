//! A blueprint as text and as JSON. Takes what was planned; gives lines and one object; plans nothing.

use crate::describe;
use crate::output::{Table, mib};
use crate::resolve::Plan;
use anyhow::Result;
use minfer::{Blueprint, CacheType, ContextChoice, EngineConfig, Ledger, Model, Owner};
use minfer_plan::PlanRecord;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Model, settings, the ledger and the arenas.
pub fn text(
    out: &mut dyn Write,
    model: &Model,
    context: ContextChoice,
    config: &EngineConfig,
    blueprint: &Blueprint,
) -> io::Result<()> {
    writeln!(out, "model    {}", describe::model(&model.spec, &model.file))?;
    writeln!(out, "context  {}", describe::context(context, model.spec.n_ctx_train))?;
    writeln!(out, "batch    {} tokens, {} slots", config.token_capacity(), config.n_sequences)?;
    writeln!(out)?;
    ledger(out, &blueprint.ledger)?;
    writeln!(out)?;
    let mut table = Table::new(&[1, 2, 3, 4]);
    table.row(["arena", "naive", "pool", "planned", "lower bound", ""]);
    for arena in &blueprint.plan.arenas {
        let f = arena.figures;
        let bytes = [f.naive_bytes, f.pool_bytes, f.planned_bytes, f.lower_bound_bytes].map(mib);
        let verdict = match f.planned_bytes.checked_sub(f.lower_bound_bytes) {
            Some(0) => "planned is proven minimal".to_owned(),
            gap => format!("planned is at most {} bytes above the minimum", gap.unwrap_or(0)),
        };
        table.row([arena.name.clone()].into_iter().chain(bytes).chain([verdict]));
    }
    table.write(out, "")
}

/// One row per line, and the sum.
pub fn ledger(out: &mut dyn Write, ledger: &Ledger) -> io::Result<()> {
    let mut table = Table::new(&[1, 2]);
    table.row(["owner", "bytes", "", "what"]);
    for line in &ledger.lines {
        table.row([line.name.clone(), line.bytes.to_string(), mib(line.bytes), line.detail.clone()]);
    }
    table.row(["total".to_owned(), ledger.total().to_string(), mib(ledger.total())]);
    table.write(out, "")
}

/// Everything, for programs and for `--diff`.
pub fn json(settings: &Plan, config: &EngineConfig, blueprint: &Blueprint) -> Result<Value> {
    let (ledger, figures) = (&blueprint.ledger, blueprint.figures());
    Ok(json!({
        "model": settings.model.file_name().map(|name| name.display().to_string()),
        "settings": {
            "n_ctx": config.n_ctx,
            "ubatch": config.n_ubatch,
            "slots": config.n_sequences,
            "cache_type": match config.cache_type { CacheType::F32 => "f32", CacheType::F16 => "f16" },
            "alloc": config.strategy.to_string(),
            "backend": settings.compute.backend.name(),
            "threads": settings.compute.threads,
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
        "ledger": serde_json::to_value(ledger)?,
        "plan": serde_json::to_value(PlanRecord::new(&blueprint.plan))?,
    }))
}
