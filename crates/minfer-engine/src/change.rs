//! One setting, changed. Takes settings; gives others, and what a plan of them would need. Whatever is said of a setting's
//! effect comes from here: planned again, never from a formula.

use crate::blueprint::{Blueprint, CapabilityList};
use crate::budget::Budget;
use crate::config::EngineConfig;
use crate::error::EngineError;
use crate::load::Model;
use minfer_graph::{CacheType, Fusion};
use minfer_plan::Strategy;

/// One setting, changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Positions of a sequence.
    NCtx(u32),
    /// Most tokens of one batch.
    Ubatch(u32),
    /// Sequences at once.
    Slots(u32),
    /// Element type of the KV cache.
    CacheType(CacheType),
    /// How values are placed.
    Strategy(Strategy),
    /// Which fusions are made.
    Fusion(Fusion),
}

impl Change {
    /// The settings with this change.
    pub fn apply(self, config: EngineConfig) -> EngineConfig {
        match self {
            Change::NCtx(n_ctx) => EngineConfig { n_ctx, ..config },
            Change::Ubatch(n_ubatch) => EngineConfig { n_ubatch, ..config },
            Change::Slots(n_sequences) => EngineConfig { n_sequences, ..config },
            Change::CacheType(cache_type) => EngineConfig { cache_type, ..config },
            Change::Strategy(strategy) => EngineConfig { strategy, ..config },
            Change::Fusion(fusion) => EngineConfig { fusion, ..config },
        }
    }
}

/// Plans the same model again under other settings.
#[derive(Clone, Copy)]
pub struct Replanner<'a> {
    /// The model.
    pub model: &'a Model,
    /// The settings that changes start from.
    pub config: EngineConfig,
    /// Who would compute.
    pub backends: &'a CapabilityList,
}

impl Replanner<'_> {
    /// The plan with these changes, made one after the other.
    pub fn blueprint(&self, changes: &[Change]) -> Result<Blueprint, EngineError> {
        let config = changes.iter().fold(self.config, |config, change| change.apply(config)).checked()?;
        Blueprint::new(self.model, &config, self.backends)
    }

    /// Bytes needed with these changes, as the budget counts them. `None` where there is no such plan.
    pub(crate) fn needed(&self, budget: Budget, changes: &[Change]) -> Option<u64> {
        Some(budget.needed(&self.blueprint(changes).ok()?.ledger))
    }
}

/// The largest of `low..=high` in steps of `step` from `low` that `fits`, by bisection; `None` if not even `low` does.
/// `fits` is taken to be true up to some value and false beyond: what comes back fits, and the next one does not.
pub(crate) fn largest(low: u32, high: u32, step: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
    if low > high || !fits(low) {
        return None;
    }
    let at = |index: u32| low + index * step;
    let (mut yes, mut no) = (0, (high - low) / step + 1);
    while yes + 1 < no {
        let middle = yes + (no - yes) / 2;
        if fits(at(middle)) { yes = middle } else { no = middle }
    }
    Some(at(yes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bisection_finds_the_edge() {
        for edge in 0..40 {
            let found = largest(3, 30, 1, |value| value <= edge);
            let expected = (3..=30).filter(|&value| value <= edge).max();
            assert_eq!(found, expected);
            let found = largest(3, 30, 4, |value| value <= edge);
            assert_eq!(found, (3..=30).step_by(4).filter(|&value| value <= edge).max());
        }
        assert_eq!(largest(5, 4, 1, |_| true), None);
        assert_eq!(largest(0, u32::MAX - 1, 1, |value| value <= 4_000_000_000), Some(4_000_000_000));
    }
}
