//! `minfer plan --svg` and `--html`: the plan drawn. Takes what was planned and files; plans the other strategies for the
//! page's switch.

use super::Planned;
use crate::outputs::{Outputs, cannot_write};
use anyhow::Result;
use minfer::{Change, Strategy};
use minfer_plan::picture::{Caption, html, svg};
use std::io::Write;
use std::path::Path;

/// Writes the pictures asked for.
pub fn draw(planned: &Planned<'_>) -> Result<()> {
    let (settings, blueprint, config) = (planned.settings, &planned.blueprint, planned.replanner.config);
    let (n_ctx, batch, slots) = (config.n_ctx, config.token_capacity(), config.n_sequences);
    let kv = config.cache_type.value_type();
    let caption = Caption {
        model: settings.model.file_name().map(|name| name.display().to_string()).unwrap_or_default(),
        settings: format!("prefill, {batch} tokens, context {n_ctx}, {slots} slots, KV {kv}"),
    };
    let mut outputs = Outputs::beside(&planned.replanner.model.file);
    let mut write = |path: &Path, text: &str| -> Result<()> {
        Ok(outputs.create(path)?.write_all(text.as_bytes()).map_err(|error| cannot_write(path, &error))?)
    };
    if let Some(path) = &settings.svg {
        write(path, &svg(&blueprint.plan, &blueprint.ledger, &caption))?;
    }
    if let Some(path) = &settings.html {
        let strategies = [Strategy::Planned, Strategy::Pool, Strategy::Naive];
        let mut others = Vec::new();
        for strategy in strategies.into_iter().filter(|&strategy| strategy != config.strategy) {
            others.push(planned.replanner.blueprint(&[Change::Strategy(strategy)])?);
        }
        let plans: Vec<_> = [blueprint].into_iter().chain(&others).map(|blueprint| &blueprint.plan).collect();
        write(path, &html(&plans, &blueprint.ledger, &caption)?)?;
    }
    Ok(())
}
