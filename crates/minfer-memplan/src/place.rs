//! The one entry: takes a problem and a strategy, gives offsets with a certificate. Must not know how a strategy works.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::budget::Stop;
use crate::exact::{self, Goal, Least};
use crate::{LowerBound, Problem, ProblemError, lower_bound, naive, planned, pool};

/// How offsets are chosen. All strategies give the same kind of answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Every buffer gets its own bytes.
    Naive,
    /// Online recycling by size class, in order of `lower`: a freed slot serves the next buffer of an equal class.
    Pool,
    /// Offline: all lifetimes are known, the lowest height found wins.
    #[default]
    Planned,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Strategy::Naive => "naive",
            Strategy::Pool => "pool",
            Strategy::Planned => "planned",
        })
    }
}

/// The text names no [`Strategy`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown strategy {got:?}, expected naive, pool or planned")]
pub struct UnknownStrategy {
    /// The text.
    pub got: String,
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(s: &str) -> Result<Self, UnknownStrategy> {
        match s {
            "naive" => Ok(Strategy::Naive),
            "pool" => Ok(Strategy::Pool),
            "planned" => Ok(Strategy::Planned),
            _ => Err(UnknownStrategy { got: s.to_owned() }),
        }
    }
}

/// Where each buffer lies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Offset in bytes, one per buffer, by index. A free buffer of zero bytes lies at 0.
    pub offsets: Vec<u64>,
    /// One past the highest byte: the largest `offset + size`.
    pub height: u64,
}

impl Placement {
    /// The placement with these offsets, one per buffer of a valid problem.
    pub(crate) fn new(problem: &Problem, offsets: Vec<u64>) -> Self {
        let height = offsets.iter().zip(&problem.buffers).map(|(o, b)| o + b.size).max().unwrap_or(0);
        Self { offsets, height }
    }
}

/// What is proven about a height.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The height equals the lower bound: no placement is lower, and the witness proves it.
    Optimal,
    /// The height is above the lower bound, and still no placement is lower: exact search tried all ways.
    OptimalBySearch,
    /// The height is this far above what is proven to be needed. A lower placement may or may not exist.
    Gap {
        /// Height minus [`Certificate::proven_bytes`], never 0.
        bytes: u64,
    },
}

impl Verdict {
    /// Whether no placement is lower, however that is known.
    pub fn is_optimal(self) -> bool {
        !matches!(self, Verdict::Gap { .. })
    }
}

/// A height, a lower bound with its witness, and what follows from both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Certificate {
    /// Height of the placement in bytes.
    pub height: u64,
    /// The bound and its witness.
    pub lower_bound: LowerBound,
    /// No placement is lower than this: the lower bound, or more where exact search ruled heights out or a fixed buffer
    /// ends higher. Together with `height` it is the interval in which the least height lies.
    pub proven_bytes: u64,
    /// What follows.
    pub verdict: Verdict,
}

impl Certificate {
    fn new(height: u64, lower_bound: LowerBound, proven_bytes: u64) -> Self {
        let verdict = match height - proven_bytes {
            0 if height == lower_bound.bytes => Verdict::Optimal,
            0 => Verdict::OptimalBySearch,
            bytes => Verdict::Gap { bytes },
        };
        Self { height, lower_bound, proven_bytes, verdict }
    }
}

/// Buffers that alone do not fit within a capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Blame {
    /// Indices, ascending.
    pub buffers: Vec<usize>,
    /// Whether any of them can be left out no longer. If not, the node budget ended before that was known.
    pub is_irreducible: bool,
}

/// A placement with its certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Placed {
    /// The offsets.
    pub placement: Placement,
    /// What is proven about them.
    pub certificate: Certificate,
    /// Under [`Strategy::Pool`], how many distinct slots the free buffers with bytes share; else `None`.
    pub n_slots: Option<usize>,
}

/// How much work a placement may take, and what for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Options {
    /// Bound on the greedy work of [`Strategy::Planned`], in nodes: placed buffers looked at while searching for free
    /// addresses, a few nanoseconds each. A placement once begun is finished, so a little more may be spent. Counted, not
    /// timed: the answer is the same on every machine. Nothing more is spent once the lower bound is reached.
    pub node_budget: u64,
    /// Bound on the exact search that [`Strategy::Planned`] turns to if the greedy work did not reach the lower bound, in
    /// nodes: conclusions drawn after a decision, some microseconds each. 0: no search. The answer is the same on every
    /// machine. Not searched are problems with more than 4096 buffers that hang together in time, with more pairs that meet or
    /// more idle periods than fit into the tables of so many, or with heights above 2^61 in units of the greatest common
    /// divisor of all lengths. What a search may keep is limited, too ([`search_bytes`](crate::search_bytes)); one that needs
    /// more ends as if its nodes were spent.
    pub search_nodes: u64,
    /// Whether the search may use a second thread. Changes neither the answer nor the nodes spent.
    pub parallel: bool,
    /// With a capacity: whether to go on below it, to the least height. Without one that is always the goal.
    pub minimize: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { node_budget: 50_000_000, search_nodes: 5_000, parallel: false, minimize: true }
    }
}

