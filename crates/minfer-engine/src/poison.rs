//! Poisoning: a dynamic proof that nobody reads stale bytes. Takes a bound plan's live ranges; gives an observer that
//! fills every value's bytes with NaN before its first write and after its last read.

use crate::error::EngineError;
use crate::observe::{Observer, RunView};
use minfer_backend::{BackendId, BufRef};
use minfer_graph::NodeId;
use minfer_plan::{Place, Plan};

/// All bits set: a NaN as f32 and as f16, -1 as an integer.
pub(crate) const POISON: u8 = 0xFF;

/// Fills dead bytes of arenas with NaN. (The engine does the same to KV cells: all when they are made, and those that a
/// sequence gives back.)
pub(crate) struct Poison;

impl Observer for Poison {
    fn before_run(&mut self, view: &mut RunView<'_>) -> Result<(), EngineError> {
        for &arena in &view.bound.arenas {
            view.backends[arena.backend.index()].fill(arena, POISON)?;
        }
        Ok(())
    }

    fn after_step(&mut self, step: usize, view: &mut RunView<'_>) -> Result<(), EngineError> {
        let plan = &view.bound.plan;
        let workspace = plan.steps[step].workspace.map(|(offset, len)| {
            let backend = plan.backends[plan.steps[step].node.index()];
            (backend, offset, len)
        });
        for (backend, offset, len) in dying_values(plan, step).chain(workspace) {
            let arena = view.bound.arenas.iter().find(|arena| arena.backend == backend);
            if let Some(arena) = arena {
                let dead = BufRef { backend, region: arena.region, offset, len };
                view.backends[backend.index()].fill(dead, POISON)?;
            }
        }
        Ok(())
    }
}

/// Values read for the last time in this step whose bytes no other value took over.
fn dying_values(plan: &Plan, step: usize) -> impl Iterator<Item = (BackendId, u64, u64)> + '_ {
    let end = step as u32 + 1;
    let n_steps = plan.steps.len() as u32;
    let handed_over = move |id: NodeId| plan.values.iter().any(|value| value.alias.is_some_and(|alias| alias.of == id));
    plan.graph.ids().filter_map(move |id| {
        let value = plan.value(id);
        match value.place {
            Place::Arena { offset, bytes } if value.live.end == end && end < n_steps && !handed_over(id) => {
                Some((plan.backends[id.index()], offset, bytes))
            }
            _ => None,
        }
    })
}
