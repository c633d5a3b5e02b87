//! Order: where the graph leaves a choice, an order of steps in which less is live at once. Takes a draft; gives the same
//! nodes in that build order, or the draft as it is if none found is better; must not know offsets.
//!
//! A step that every other must precede or follow has the same place in all orders. Between two such steps lies a *region*
//! that is ordered by itself (`beam.rs`), since the others do not change what lives when it begins. Regions are taken from
//! the highest peak down, until none rises above those already ordered: a proof for one of them is a proof for the graph.

mod beam;
mod steps;

use crate::draft::{Backends, Draft, Rewriter};
use beam::{Beam, Question, Work};
use minfer_graph::NodeId;
use std::cmp::Reverse;
use std::ops::Range;
use steps::Steps;

/// What the choice of an order brought to one backend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ordered {
    /// Most bytes live at once in the order that came in.
    pub given_bytes: u64,
    /// In the order that goes out.
    pub bytes: u64,
    /// Whether no order needs less than that, as long as no other backend may need more than it did.
    pub is_least: bool,
}

/// Orders for one backend after the other; on none more comes to be live at once.
pub(crate) fn order(draft: Draft, backends: &Backends) -> (Draft, Vec<Ordered>) {
    let steps = Steps::new(&draft, backends);
    let given: Vec<u32> = (0..steps.len()).collect();
    let mut order = given.clone();
    let mut work = Work::default();
    let is_least: Vec<bool> =
        (0..backends.len()).map(|backend| improve(&steps, &mut order, backend, &mut work)).collect();
    let bytes = |peak: u128| u64::try_from(peak).unwrap_or(u64::MAX);
    let peaks = steps.peaks(&given).into_iter().zip(steps.peaks(&order)).zip(is_least);
    let ordered =
        peaks.map(|((given, now), is_least)| Ordered { given_bytes: bytes(given), bytes: bytes(now), is_least });
    let ordered = ordered.collect();
    (if order == given { draft } else { rewritten(&draft, &steps, &order) }, ordered)
}

/// Lowers the peak of one backend, if that can be done. Whether it is now known to be the least.
fn improve(steps: &Steps, order: &mut Vec<u32>, backend: usize, work: &mut Work) -> bool {
    let limits = steps.peaks(order);
    let mut regions = regions(steps, order, backend);
    regions.sort_by_key(|region| Reverse(region.peak));
    let mut better = order.clone();
    // The peak of what is ordered so far; a region below it need not be touched.
    let (mut floor, mut is_least) = (steps.at_start()[backend], true);
    for Region { range, before, peak } in regions {
        if peak <= floor {
            break;
        }
        let members = &mut better[range.start as usize..range.end as usize];
        let question = Question { backend, before: &before, limits: &limits, floor };
        let found = Beam::new(steps, range.start, members, question).least(peak, work);
        if let Some(order) = found.order {
            members.copy_from_slice(&order);
        }
        // At the floor nothing new is shown: the proof is that of the region that set it.
        is_least = if found.peak > floor { found.is_least } else { is_least };
        floor = found.peak;
    }
    if floor < limits[backend] {
        *order = better;
    }
    is_least
}

/// Consecutive steps whose order does not bear on the rest.
struct Region {
    range: Range<u32>,
    /// Bytes live on each backend when it begins.
    before: Vec<u128>,
    /// Most bytes live at once on the backend that is looked at.
    peak: u128,
}

fn regions(steps: &Steps, order: &[u32], backend: usize) -> Vec<Region> {
    let mut walk = steps.walk();
    let region = |range: Range<u32>| {
        let before = walk.bytes.clone();
        let mut peak = 0;
        for &step in &order[range.start as usize..range.end as usize] {
            let during = walk.run(step);
            peak = if steps.backend(step) == backend { during.max(peak) } else { peak };
        }
        Region { range, before, peak }
    };
    steps.regions().into_iter().map(region).collect()
}

/// The same nodes in the order of these steps. What is no step follows the last node that it takes.
fn rewritten(draft: &Draft, steps: &Steps, order: &[u32]) -> Draft {
    let graph = &draft.graph;
    let mut rank = vec![None; graph.nodes.len()];
    for (at, &step) in (1u32..).zip(order) {
        rank[steps.node(step).index()] = Some(at);
    }
    for id in graph.ids() {
        let last = graph.node(id).inputs.iter().filter_map(|input| rank[input.index()]).max();
        rank[id.index()] = rank[id.index()].or(Some(last.unwrap_or(0)));
    }
    let mut ids: Vec<NodeId> = graph.ids().collect();
    ids.sort_by_key(|id| (rank[id.index()], *id));
    let mut rewriter = Rewriter::new(draft);
    for id in ids {
        rewriter.keep(id);
    }
    rewriter.finish()
}