/// Why there is no placement to return.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlaceError {
    /// The problem itself is broken.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// Proven: no placement fits, for more bytes are live at one step than the capacity holds.
    #[error("infeasible: {} bytes are live at step {}, the capacity is {capacity}", lower_bound.bytes, lower_bound.step)]
    Infeasible {
        /// The problem's capacity.
        capacity: u64,
        /// The proof.
        lower_bound: LowerBound,
    },
    /// Proven by exact search: no placement fits, though at no step more bytes are live than the capacity holds.
    #[error("infeasible: no placement of {} buffers fits within {capacity} bytes, all ways were tried", blame.buffers.len())]
    Unplaceable {
        /// The problem's capacity.
        capacity: u64,
        /// Buffers that alone do not fit.
        blame: Blame,
        /// What was found, valid but for the capacity.
        found: Box<Placed>,
    },
    /// Not proven: the strategy's best placement is too high. Another may fit.
    #[error("the lowest placement found needs {} bytes, the capacity is {capacity}", found.placement.height)]
    AboveCapacity {
        /// The problem's capacity.
        capacity: u64,
        /// What was found, valid but for the capacity.
        found: Box<Placed>,
    },
    /// Rounding to size classes left the 64-bit address range.
    #[error("buffer {buffer}: its slot leaves the 64-bit address range")]
    SlotOverflow {
        /// The buffer whose slot did it.
        buffer: usize,
    },
}

/// Places all buffers with default [`Options`]. Same input, same output.
pub fn place(problem: &Problem, strategy: Strategy) -> Result<Placed, PlaceError> {
    place_with(problem, strategy, &Options::default())
}

/// Places all buffers. Same input, same output.
pub fn place_with(problem: &Problem, strategy: Strategy, options: &Options) -> Result<Placed, PlaceError> {
    place_until(problem, strategy, options, &|| false)
}

/// The same, but ends early once `stop` returns true, with the best placement so far; a capacity that was not reached by
/// then is [`PlaceError::AboveCapacity`], never infeasible. `stop` is asked every few milliseconds, perhaps from another
/// thread. What depends on it, a clock say, the answer depends on, too.
pub fn place_until(
    problem: &Problem,
    strategy: Strategy,
    options: &Options,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Placed, PlaceError> {
    problem.validate()?;
    let bound = lower_bound(problem);
    if let Some(capacity) = problem.capacity.filter(|&c| bound.bytes > c) {
        return Err(PlaceError::Infeasible { capacity, lower_bound: bound });
    }
    // Neither is a placement lower than a fixed buffer's end.
    let fixed_top = problem.buffers.iter().filter_map(|b| b.offset.map(|o| o + b.size)).max().unwrap_or(0);
    let least = bound.bytes.max(fixed_top);
    let mut search_nodes = 0;
    let (placement, proven, n_slots) = match strategy {
        Strategy::Naive => (Placement::new(problem, naive::offsets(problem)), least, None),
        Strategy::Pool => {
            let pooled = pool::offsets(problem, stop)?;
            (Placement::new(problem, pooled.offsets), least, Some(pooled.n_slots))
        }
        Strategy::Planned => {
            search_nodes = options.search_nodes;
            let Least { placement, proven } =
                greedy_then_exact(problem, &bound, least, options, &mut search_nodes, stop);
            (placement, proven, None)
        }
    };
    let height = placement.height;
    let placed = Placed { placement, certificate: Certificate::new(height, bound, proven), n_slots };
    match problem.capacity.filter(|&c| height > c) {
        Some(capacity) if proven > capacity => {
            let suspects: Vec<usize> = (0..problem.buffers.len()).filter(|&i| problem.buffers[i].size > 0).collect();
            let blame = exact::blame(problem, &suspects, capacity, &mut search_nodes, stop);
            Err(PlaceError::Unplaceable { capacity, blame, found: Box::new(placed) })
        }
        Some(capacity) => Err(PlaceError::AboveCapacity { capacity, found: Box::new(placed) }),
        None => Ok(placed),
    }
}

/// Greedy first, exact search if that leaves the goal open. No placement is lower than `least` bytes.
fn greedy_then_exact(
    problem: &Problem,
    bound: &LowerBound,
    least: u64,
    options: &Options,
    search_nodes: &mut u64,
    stop: Stop<'_>,
) -> Least {
    let goal = match problem.capacity {
        Some(capacity) if !options.minimize => Goal::Within(capacity),
        _ => Goal::Least,
    };
    let aim = match goal {
        Goal::Within(capacity) => capacity,
        Goal::Least => least,
    };
    let placement = Placement::new(problem, planned::offsets(problem, bound, aim, options.node_budget, stop));
    let mut known = Least { placement, proven: least };
    let height = known.placement.height;
    if height <= aim || *search_nodes == 0 || stop() || !exact::is_searchable(problem, height) {
        return known;
    }
    // A capacity comes first, whatever is wanted below it, with half of the nodes.
    if let Some(capacity) = problem.capacity.filter(|&c| known.placement.height > c && goal == Goal::Least) {
        let mut half = *search_nodes / 2;
        *search_nodes -= half;
        known = exact::least(problem, known, Goal::Within(capacity), options.parallel, &mut half, stop);
        *search_nodes += half;
        if known.placement.height > capacity {
            return known;
        }
    }
    exact::least(problem, known, goal, options.parallel, search_nodes, stop)
}
