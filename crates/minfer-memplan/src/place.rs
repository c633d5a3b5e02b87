//! The one entry: takes a problem and a strategy, gives offsets with a certificate. Must not know how a strategy works.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

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
    /// The height equals the lower bound: no placement is lower.
    Optimal,
    /// The height is this far above the lower bound. A lower placement may or may not exist.
    Gap {
        /// Height minus lower bound, never 0.
        bytes: u64,
    },
}

/// A height, a lower bound with its witness, and what follows from both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Certificate {
    /// Height of the placement in bytes.
    pub height: u64,
    /// The bound and its witness.
    pub lower_bound: LowerBound,
    /// What follows.
    pub verdict: Verdict,
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

/// How much work a placement may take.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Options {
    /// Bound on the work of [`Strategy::Planned`], in nodes: placed buffers looked at while searching for a gap, a few
    /// nanoseconds each. A placement once begun is finished, so a little more may be spent. Counted, not timed: the
    /// answer is the same on every machine. Nothing more is spent once the lower bound is reached.
    pub node_budget: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { node_budget: 50_000_000 }
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
    problem.validate()?;
    let bound = lower_bound(problem);
    if let Some(capacity) = problem.capacity.filter(|&c| bound.bytes > c) {
        return Err(PlaceError::Infeasible { capacity, lower_bound: bound });
    }
    let (offsets, n_slots) = match strategy {
        Strategy::Naive => (naive::offsets(problem), None),
        Strategy::Pool => {
            let pooled = pool::offsets(problem)?;
            (pooled.offsets, Some(pooled.n_slots))
        }
        Strategy::Planned => (planned::offsets(problem, &bound, options.node_budget), None),
    };
    let placement = Placement::new(problem, offsets);
    let height = placement.height;
    let verdict = match height - bound.bytes {
        0 => Verdict::Optimal,
        bytes => Verdict::Gap { bytes },
    };
    let placed = Placed { placement, certificate: Certificate { height, lower_bound: bound, verdict }, n_slots };
    match problem.capacity.filter(|&c| height > c) {
        Some(capacity) => Err(PlaceError::AboveCapacity { capacity, found: Box::new(placed) }),
        None => Ok(placed),
    }
}
