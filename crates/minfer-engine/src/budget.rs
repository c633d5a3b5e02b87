//! The budget: a ledger is admitted or refused before anything is allocated. Takes a limit and a blueprint; gives nothing,
//! or what is missing, who owns most and which settings would do; must not know how those settings are spelled by a user.

use crate::blueprint::Blueprint;
use crate::change::{Change, Replanner, largest};
use crate::config::EngineConfig;
use crate::error::EngineError;
use minfer_graph::{CacheType, KV_BLOCK_CELLS};
use minfer_plan::{Ledger, LedgerLine, Owner, Strategy};
use std::mem::discriminant;

/// Most bytes that may be owned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// The limit.
    pub bytes: u64,
    /// Whether mapped weights count. Without them the budget says what cannot be taken back: the system may drop pages of
    /// weights and read them again, slowly.
    pub weights: bool,
}

impl Budget {
    /// A limit on everything.
    pub fn of_all(bytes: u64) -> Self {
        Self { bytes, weights: true }
    }

    /// Bytes of a ledger that count.
    pub fn needed(&self, ledger: &Ledger) -> u64 {
        ledger.total() - if self.weights { 0 } else { ledger.sum(Owner::Weights) }
    }

    /// Whether a ledger is within the limit.
    pub fn admits(&self, ledger: &Ledger) -> bool {
        self.needed(ledger) <= self.bytes
    }
}

/// Why a plan is refused, and what would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shortfall {
    /// The limit.
    pub budget: Budget,
    /// Bytes needed, as the budget counts them.
    pub needed_bytes: u64,
    /// The three largest owners, of those that count.
    pub owners: Vec<LedgerLine>,
    /// Up to three single changes that help, those that suffice alone first.
    pub remedies: Vec<Remedy>,
    /// Several changes that suffice together, if no single one does.
    pub together: Option<Combination>,
    /// Bytes needed under the smallest settings tried.
    pub least_bytes: u64,
}

/// A change that helps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remedy {
    /// What to change.
    pub change: Change,
    /// Bytes it saves.
    pub saves_bytes: u64,
    /// Whether it is enough.
    pub suffices: bool,
}

/// Changes that suffice together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Combination {
    /// What to change.
    pub changes: Vec<Change>,
    /// Bytes needed then.
    pub needed_bytes: u64,
}

/// Settings that whoever asks can still change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Levers {
    /// The smallest context that still serves; `None` if it cannot be changed.
    pub least_n_ctx: Option<u32>,
    /// Whether there may be fewer sequences.
    pub slots: bool,
}

impl Default for Levers {
    fn default() -> Self {
        Self { least_n_ctx: Some(1), slots: true }
    }
}

/// Contexts are proposed in steps of this.
const N_CTX_STEP: u32 = 256;
/// Below the first step, in steps of a block of cells: fewer cells than a block take as much.
const N_CTX_SMALL_STEP: u32 = KV_BLOCK_CELLS;
/// Batches are proposed in powers of two down to this; below it prefill is decode.
const LEAST_UBATCH: u32 = 16;
/// How many owners and remedies are named.
const N_NAMED: usize = 3;

/// Refuses a blueprint that the settings' budget does not admit.
pub fn admit(replanner: &Replanner<'_>, blueprint: &Blueprint, levers: Levers) -> Result<(), EngineError> {
    let Some(budget) = replanner.config.budget.filter(|budget| !budget.admits(&blueprint.ledger)) else {
        return Ok(());
    };
    Err(EngineError::OverBudget(Box::new(shortfall(replanner, budget, &blueprint.ledger, levers))))
}

fn shortfall(replanner: &Replanner<'_>, budget: Budget, ledger: &Ledger, levers: Levers) -> Shortfall {
    let needed_bytes = budget.needed(ledger);
    let counts = |line: &&LedgerLine| budget.weights || line.owner != Owner::Weights;
    let owners = ledger.largest(ledger.lines.len()).into_iter().filter(counts).take(N_NAMED).cloned().collect();
    let search = Search { replanner, budget, levers };
    let mut remedies: Vec<Remedy> =
        search.candidates().into_iter().filter_map(|c| search.remedy(&c, needed_bytes)).collect();
    // Stable: those that suffice in the order of what they cost the user, the others by what they save.
    remedies.sort_by_key(|remedy| (!remedy.suffices, if remedy.suffices { 0 } else { u64::MAX - remedy.saves_bytes }));
    remedies.truncate(N_NAMED);
    let (together, least_bytes) = match remedies.first() {
        Some(remedy) if remedy.suffices => (None, needed_bytes - remedy.saves_bytes),
        _ => search.together(needed_bytes),
    };
    Shortfall { budget, needed_bytes, owners, remedies, together, least_bytes }
}

/// The `n`-th context that is proposed, from 1 on.
fn context(n: u32) -> u32 {
    let n_small = N_CTX_STEP / N_CTX_SMALL_STEP;
    if n < n_small { n * N_CTX_SMALL_STEP } else { (n - n_small + 1) * N_CTX_STEP }
}

