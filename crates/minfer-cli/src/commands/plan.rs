//! `minfer plan`: what a model will take, before it is loaded. Reads headers only, allocates nothing of the plan.

mod diff;
mod explain;
mod picture;
mod print;

use super::{capabilities, shortfall};
use crate::describe;
use crate::exit::Outcome;
use crate::memory::{self, Limit};
use crate::output;
use crate::resolve::{ModelPlan, Plan};
use anyhow::Result;
use minfer::{Blueprint, Budget, Change, EngineConfig, Fit, Fitted, Levers, Model, Replanner, Shortfall};

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
    /// What `--fit` found, and the budget that allows no more.
    pub fitted: Option<(Budget, Fit, Fitted)>,
    /// The budget to tell of: the one that refuses, or that was asked for.
    pub budget: Option<Budget>,
    /// Why it is refused, if it is.
    pub shortfall: Option<Shortfall>,
}

fn of_model(settings: &ModelPlan) -> Result<Outcome> {
    let model = Model::open_header(&settings.model, None)?;
    let context = minfer::choose_n_ctx(settings.n_ctx, 0, Some(0), model.spec.n_ctx_train)?;
    let machine = memory::memory();
    let limit = settings.compute.limit;
    let budgets = limit.budgets(machine)?;
    let config = EngineConfig { n_ctx: context.n_ctx, ..settings.compute.config }.checked()?;
    let capabilities = capabilities(&settings.compute);
    let replanner = Replanner { model: &model, config, backends: &capabilities };
    let fits = |what| budgets.iter().map(move |&budget| (budget, what, minfer::fit(&replanner, budget, what)));
    // What every budget admits is what the narrowest one does.
    let fitted = settings.fit.and_then(|what| fits(what).min_by_key(|(_, _, fitted)| fitted.value));
    let replanner = match fitted {
        Some((_, what, Fitted { value: Some(value), .. })) => replanner_with(replanner, what.change(value)),
        _ => replanner,
    };
    let blueprint = replanner.blueprint(&[])?;
    let shortfall = shortfall(replanner, &blueprint, Levers::default(), limit, machine)?;
    // One that somebody asked for has no second beside it.
    let asked = budgets.first().copied().filter(|_| limit != Limit::Machine);
    let budget = shortfall.as_ref().map(|shortfall| shortfall.budget).or(asked);
    let planned = Planned { settings, replanner, context, blueprint, fitted, budget, shortfall };
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
        let (budget, what, fitted) = self.fitted?;
        Some(describe::fitted(|value| describe::flag(what.change(value)), &fitted, budget))
    }
}
