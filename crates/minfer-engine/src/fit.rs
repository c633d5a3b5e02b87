//! The largest setting that a budget admits, exactly. Takes a setting's name; gives its value, and that the next one does
//! not fit; every value tried is planned.

use crate::budget::Budget;
use crate::change::{Change, Replanner, largest};
use crate::config::{MAX_N_CTX, MAX_N_SEQUENCES, MAX_N_UBATCH};

/// A setting that can be made as large as a budget allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// Positions of a sequence, at most what the model was trained for.
    NCtx,
    /// Most tokens of one batch, at most what all sequences hold.
    Ubatch,
    /// Sequences at once.
    Slots,
}

impl Fit {
    /// The change that gives this setting a value.
    pub fn change(self, value: u32) -> Change {
        match self {
            Fit::NCtx => Change::NCtx(value),
            Fit::Ubatch => Change::Ubatch(value),
            Fit::Slots => Change::Slots(value),
        }
    }
}

/// What was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fitted {
    /// The largest value that fits; `None` if not even 1 does.
    pub value: Option<u32>,
    /// Bytes needed with it (with 1, if that does not fit), as the budget counts them.
    pub needed_bytes: u64,
    /// The next larger value and the bytes it would need; `None` if the value is the largest there is.
    pub next: Option<(u32, u64)>,
    /// The largest value there is.
    pub most: u32,
}

/// Finds the largest value of a setting that the budget admits.
pub fn fit(replanner: &Replanner<'_>, budget: Budget, what: Fit) -> Fitted {
    let needed = |value| replanner.needed(budget, &[what.change(value)]);
    let fits = |value| needed(value).is_some_and(|bytes| bytes <= budget.bytes);
    let most = most(replanner, what);
    let value = largest(1, most, 1, fits);
    let next = value.map_or(Some(2), |value| value.checked_add(1)).filter(|&next| value.is_some() && next <= most);
    Fitted {
        value,
        needed_bytes: needed(value.unwrap_or(1)).unwrap_or(u64::MAX),
        next: next.map(|next| (next, needed(next).unwrap_or(u64::MAX))),
        most,
    }
}

fn most(replanner: &Replanner<'_>, what: Fit) -> u32 {
    let config = replanner.config;
    let trained = match replanner.model.spec.n_ctx_train {
        0 => MAX_N_CTX,
        n_ctx_train => n_ctx_train,
    };
    match what {
        Fit::NCtx => trained.min(MAX_N_CTX),
        Fit::Ubatch => config.n_ctx.saturating_mul(config.n_sequences).min(MAX_N_UBATCH),
        Fit::Slots => MAX_N_SEQUENCES,
    }
}