/// The number of the smallest that is no smaller than `n_ctx`.
fn context_at_least(n_ctx: u32) -> u32 {
    let n_ctx = n_ctx.max(1);
    if n_ctx <= N_CTX_STEP {
        n_ctx.div_ceil(N_CTX_SMALL_STEP)
    } else {
        n_ctx.div_ceil(N_CTX_STEP) + N_CTX_STEP / N_CTX_SMALL_STEP - 1
    }
}

struct Search<'a> {
    replanner: &'a Replanner<'a>,
    budget: Budget,
    levers: Levers,
}

/// Values of one setting, from the smallest sensible to just below the present one.
struct Candidate {
    change: fn(u32) -> Change,
    least: u32,
    most: u32,
    values: fn(u32) -> u32,
}

/// A setting that can be made smaller, or one that has only one better value.
enum Lever {
    Range(Candidate),
    Single(Change),
}

impl Search<'_> {
    /// What can be changed, cheapest first: what costs nothing, what costs speed, exactness, sequences, context.
    fn candidates(&self) -> Vec<Lever> {
        let config: EngineConfig = self.replanner.config;
        let mut levers = Vec::new();
        if config.strategy != Strategy::Planned {
            levers.push(Lever::Single(Change::Strategy(Strategy::Planned)));
        }
        if config.fusion != minfer_graph::Fusion::ALL {
            levers.push(Lever::Single(Change::Fusion(minfer_graph::Fusion::ALL)));
        }
        // What counts is the batch in use, which is never longer than all contexts.
        let batch = config.n_ubatch.min(config.token_capacity());
        if batch > LEAST_UBATCH {
            levers.push(Lever::Range(Candidate {
                change: Change::Ubatch,
                least: LEAST_UBATCH.ilog2(),
                most: (batch - 1).ilog2(),
                values: |exponent| 1 << exponent,
            }));
        }
        let smaller: &[CacheType] = match config.cache_type {
            CacheType::F32 => &[CacheType::F16, CacheType::Q8_0],
            CacheType::F16 => &[CacheType::Q8_0],
            CacheType::Q8_0 => &[],
        };
        levers.extend(smaller.iter().map(|&smaller| Lever::Single(Change::CacheType(smaller))));
        if self.levers.slots && config.n_sequences > 1 {
            levers.push(Lever::Range(Candidate {
                change: Change::Slots,
                least: 1,
                most: config.n_sequences - 1,
                values: |n| n,
            }));
        }
        if let Some(least) = self.levers.least_n_ctx {
            let (least, most) = (context_at_least(least), context_at_least(config.n_ctx) - 1);
            if (1..=most).contains(&least) {
                levers.push(Lever::Range(Candidate { change: Change::NCtx, least, most, values: context }));
            }
        }
        levers
    }

    /// The largest value that suffices, or the smallest there is. `None` if it does not help.
    fn remedy(&self, lever: &Lever, needed_bytes: u64) -> Option<Remedy> {
        let change = self.best(lever, &[]);
        let with_it = self.replanner.needed(self.budget, &[change])?;
        let saves_bytes = needed_bytes.checked_sub(with_it).filter(|&saved| saved > 0)?;
        Some(Remedy { change, saves_bytes, suffices: with_it <= self.budget.bytes })
    }

    /// The largest value that suffices after other changes, or the smallest there is.
    fn best(&self, lever: &Lever, after: &[Change]) -> Change {
        match lever {
            Lever::Single(change) => *change,
            Lever::Range(Candidate { change, least, most, values }) => {
                let fits = |n: u32| self.fits(after, change(values(n)));
                change(values(largest(*least, *most, 1, fits).unwrap_or(*least)))
            }
        }
    }

    fn fits(&self, after: &[Change], change: Change) -> bool {
        let changes: Vec<Change> = after.iter().copied().chain([change]).collect();
        self.replanner.needed(self.budget, &changes).is_some_and(|bytes| bytes <= self.budget.bytes)
    }

    /// Changes made one after the other, cheapest first, until it fits; those that do not help are left out.
    fn together(&self, needed_bytes: u64) -> (Option<Combination>, u64) {
        let (mut changes, mut least_bytes) = (Vec::new(), needed_bytes);
        for lever in self.candidates() {
            let change = self.best(&lever, &changes);
            // A second value of one setting replaces the first.
            let others = changes.iter().filter(|&other| discriminant(other) != discriminant(&change));
            let tried: Vec<Change> = others.copied().chain([change]).collect();
            let Some(bytes) = self.replanner.needed(self.budget, &tried).filter(|&bytes| bytes < least_bytes) else {
                continue;
            };
            (changes, least_bytes) = (tried, bytes);
            if bytes <= self.budget.bytes {
                return (Some(Combination { changes, needed_bytes: bytes }), bytes);
            }
        }
        (None, least_bytes)
    }
}
