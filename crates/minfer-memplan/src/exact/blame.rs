//! Who is to blame: takes a problem that does not fit within a capacity, gives few buffers that alone do not fit. Must
//! not know how that was found out.

use super::restarts::Question;
use super::{Decision, components};
use crate::budget::Stop;
use crate::{Blame, Problem};

/// Nodes a question about fewer buffers may take, at most.
const NODES_PER_QUESTION: u64 = 200_000;

/// Leaves out buffers as long as the rest still does not fit. `suspects` do not fit: that is proven, and by search, for at no
/// step more bytes are live than the capacity, nor does a fixed buffer end above it.
pub(crate) fn blame(problem: &Problem, suspects: &[usize], capacity: u64, budget: &mut u64, stop: Stop<'_>) -> Blame {
    let mut kept: Vec<usize> = suspects.to_vec();
    let mut open = 0; // buffers that could be neither left out nor shown to be needed
    // Large pieces first: most buffers are innocent.
    let mut piece = kept.len().div_ceil(2).max(1);
    loop {
        open = if piece == 1 { 0 } else { open };
        let mut at = 0;
        while at < kept.len() {
            if *budget < 2 || stop() {
                return Blame { buffers: kept, is_irreducible: false };
            }
            let end = (at + piece).min(kept.len());
            let rest: Vec<usize> = [&kept[..at], &kept[end..]].concat();
            match fits(problem, &rest, capacity, budget, stop) {
                Some(false) => kept = rest,
                Some(true) => at = end,
                None => {
                    open += end - at;
                    at = end;
                }
            }
        }
        if piece == 1 {
            return Blame { buffers: kept, is_irreducible: open == 0 };
        }
        piece = piece.div_ceil(2);
    }
}

/// Whether these buffers alone fit; `None` if the budget ends first, or the search.
fn fits(problem: &Problem, buffers: &[usize], capacity: u64, budget: &mut u64, stop: Stop<'_>) -> Option<bool> {
    let part = Problem::new(buffers.iter().map(|&i| problem.buffers[i].clone()).collect());
    let mut open = false;
    for instance in components(&part) {
        let mut share = NODES_PER_QUESTION.min(*budget);
        let before = share;
        let found = Question::new(&instance, capacity / instance.unit, false).ask(&mut share, stop);
        *budget -= before - share;
        match found {
            Decision::Infeasible => return Some(false),
            Decision::Unknown => open = true,
            Decision::Fits(_) => {}
        }
    }
    (!open).then_some(true)
}
