//! `minfer plan`: what a model will take, before it is loaded. Reads headers only, allocates nothing of the plan.

mod diff;
mod explain;
mod picture;
mod print;

use super::capabilities;
use crate::describe;
use crate::exit::Outcome;
use crate::memory::{self, Limit};
use crate::output;
use crate::resolve::{ModelPlan, Plan};
use anyhow::Result;
use minfer::{Blueprint, Budget, Change, EngineConfig, EngineError, Fit, Fitted, Levers, Model, Replanner, Shortfall};

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
    pub fitted: Option<(Fit, Fitted)>,
    /// Why it is refused, if it is.
    pub shortfall: Option<Shortfall>,
}

fn of_model(settings: &ModelPlan) -> Result<Outcome> {
    let model = Model::open_header(&settings.model, None)?;
    let context = minfer::choose_n_ctx(settings.n_ctx, 0, Some(0), model.spec.n_ctx_train)?;
    let machine = memory::memory();
    let budget = settings.compute.limit.budget(machine)?;
    let config = EngineConfig { n_ctx: context.n_ctx, budget, ..settings.compute.config }.checked()?;
    let capabilities = capabilities(&settings.compute);
    let replanner = Replanner { model: &model, config, backends: &capabilities };
    let fitted = settings.fit.zip(budget).map(|(what, budget)| (what, minfer::fit(&replanner, budget, what)));
    let replanner = match fitted {
        Some((what, Fitted { value: Some(value), .. })) => replanner_with(replanner, what.change(value)),
        _ => replanner,
    };
    let blueprint = replanner.blueprint(&[])?;
    let shortfall = match minfer::admit(&replanner, &blueprint, Levers::default()) {
        Ok(()) => None,
        Err(EngineError::OverBudget(shortfall)) => {
            memory::who_limits(settings.compute.limit, machine).iter().for_each(|words| output::line(words));
            Some(*shortfall)
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(warning) = memory::paging_warning(blueprint.ledger.total(), settings.compute.limit, machine) {
        output::warn(&warning);
    }
    let planned = Planned { settings, replanner, context, blueprint, fitted, shortfall };
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
    /// The budget, unless nobody asked for one and it is kept.
    fn budget_to_tell(&self) -> Option<Budget> {
        let told = self.settings.compute.limit != Limit::Machine || self.shortfall.is_some();
        self.replanner.config.budget.filter(|_| told)
    }

    /// What `--fit` found, in words.
    fn fit_words(&self) -> Option<String> {
        let ((what, fitted), budget) = self.fitted.zip(self.replanner.config.budget)?;
        Some(describe::fitted(|value| describe::flag(what.change(value)), &fitted, budget))
    }
}
