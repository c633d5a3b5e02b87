//! Several regions: takes a problem and the most bytes one region may have, gives each buffer a region and an offset in
//! it. For devices that limit the size of one allocation. Must not know how a region is placed.

use std::cmp::Reverse;

use thiserror::Error;

use crate::sections::Sections;
use crate::{
    LowerBound, Options, PlaceError, Placed, Problem, ProblemError, Strategy, Violation, check_certificate,
    lower_bound, place_until,
};

/// One region: some of the problem's buffers, placed from offset 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Indices into the problem's buffers, ascending.
    pub buffers: Vec<usize>,
    /// Their placement; indices inside count within `buffers`.
    pub placed: Placed,
}

/// All regions, and what any division needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regions {
    /// The regions, none empty unless the problem is.
    pub regions: Vec<Region>,
    /// The lower bound of the whole problem: no regions sum to less.
    pub lower_bound: LowerBound,
}

impl Regions {
    /// The sum of the regions' heights.
    pub fn total_bytes(&self) -> u64 {
        self.regions.iter().map(|r| r.placed.placement.height).sum()
    }

    /// No division into fewer regions of this size exists.
    pub fn least_regions(&self, max_region_bytes: u64) -> u64 {
        self.lower_bound.bytes.div_ceil(max_region_bytes.max(1))
    }
}

/// Why there are no regions.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the message names every field")]
pub enum RegionsError {
    /// The problem is broken.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// A buffer alone is larger than a region may be.
    #[error("buffer {buffer}: {size} bytes, a region holds at most {max_region_bytes}")]
    TooLarge { buffer: usize, size: u64, max_region_bytes: u64 },
    /// A fixed offset means nothing if there is more than one address range.
    #[error("buffer {buffer} has a fixed offset: several regions have no common addresses")]
    Fixed { buffer: usize },
    /// Placing a region failed otherwise.
    #[error(transparent)]
    Place(PlaceError),
}

/// Divides the buffers into as few regions as it can find, none above `max_region_bytes`, and places each by
/// [`Strategy::Planned`] (the problem's own capacity is not looked at). One region if that suffices. Large buffers choose
/// first, each the first region whose live bytes stay within the limit; a region that then cannot be placed passes its
/// smallest buffer on.
pub fn place_in_regions(problem: &Problem, max_region_bytes: u64, options: &Options) -> Result<Regions, RegionsError> {
    let open = Problem { capacity: None, ..problem.clone() };
    open.validate()?;
    for (buffer, b) in problem.buffers.iter().enumerate() {
        if b.size > max_region_bytes {
            return Err(RegionsError::TooLarge { buffer, size: b.size, max_region_bytes });
        }
        if b.offset.is_some() {
            return Err(RegionsError::Fixed { buffer });
        }
    }
    let lower_bound = lower_bound(&open);
    let mut waiting: Vec<usize> = (0..problem.buffers.len()).collect();
    let area = |i: usize| u128::from(problem.buffers[i].size) * u128::from(problem.buffers[i].duration());
    let key = |&i: &usize| (Reverse(area(i)), i);
    waiting.sort_by_key(key);
    let mut regions = Vec::new();
    while !waiting.is_empty() || regions.is_empty() {
        let (mut chosen, mut rest) = fill(problem, &waiting, max_region_bytes);
        let region = loop {
            match place_region(problem, &chosen, max_region_bytes, options) {
                Ok(region) => break region,
                // Not placed or proven impossible: with one buffer less it is easier; one buffer alone always fits.
                Err(PlaceError::AboveCapacity { .. } | PlaceError::Unplaceable { .. }) if chosen.len() > 1 => {
                    rest.extend(chosen.pop());
                }
                Err(error) => return Err(RegionsError::Place(error)),
            }
        };
        regions.push(region);
        rest.sort_by_key(key);
        waiting = rest;
    }
    Ok(Regions { regions, lower_bound })
}

/// Those of the waiting, in order, whose live bytes stay within the limit together; and the others.
fn fill(problem: &Problem, waiting: &[usize], max_region_bytes: u64) -> (Vec<usize>, Vec<usize>) {
    let sections = Sections::new(waiting.iter().map(|&i| &problem.buffers[i]));
    // Live bytes per section; sums of a valid problem fit.
    let mut live = vec![0u64; sections.len()];
    waiting.iter().partition(|&&i| {
        let b = &problem.buffers[i];
        let fits = sections.of(b).flatten().all(|s| live[s] + b.size <= max_region_bytes);
        if fits {
            sections.of(b).flatten().for_each(|s| live[s] += b.size);
        }
        fits
    })
}

fn place_region(
    problem: &Problem,
    chosen: &[usize],
    max_region_bytes: u64,
    options: &Options,
) -> Result<Region, PlaceError> {
    let mut buffers = chosen.to_vec();
    buffers.sort_unstable();
    let part = Problem {
        buffers: buffers.iter().map(|&i| problem.buffers[i].clone()).collect(),
        capacity: Some(max_region_bytes),
    };
    let placed = place_until(&part, Strategy::Planned, options, &|| false)?;
    Ok(Region { buffers, placed })
}

/// Checks that every buffer is in one region, and each region with its certificate. Shares no code with the division.
pub fn check_regions(problem: &Problem, regions: &Regions, max_region_bytes: u64) -> Result<(), Violation> {
    let mut seen = vec![0usize; problem.buffers.len()];
    for region in &regions.regions {
        let mut buffers = Vec::new();
        for &i in &region.buffers {
            let Some(b) = problem.buffers.get(i) else {
                return Err(Violation::Count { expected: problem.buffers.len(), got: i });
            };
            seen[i] += 1;
            buffers.push(b.clone());
        }
        check_certificate(&Problem { buffers, capacity: Some(max_region_bytes) }, &region.placed)?;
    }
    match seen.iter().position(|&n| n != 1) {
        Some(_) => Err(Violation::Count { expected: seen.len(), got: seen.iter().sum() }),
        None => Ok(()),
    }
}
