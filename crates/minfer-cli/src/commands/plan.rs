//! `minfer plan`: what a model will take, before it is loaded. Reads headers only, allocates nothing of the plan.

mod diff;
mod explain;
mod picture;
mod print;

use super::{capabilities, narrowest, open, shortfall, warn_of_paging};
use crate::describe;
use crate::exit::Outcome;
use crate::limit::{Bound, Limit, SetBy};
use crate::memory;
use crate::output;
use crate::resolve::{ModelPlan, Plan};
use anyhow::Result;
use minfer::{Blueprint, Change, EngineConfig, Fit, Fitted, Levers, Replanner, Shortfall};

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
    /// What `--fit` found, and the bound that allows no more.
    pub fitted: Option<(Bound, Fit, Fitted)>,
    /// The bound to tell of: the one that refuses, that was asked for, or that the system enforces.
    pub bound: Option<Bound>,
    /// Why it is refused, if it is.
    pub shortfall: Option<Shortfall>,
}

fn of_model(settings: &ModelPlan) -> Result<Outcome> {
    let model = open::model(&settings.model, None)?;
    let context = minfer::choose_n_ctx(settings.n_ctx, 0, Some(0), model.spec.n_ctx_train)?;
    let machine = memory::memory();
    let limit = settings.compute.limit;
    // A size may be another machine's: it alone decides, and what is enforced here is told beside it.
    let judges = |bound: &Bound| !matches!(limit, Limit::Bytes(_)) || bound.by == SetBy::Asked;
    let (bounds, others): (Vec<_>, Vec<_>) = limit.bounds(machine)?.into_iter().partition(judges);
    let config = EngineConfig { n_ctx: context.n_ctx, ..settings.compute.config }.checked()?;
    let capabilities = capabilities(&settings.compute);
    let replanner = Replanner { model: &model, config, backends: &capabilities };
    let fits = |what| bounds.iter().map(move |&bound| (bound, what, minfer::fit(&replanner, bound.budget, what)));
    // What every bound admits is what the narrowest one does; of those that admit the same, the one that leaves least.
    let spare = |bound: &Bound, fitted: &Fitted| bound.budget.bytes.saturating_sub(fitted.needed_bytes);
    let tightness = |(bound, _, fitted): &(Bound, Fit, Fitted)| (fitted.value, spare(bound, fitted));
    let fitted = settings.fit.and_then(|what| fits(what).min_by_key(tightness));
    let replanner = match fitted {
        Some((_, what, Fitted { value: Some(value), .. })) => replanner_with(replanner, what.change(value)),
        _ => replanner,
    };
    let blueprint = replanner.blueprint(&[])?;
    let refused = shortfall(replanner, &blueprint, Levers::default(), &bounds)?;
    if refused.is_none() {
        warn_of_paging(&blueprint, limit, machine);
    }
    let other = narrowest(&others, &blueprint.ledger).filter(|other| !other.budget.admits(&blueprint.ledger));
    if let Some(words) = other.and_then(|other| other.words()) {
        output::warn(&format!("{words}: here this would not run"));
    }
    // What the machine merely has is no limit that anybody set.
    let is_set = |bound: &Bound| settings.fit.is_some() || bound.by != SetBy::Machine;
    let in_force: Vec<Bound> = bounds.iter().copied().filter(is_set).collect();
    let (bound, shortfall) = match refused {
        Some((bound, shortfall)) => (Some(bound), Some(shortfall)),
        None => (narrowest(&in_force, &blueprint.ledger), None),
    };
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
