//! `minfer plan`: what a model will take, before it is loaded. Reads headers only, allocates nothing of the plan.

mod diff;
mod explain;
mod picture;
mod print;

use super::{capabilities, open, shortfall, warn_of_paging};
use crate::describe;
use crate::exit::{Failure, Outcome};
use crate::limit::{Bound, Limit, SetBy};
use crate::memory;
use crate::output;
use crate::resolve::{ModelPlan, Plan};
use anyhow::Result;
use minfer::{Blueprint, Change, EngineConfig, Fit, Fitted, Levers, Owner, Replanner, Shortfall};

/// Prints the ledger of a model, or the difference between two.
pub fn plan(settings: &Plan) -> Result<Outcome> {
    match settings {
        Plan::Of(settings) => of_model(settings),
        Plan::Diff { before, after } => diff::diff(before, after),
    }
}

/// What was planned, and what a budget says of it.
pub struct Planned<'a> {
    pub settings: &'a ModelPlan,
    pub replanner: Replanner<'a>,
    pub context: minfer::ContextChoice,
    pub blueprint: Blueprint,
    /// What `--fit` found, and the bound in which it fits.
    pub fitted: Option<(Bound, Fit, Fitted)>,
    /// The bound to tell of: the one that refuses, that was asked for, or that the system enforces.
    pub bound: Option<Bound>,
    /// Why it is refused, if it is.
    pub shortfall: Option<Shortfall>,
}

fn of_model(settings: &ModelPlan) -> Result<Outcome> {
    let model = open::model(&settings.model, None)?;
    let context = minfer::choose_n_ctx(settings.n_ctx, 0, Some(0), model.spec.n_ctx_train)?;
    let config = EngineConfig { n_ctx: context.n_ctx, ..settings.compute.config }.checked()?;
    let capabilities = capabilities(&settings.compute);
    let mut replanner = Replanner { model: &model, config, backends: &capabilities };
    let mut blueprint = replanner.blueprint(&[])?;
    let (limit, machine, weights_bytes) =
        (settings.compute.limit, memory::memory(), blueprint.ledger.sum(Owner::Weights));
    // A size may be another machine's: it alone decides, and what is enforced here is told beside it.
    let (judge, here) = match limit {
        Limit::Bytes(_) => (None, machine),
        _ => (machine, None),
    };
    let bound = limit.bound(judge, weights_bytes)?;
    let mut fitted = None;
    if let Some(what) = settings.fit {
        let bound = bound.ok_or_else(|| {
            let failure = Failure::new("--fit: the system does not say how much memory there is");
            failure.hint("give a number, such as --memory 8GiB")
        })?;
        let found = minfer::fit(&replanner, bound.budget, what);
        if let Some(value) = found.value {
            replanner = replanner_with(replanner, what.change(value));
            blueprint = replanner.blueprint(&[])?;
        }
        fitted = Some((bound, what, found));
    }
    let shortfall = shortfall(replanner, &blueprint, Levers::default(), bound)?;
    if shortfall.is_some() {
        bound.and_then(|bound| bound.words()).iter().for_each(|words| output::line(words));
    } else {
        warn_of_paging(blueprint.ledger.total(), judge);
    }
    let here = Limit::Enforced.bound(here, weights_bytes)?.filter(|here| !here.budget.admits(&blueprint.ledger));
    if let Some(words) = here.and_then(|here| here.words()) {
        output::warn(&format!("{words}: here this would not run"));
    }
    // What the machine merely has is no limit that anybody set.
    let is_told = |bound: &Bound| shortfall.is_some() || settings.fit.is_some() || bound.by != SetBy::Machine;
    let bound = bound.filter(is_told);
    let planned = Planned { settings, replanner, context, blueprint, fitted, bound, shortfall };
    picture::draw(&planned)?;
    if settings.json {
        output::answer_json(&print::json(&planned)?)?;
    } else if settings.explain {
        output::answer(|out| explain::explain(out, &planned))?;
    } else {
        output::answer(|out| print::text(out, &planned))?;
    }
    Ok(if planned.shortfall.is_some() { Outcome::No } else { Outcome::Done })
}

fn replanner_with(replanner: Replanner<'_>, change: Change) -> Replanner<'_> {
    Replanner { config: change.apply(replanner.config), ..replanner }
}

impl Planned<'_> {
    /// What `--fit` found, in words.
    fn fit_words(&self) -> Option<String> {
        let (bound, what, fitted) = self.fitted?;
        Some(describe::fitted(|value| describe::flag(what.change(value)), &fitted, &bound))
    }
}
