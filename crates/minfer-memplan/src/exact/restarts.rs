//! Restarts: takes an instance and a capacity, gives many searches a share of the node budget until one decides. Must
//! not know how a search works.
//!
//! A search that takes a wrong turn early rarely recovers, so half of the effort goes to short runs, each with another
//! order of preference: by length of life, by how crowded the sections are, by how often they were the ones that did not
//! fit (which the runs before have learnt), always with some noise. The other half goes to one patient search that
//! doubles its budget, and so completes the proof when nothing fits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::instance::Instance;
use super::search::{Pick, Search};
use super::state::{State, state_bytes};
use super::{Decision, Halt};
use crate::budget::Stop;

/// What an order of preference goes by, highest first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    /// Length of life, in crowded sections.
    Width,
    Area,
    /// Most bytes live in any of its sections, ties by width.
    CrowdThenWidth,
    /// Failures, summed over its sections.
    Failures,
    /// Failures in the worst of its sections, times width.
    FailuresTimesWidth,
}

const SHORT_LANES: [(Pick, Key); 8] = [
    (Pick::Lowest, Key::CrowdThenWidth),
    (Pick::Narrowest, Key::CrowdThenWidth),
    (Pick::Lowest, Key::Area),
    (Pick::Narrowest, Key::Failures),
    (Pick::Lowest, Key::Width),
    (Pick::Narrowest, Key::Width),
    (Pick::Lowest, Key::FailuresTimesWidth),
    (Pick::Narrowest, Key::FailuresTimesWidth),
];
/// The short lane that takes every second turn: it needs fewest nodes on the hardest problem of the suite (I), 110 000 on
/// average over five seeds; all lanes by turns need three times as many.
const FAVOURITE: usize = 1;
const PATIENT_LANE: (Pick, Key) = (Pick::Narrowest, Key::FailuresTimesWidth);

/// Nodes of a short run, beside one per item.
const SHORT_NODES: u64 = 400;
/// Nodes of the first round, for each half.
const FIRST_ROUND_NODES: u64 = 12_000;
/// Stack of a second thread: nothing there is recursive.
const STACK_BYTES: usize = 256 << 10;

/// One sequence of runs that learn from each other. Between them it keeps nothing but what was learnt.
struct Lane<'a> {
    instance: &'a Instance,
    capacity: u64,
    pick: Pick,
    key: Key,
    runs: u64,
    failures: Vec<u64>, // per section
}

impl<'a> Lane<'a> {
    fn new(instance: &'a Instance, capacity: u64, (pick, key): (Pick, Key)) -> Self {
        Self { instance, capacity, pick, key, runs: 0, failures: vec![0; instance.members.len()] }
    }

    /// What was found, and the nodes spent.
    fn run(&mut self, budget: u64, stop: Stop<'_>) -> (Decision, u64) {
        let state = State::new(self.instance, self.capacity, std::mem::take(&mut self.failures));
        let rank = self.rank(&state);
        let mut search = Search::new(state, self.pick, rank);
        let found = search.run(budget, stop);
        self.runs += 1;
        self.failures = std::mem::take(&mut search.state.failures);
        self.failures.iter_mut().for_each(|f| *f -= *f / 4);
        let decision = match found {
            Ok(true) => Decision::Fits(search.state.offsets),
            Ok(false) => Decision::Infeasible,
            Err(Halt) => Decision::Unknown,
        };
        (decision, search.nodes.min(budget))
    }

    /// The rank of each item by key, from the second run on with noise.
    fn rank(&self, state: &State<'_>) -> Vec<u32> {
        let instance = self.instance;
        let noise = |k: usize| if self.runs == 0 { 1024 } else { 1024 + mix(self.runs << 32 | k as u64) % 1024 };
        let value = |k: usize| -> u128 {
            let item = &instance.items[k];
            let width = item.sections().count() as u128;
            let failures = || item.sections().map(|s| state.failures[s]);
            let crowd = || u128::from(item.sections().map(|s| state.to_come(s)).max().unwrap_or(0));
            let noise = u128::from(noise(k));
            match self.key {
                Key::Width => width * noise,
                Key::Area => width * u128::from(item.size) * noise,
                Key::CrowdThenWidth => (crowd() << 48) + width * noise,
                Key::Failures => (u128::from(failures().sum::<u64>()) + 16 * width) * noise,
                Key::FailuresTimesWidth => u128::from(16 + failures().max().unwrap_or(0)) * width * noise,
            }
        };
        let mut order: Vec<(u128, usize)> = (0..instance.items.len()).map(|k| (!value(k), k)).collect();
        order.sort_unstable();
        let mut ranks = vec![0; order.len()];
        for (rank, &(_, k)) in order.iter().enumerate() {
            ranks[k] = rank as u32;
        }
        ranks
    }
}

