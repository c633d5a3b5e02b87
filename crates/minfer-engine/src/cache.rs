//! Graphs that have been built, planned and bound. Takes parameters; gives the bound plan of those parameters, building it
//! only if there is none; keeps the allocator's regions across rebuilds.

use crate::alloc::{BackendList, GraphAllocator};
use crate::bind::BoundPlan;
use crate::error::EngineError;
use minfer_graph::{Graph, GraphParams};
use minfer_plan::{Fingerprint, Plan, fingerprint};

/// Graphs kept at once: prefill and decode under a few settings.
const CAPACITY: usize = 8;

struct Entry {
    params: GraphParams,
    graph: Fingerprint,
    bound: BoundPlan,
    last_use: u64,
}

/// Bound plans by parameters.
#[derive(Default)]
pub struct GraphCache {
    entries: Vec<Entry>,
    uses: u64,
    builds: u64,
}

impl GraphCache {
    /// Whether a graph of these parameters is here. Nothing but parameters counts: not how many tokens are cached, not
    /// which.
    pub fn try_reuse(&mut self, params: &GraphParams) -> Option<(Fingerprint, &BoundPlan)> {
        self.uses += 1;
        let entry = self.entries.iter_mut().find(|entry| entry.params == *params)?;
        entry.last_use = self.uses;
        Some((entry.graph, &entry.bound))
    }

    /// Binds a newly made plan and keeps it, in place of the one unused for longest if there are too many.
    pub(crate) fn insert(
        &mut self,
        graph: &Graph,
        plan: Plan,
        allocator: &mut GraphAllocator,
        backends: &mut BackendList,
    ) -> Result<(), EngineError> {
        if self.entries.len() >= CAPACITY {
            let oldest = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.last_use).map(|(at, _)| at);
            if let Some(oldest) = oldest {
                self.entries.remove(oldest);
            }
            let in_use: Vec<_> = self.entries.iter().flat_map(|entry| entry.bound.regions()).collect();
            allocator.release_arenas(&in_use, backends)?;
        }
        let bound = BoundPlan::new(graph, plan, allocator, backends)?;
        self.builds += 1;
        let (params, graph) = (graph.params.clone(), fingerprint(graph));
        self.entries.push(Entry { params, graph, bound, last_use: self.uses });
        Ok(())
    }

    /// How many graphs have been built so far.
    pub fn builds(&self) -> u64 {
        self.builds
    }

    /// Graphs kept now.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no graph is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests;
