//! `minfer plan --explain`: who holds memory at the fullest step and why, and what each setting would change. Every effect
//! is planned again.

use super::{Planned, print};
use crate::describe;
use crate::output::{Table, mib};
use minfer::{CacheType, Change, EngineConfig, Fusion, Owner, Strategy};
use minfer_plan::{PlanRecord, order_words, summary_text};
use std::io::{self, Write};

/// The peak, then the settings.
pub fn explain(out: &mut dyn Write, planned: &Planned<'_>) -> io::Result<()> {
    if let Some(words) = planned.fit_words() {
        writeln!(out, "{words}\n")?;
    }
    let record = PlanRecord::new(&planned.blueprint.plan);
    write!(out, "{}", summary_text(&record))?;
    for arena in &record.arenas {
        let words = order_words(arena.given_order_bytes, arena.lower_bound_bytes, arena.order_is_least);
        writeln!(out, "{}: {words}", arena.name)?;
    }
    writeln!(out)?;
    let ledger = &planned.blueprint.ledger;
    let mut table = Table::new(&[1, 2, 3, 4]);
    table.row(["setting", "changes by", "total", "KV cache", "arenas"]);
    let sums = |ledger: &minfer::Ledger| [Owner::Kv, Owner::Arena].map(|owner| mib(ledger.sum(owner)));
    let now = ["as it is".to_owned(), String::new(), mib(ledger.total())];
    table.row(now.into_iter().chain(sums(ledger)));
    for change in changes(&planned.replanner.config, planned.replanner.model.spec.n_ctx_train) {
        // A setting without a plan, such as an arena that no device holds, is left out.
        let Ok(other) = planned.replanner.blueprint(&[change]) else { continue };
        let (before, after) = (ledger.total(), other.ledger.total());
        let sign = if after < before { "-" } else { "+" };
        let row = [describe::flag(change), format!("{sign}{}", mib(after.abs_diff(before))), mib(after)];
        table.row(row.into_iter().chain(sums(&other.ledger)));
    }
    table.write(out, "")?;
    print::verdict(out, planned)
}

/// Each setting once more and once less, where there is such a value.
fn changes(config: &EngineConfig, n_ctx_train: u32) -> Vec<Change> {
    let mut changes = Vec::new();
    let trained = |n_ctx: &u32| n_ctx_train == 0 || *n_ctx <= n_ctx_train;
    let half_and_double = |value: u32| [value / 2, value.saturating_mul(2)].into_iter().filter(|&n| n > 0);
    changes.extend(half_and_double(config.n_ctx).filter(trained).map(Change::NCtx));
    changes.extend(half_and_double(config.token_capacity()).map(Change::Ubatch));
    changes.push(Change::Slots(config.n_sequences.saturating_add(1)));
    let cache_types = [CacheType::F32, CacheType::F16, CacheType::Q8_0];
    changes.extend(cache_types.into_iter().filter(|&other| other != config.cache_type).map(Change::CacheType));
    let strategies = [Strategy::Planned, Strategy::Pool, Strategy::Naive];
    changes.extend(strategies.into_iter().filter(|&other| other != config.strategy).map(Change::Strategy));
    let fusion = config.fusion;
    let without = [
        Fusion { qkv: false, ..fusion },
        Fusion { ffn: false, ..fusion },
        Fusion { residual: false, ..fusion },
        Fusion { quantize: false, ..fusion },
    ];
    changes.extend(without.into_iter().filter(|&other| other != fusion).map(Change::Fusion));
    changes
}