/// A number that looks like chance (the finaliser of SplitMix64, Steele et al. 2014).
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The most bytes that a question takes until it is asked again.
pub(crate) fn question_bytes(n_sections: usize) -> usize {
    (SHORT_LANES.len() + 1) * (size_of::<Lane<'_>>() + n_sections * size_of::<u64>())
}

/// The most bytes that one run takes beside; two run at a time if there is a second thread.
pub(crate) fn run_bytes(n_items: usize, n_sections: usize) -> usize {
    // Beside the state a rank, for a moment its key, and two tasks per item.
    state_bytes(n_items, n_sections) + 256 * n_items + STACK_BYTES
}

/// The question whether an instance fits within a capacity. Asked again, it goes on where it stopped.
pub(crate) struct Question<'a> {
    short: Vec<Lane<'a>>,
    next: usize,
    patient: Lane<'a>,
    round_nodes: u64,
    parallel: bool,
}

impl<'a> Question<'a> {
    pub fn new(instance: &'a Instance, capacity: u64, parallel: bool) -> Self {
        let lane = |kind| Lane::new(instance, capacity, kind);
        let short = SHORT_LANES.map(lane).into_iter().collect();
        Self { short, next: 0, patient: lane(PATIENT_LANE), round_nodes: FIRST_ROUND_NODES, parallel }
    }

    /// Spends at most the budget, which it lowers by what it spent. Without `stop` the answer and the nodes spent are
    /// the same on every machine, with or without a second thread.
    pub fn ask(&mut self, budget: &mut u64, stop: Stop<'_>) -> Decision {
        loop {
            let half = self.round_nodes.min(*budget / 2);
            if half == 0 {
                return Decision::Unknown;
            }
            let (found, spent) = self.round(half, stop);
            *budget -= spent.min(*budget);
            match found {
                Decision::Unknown if stop() => return Decision::Unknown,
                Decision::Unknown => self.round_nodes = self.round_nodes.saturating_mul(2),
                decided => return decided,
            }
        }
    }

    /// One round: `half` nodes for the short runs, as many for the patient one, side by side if there are two threads.
    /// What a race between both could change is not counted: a decided round costs the short runs' nodes up to a
    /// placement, or all.
    fn round(&mut self, half: u64, stop: Stop<'_>) -> (Decision, u64) {
        let is_short = half <= FIRST_ROUND_NODES; // never worth a second thread, so there is no race
        if self.parallel
            && !is_short
            && let Some(decided) = self.side_by_side(half, stop)
        {
            return decided;
        }
        let (found, spent) = short_runs(&mut self.short, &mut self.next, half, stop);
        match found {
            Decision::Infeasible if !is_short => return (found, 2 * half),
            Decision::Unknown => {}
            _ => return (found, spent),
        }
        let (found, patient_spent) = self.patient.run(half, stop);
        (found, if is_short { spent + patient_spent } else { 2 * half })
    }

    /// A round on two threads. `None`, and nothing done, if the system starts none.
    fn side_by_side(&mut self, half: u64, stop: Stop<'_>) -> Option<(Decision, u64)> {
        let Self { short, next, patient, .. } = self;
        let (short_done, patient_proved) = (AtomicBool::new(false), AtomicBool::new(false));
        let patient_halted = || short_done.load(Ordering::Relaxed) || stop();
        let short_halted = || patient_proved.load(Ordering::Relaxed) || stop();
        thread::scope(|scope| {
            let patient_run = || {
                let (found, _) = patient.run(half, &patient_halted);
                patient_proved.store(matches!(found, Decision::Infeasible), Ordering::Relaxed);
                found
            };
            let patient = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, patient_run).ok()?;
            let (found, spent) = short_runs(short, next, half, &short_halted);
            short_done.store(!matches!(found, Decision::Unknown), Ordering::Relaxed);
            let patient = patient.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Some(match found {
                Decision::Fits(_) => (found, spent),
                Decision::Infeasible => (found, 2 * half),
                Decision::Unknown => (patient, 2 * half),
            })
        })
    }
}

/// Short runs until one decides or the nodes are spent: by turns the favourite lane and the next of all.
fn short_runs(lanes: &mut [Lane<'_>], next: &mut usize, nodes: u64, stop: Stop<'_>) -> (Decision, u64) {
    let mut spent = 0;
    while spent < nodes {
        let lane = &mut lanes[if next.is_multiple_of(2) { FAVOURITE } else { *next / 2 }];
        *next = (*next + 1) % (2 * SHORT_LANES.len());
        // Later runs are a little longer.
        let short = SHORT_NODES + lane.instance.items.len() as u64;
        let share = (short + short * lane.runs / 32).min(nodes - spent);
        let (found, lane_spent) = lane.run(share, stop);
        spent += lane_spent;
        if !matches!(found, Decision::Unknown) || stop() {
            return (found, spent);
        }
    }
    (Decision::Unknown, spent)
}
