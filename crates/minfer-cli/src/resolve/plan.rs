//! `minfer plan`. Takes what was typed and the environment; gives settings in their ranges.

use super::Resolved;
use super::shared::{Compute, MAX_UBATCH, compute, in_range, limit, n_ctx};
use crate::args::{self, FitSetting};
use crate::env::Environment;
use crate::exit::Failure;
use minfer_engine::Fit;
use std::path::PathBuf;

/// Most sequences at once.
const MAX_SLOTS: u64 = minfer_engine::MAX_N_SEQUENCES as u64;

/// `minfer plan`.
pub enum Plan {
    /// Of a model.
    Of(ModelPlan),
    /// Two outputs of `--json`, compared.
    Diff { before: PathBuf, after: PathBuf },
}

/// `minfer plan MODEL`.
pub struct ModelPlan {
    pub model: PathBuf,
    pub n_ctx: Option<u32>,
    pub fit: Option<Fit>,
    pub compute: Compute,
    pub explain: bool,
    pub svg: Option<PathBuf>,
    pub html: Option<PathBuf>,
    pub json: bool,
}

pub(super) fn plan(raw: args::LedgerArgs, environment: &Environment) -> Resolved<Plan> {
    let mut compute = compute(&raw.plan, environment)?;
    compute.config.n_ubatch = in_range("--ubatch", raw.ubatch, 1..=MAX_UBATCH)?;
    compute.config.n_sequences = in_range("--slots", raw.slots, 1..=MAX_SLOTS)?;
    compute.limit = limit(&raw.memory)?;
    if let [before, after] = &raw.diff[..] {
        return Ok(Plan::Diff { before: before.clone(), after: after.clone() });
    }
    let fit = raw.fit.map(|what| match what {
        FitSetting::NCtx => Fit::NCtx,
        FitSetting::Ubatch => Fit::Ubatch,
        FitSetting::Slots => Fit::Slots,
    });
    if fit == Some(Fit::NCtx) && raw.n_ctx.is_some() {
        return Err(Failure::new("--fit n-ctx looks for the context that --n-ctx gives").hint("leave one of them out"));
    }
    Ok(Plan::Of(ModelPlan {
        model: raw.model.unwrap_or_default(),
        n_ctx: n_ctx(raw.n_ctx)?,
        fit,
        compute,
        explain: raw.explain,
        svg: raw.svg,
        html: raw.html,
        json: raw.json,
    }))
}
