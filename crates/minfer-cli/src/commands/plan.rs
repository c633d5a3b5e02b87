//! `minfer plan`: what a model will take, before it is loaded. Reads headers only, allocates nothing of the plan.

mod print;

use super::capabilities;
use crate::exit::Outcome;
use crate::output;
use crate::resolve::Plan;
use anyhow::Result;
use minfer::{Blueprint, EngineConfig, Model};

/// Prints the ledger.
pub fn plan(settings: &Plan) -> Result<Outcome> {
    let model = Model::open(&settings.model)?;
    let choice = minfer::choose_n_ctx(settings.n_ctx, 0, Some(0), model.spec.n_ctx_train)?;
    let config = EngineConfig { n_ctx: choice.n_ctx, ..settings.compute.config }.checked()?;
    let blueprint = Blueprint::new(&model, &config, &capabilities(&settings.compute))?;
    if settings.json {
        output::answer_json(&print::json(settings, &config, &blueprint)?)?;
    } else {
        output::answer(|out| print::text(out, &model, choice, &config, &blueprint))?;
    }
    Ok(Outcome::Done)
}
