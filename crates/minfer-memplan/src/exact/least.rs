//! The least height: takes a placement and a proven lower bound, narrows what lies between by asking whether capacities
//! in between suffice. Must not know how a question is decided.

use std::collections::BTreeMap;

use super::instance::{Instance, unit};
use super::restarts::Question;
use super::{Decision, components};
use crate::budget::Stop;
use crate::{Placement, Problem};

/// What the search is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Goal {
    /// The least height.
    Least,
    /// Any placement within this height.
    Within(u64),
}

/// What is known at the end.
pub(crate) struct Least {
    pub placement: Placement,
    /// No placement is lower than this.
    pub proven: u64,
}

/// Nodes of the first pass's questions; every further pass asks with twice as many.
const FIRST_PASS_NODES: u64 = 24_000;

/// Lowers the placement or raises the bound until they meet, the goal is reached or the budget is spent, of which it
/// lowers by what it spent.
pub(crate) fn least(
    problem: &Problem,
    start: Least,
    goal: Goal,
    parallel: bool,
    budget: &mut u64,
    stop: Stop<'_>,
) -> Least {
    let parts = components(problem);
    let unit = unit(problem.buffers.iter().filter(|b| b.size > 0)).max(1);
    let mut known = start;
    known.proven = known.proven.checked_next_multiple_of(unit).unwrap_or(u64::MAX).min(known.placement.height);
    let mut asking = Asking { problem, parts: &parts, parallel, questions: BTreeMap::new(), budget, stop };

    if let Goal::Within(capacity) = goal {
        if known.placement.height > capacity && known.proven <= capacity {
            asking.ask(&mut known, capacity, u64::MAX);
        }
        return known;
    }
    let mut share = FIRST_PASS_NODES;
    while known.proven < known.placement.height && !asking.is_over() {
        // The bound itself first: it is the likeliest to end everything.
        let bound = known.proven;
        asking.ask(&mut known, bound, share);
        // Then down from what is found, in steps that double with every success and halve with every question that stays
        // open or is denied: easy questions are cheap, and most of those far below are not.
        let mut step = (known.placement.height - known.proven) / 4;
        while known.proven < known.placement.height && !asking.is_over() {
            step = (step / unit * unit).max(unit);
            let target = known.placement.height.saturating_sub(step).max(known.proven);
            asking.ask(&mut known, target, share);
            if known.placement.height <= target {
                step = step.saturating_mul(2);
            } else if step == unit {
                break;
            } else {
                step /= 2;
            }
        }
        share = share.saturating_mul(2);
    }
    known
}

/// Questions kept to be asked again. A pass asks about twice as many as the gap has bits.
pub(crate) const MAX_QUESTIONS: usize = 64;

struct Asking<'a, 'b> {
    problem: &'a Problem,
    parts: &'a [Instance],
    parallel: bool,
    questions: BTreeMap<(u64, usize), Question<'a>>,
    budget: &'b mut u64,
    stop: Stop<'b>,
}

impl Asking<'_, '_> {
    fn is_over(&self) -> bool {
        *self.budget < 2 || (self.stop)()
    }

    /// Whether the problem fits within the capacity; what comes of it is noted.
    fn ask(&mut self, known: &mut Least, capacity: u64, share: u64) {
        let mut share = share.min(*self.budget);
        let before = share;
        let mut offsets = known.placement.offsets.clone();
        let mut fits = true;
        for (p, part) in self.parts.iter().enumerate() {
            let top = part.buffers.iter().map(|&b| offsets[b] + self.problem.buffers[b].size).max();
            if top.is_none_or(|t| t <= capacity) {
                continue;
            }
            if (self.stop)() {
                fits = false;
                break;
            }
            let new = || Question::new(part, capacity / part.unit, self.parallel);
            let question = self.questions.entry((capacity, p)).or_insert_with(new);
            match question.ask(&mut share, self.stop) {
                Decision::Fits(found) => {
                    part.buffers.iter().zip(found).for_each(|(&b, o)| offsets[b] = o * part.unit);
                }
                Decision::Infeasible => {
                    // Between the capacity and the next multiple of this part's unit lies no height of it.
                    let next = (capacity / part.unit + 1).saturating_mul(part.unit);
                    known.proven = known.proven.max(next).min(known.placement.height);
                    fits = false;
                    break;
                }
                Decision::Unknown => fits = false,
            }
        }
        *self.budget -= before - share;
        // Lower parts help later questions even if another part stays too high.
        let placement = Placement::new(self.problem, offsets);
        debug_assert!(!fits || placement.height <= capacity);
        if placement.height <= known.placement.height {
            known.placement = placement;
        }
        self.questions.retain(|&(c, _), _| c >= known.proven && c < known.placement.height);
        // Asked again, a question that was forgotten begins anew.
        while self.questions.len() > MAX_QUESTIONS {
            self.questions.pop_first();
        }
    }
}
