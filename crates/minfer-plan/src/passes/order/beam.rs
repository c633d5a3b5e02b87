//! Orders one region. Takes its steps and what lives when it begins; gives the order with the smallest peak that it finds,
//! and whether there is none with a smaller one; knows nothing of nodes.
//!
//! What lives after some steps depends on which have run, not on their order. So of all orders of the same steps only the
//! one with the smallest peak goes on, and the search proceeds by the number of steps that have run. Of the sets of each
//! number only the best few are kept, more and more of them in each round; where none had to be left out, what is found is
//! the least.

use super::steps::Steps;
use std::collections::HashMap;

/// Sets kept of each number of steps, in one round after the other.
const WIDTHS: [usize; 3] = [1, 32, 1024];

/// Steps that may still be tried in a graph; afterwards orders stay as they are. Some 30 ms.
pub(super) struct Work(u32);

impl Default for Work {
    fn default() -> Self {
        Work(1 << 17)
    }
}

/// What is asked of a region.
pub(super) struct Question<'a> {
    /// The backend whose peak is to be lowered.
    pub backend: usize,
    /// Bytes live on each backend when it begins.
    pub before: &'a [u128],
    /// What other backends may need at most.
    pub limits: &'a [u128],
    /// No peak need be lower than this.
    pub floor: u128,
}

/// A region.
pub(super) struct Beam<'a> {
    steps: &'a Steps,
    question: Question<'a>,
    /// The lowest number of its steps; they are consecutive.
    start: u32,
    /// Its steps, in the order given.
    members: &'a [u32],
    /// The place of each step in that order.
    place: Vec<usize>,
}

/// An answer.
pub(super) struct Found {
    /// A better order than the one given.
    pub order: Option<Vec<u32>>,
    /// Its peak, or that of the one given; at least the floor.
    pub peak: u128,
    /// Whether no order has a smaller one.
    pub is_least: bool,
}

/// Steps that have run; members are named by their place in the order given.
#[derive(Clone)]
struct State {
    done: Vec<u64>,
    /// Members that may run next, in the order given.
    ready: Vec<usize>,
    bytes: Vec<u128>,
    peak: u128,
    /// The last member that ran, and the one before it: an index into the trails.
    trail: Option<usize>,
}

impl<'a> Beam<'a> {
    /// Of the steps from `start`, in the order given.
    pub fn new(steps: &'a Steps, start: u32, members: &'a [u32], question: Question<'a>) -> Self {
        let mut place = vec![0; members.len()];
        for (at, &step) in members.iter().enumerate() {
            place[(step - start) as usize] = at;
        }
        Self { steps, question, start, members, place }
    }

    /// The least peak below the one of the order given.
    pub fn least(&self, given_peak: u128, work: &mut Work) -> Found {
        let mut found = Found { order: None, peak: given_peak, is_least: false };
        for width in WIDTHS {
            let (order, is_complete) = self.round(width, found.peak, work);
            if let Some((order, peak)) = order {
                (found.order, found.peak) = (Some(order), peak);
            }
            found.is_least = is_complete;
            if is_complete || found.peak <= self.question.floor {
                break;
            }
        }
        found
    }

    /// An order with a peak below this, and whether no set had to be left out.
    fn round(&self, width: usize, below: u128, work: &mut Work) -> (Option<(Vec<u32>, u128)>, bool) {
        let mut trails: Vec<(Option<usize>, usize)> = Vec::new();
        let mut is_complete = true;
        let mut states = vec![self.first()];
        for _ in self.members {
            let mut next: Vec<State> = Vec::new();
            let mut known: HashMap<Vec<u64>, usize> = HashMap::new();
            for (state, member) in
                states.iter().flat_map(|state| state.ready.iter().map(move |&member| (state, member)))
            {
                let Some(left) = work.0.checked_sub(1) else { return (None, false) };
                work.0 = left;
                let Some(after) = self.after(state, member, below) else { continue };
                let at = *known.entry(after.done.clone()).or_insert(next.len());
                if next.get(at).is_some_and(|other| other.peak <= after.peak) {
                    continue;
                }
                trails.push((state.trail, member));
                let after = State { trail: Some(trails.len() - 1), ..after };
                if at == next.len() { next.push(after) } else { next[at] = after }
            }
            if next.len() > width {
                // Stable: among equals, what is nearest to the order given.
                next.sort_by_key(|state| (state.peak, state.bytes[self.question.backend]));
                next.truncate(width);
                is_complete = false;
            }
            states = next;
        }
        let order = states.first().map(|state| (self.order(&trails, state.trail), state.peak));
        (order, is_complete)
    }

    fn first(&self) -> State {
        let mut state = State {
            done: vec![0; self.members.len().div_ceil(64)],
            ready: Vec::new(),
            bytes: self.question.before.to_vec(),
            peak: self.question.floor,
            trail: None,
        };
        state.ready = (0..self.members.len()).filter(|&member| self.may_run(&state.done, member)).collect();
        state
    }

    /// After one more member, unless too much would live meanwhile.
    fn after(&self, state: &State, member: usize, below: u128) -> Option<State> {
        let step = self.members[member];
        let mut bytes = state.bytes.clone();
        let during = self.steps.run(step, &mut bytes, |reader| self.has_run(&state.done, reader));
        let backend = self.steps.backend(step);
        let is_too_much =
            if backend == self.question.backend { during >= below } else { during > self.question.limits[backend] };
        if is_too_much {
            return None;
        }
        let mut done = state.done.clone();
        done[member / 64] |= 1 << (member % 64);
        let mut ready: Vec<usize> = state.ready.iter().copied().filter(|&other| other != member).collect();
        let freed = self.steps.after(step).iter().filter_map(|&after| self.member(after));
        ready.extend(freed.filter(|&after| self.may_run(&done, after)));
        ready.sort_unstable();
        let peak = if backend == self.question.backend { state.peak.max(during) } else { state.peak };
        Some(State { done, ready, bytes, peak, trail: None })
    }

    fn may_run(&self, done: &[u64], member: usize) -> bool {
        self.steps.before(self.members[member]).iter().all(|&before| self.has_run(done, before))
    }

    fn has_run(&self, done: &[u64], step: u32) -> bool {
        match self.member(step) {
            Some(member) => done[member / 64] >> (member % 64) & 1 == 1,
            None => step < self.start,
        }
    }

    /// A step's place among the members.
    fn member(&self, step: u32) -> Option<usize> {
        self.place.get(step.checked_sub(self.start)? as usize).copied()
    }

    fn order(&self, trails: &[(Option<usize>, usize)], last: Option<usize>) -> Vec<u32> {
        let mut order = Vec::new();
        let mut at = last;
        while let Some((before, member)) = at.map(|at| trails[at]) {
            order.push(self.members[member]);
            at = before;
        }
        order.reverse();
        order
    }
}
