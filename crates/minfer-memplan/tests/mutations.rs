//! The checker against answers that were spoilt on purpose. Whether a mutation spoils is decided here, byte by byte.

mod steps;

use std::collections::HashSet;

use minfer_memplan::{Strategy, *};
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

/// True if two buffers claim the same byte at the same step: every pair (step, byte) is written down.
fn collides(problem: &Problem, offsets: &[u64]) -> bool {
    let mut seen = HashSet::new();
    problem.buffers.iter().zip(offsets).any(|(b, &offset)| {
        let mut live = (b.lower..b.upper).filter(|&step| steps::is_live(b, step));
        live.any(|step| (offset..offset + b.size).any(|byte| !seen.insert((step, byte))))
    })
}

fn problem() -> impl Generator<Value = Problem> {
    let buffer = (0..12u64, 1..6u64, 1..9u64, prop_oneof![Just(0u64), 0..32u64])
        .prop_map(|(l, steps, size, idle)| steps::idle_at(Buffer::new(l, l + steps, size), idle));
    prop::collection::vec(buffer, 2..14).prop_map(Problem::new)
}

/// Little greedy work: the bound is often out of reach, and a placement is spoilt as well as a better one.
fn planned(problem: &Problem) -> Placed {
    let mut options = Options::default();
    options.node_budget = 20_000;
    place_with(problem, Strategy::Planned, &options).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The planner is told a shorter lifetime than the true one.
    #[test]
    fn a_shortened_lifetime_is_caught(truth in problem(), i in any::<prop::sample::Index>()) {
        let i = i.index(truth.buffers.len());
        let mut shortened = truth.clone();
        shortened.buffers[i].upper -= 1;
        prop_assume!(shortened.validate().is_ok());
        let offsets = planned(&shortened).placement.offsets;
        prop_assert_eq!(check(&truth, &offsets).is_err(), collides(&truth, &offsets));
    }

    /// The planner is told of a period in which the buffer is in truth live, or of one that begins or ends a step beside
    /// the true one.
    #[test]
    fn a_wrong_idle_period_is_caught(
        truth in problem(),
        i in any::<prop::sample::Index>(),
        idle in 0..32u64,
        (start, end) in (0..3u64, 0..3u64),
    ) {
        let i = i.index(truth.buffers.len());
        let mut told = truth.clone();
        let b = &mut told.buffers[i];
        match b.idle.last_mut() {
            Some(period) => *period = (period.start + start).saturating_sub(1)..(period.end + end).saturating_sub(1),
            None => *b = steps::idle_at(b.clone(), idle),
        }
        prop_assume!(told.validate().is_ok());
        let placed = planned(&told);
        let offsets = &placed.placement.offsets;
        prop_assert_eq!(check(&truth, offsets).is_err(), collides(&truth, offsets));
        // A witness with a buffer that is not live, or a bound that leaves out one that is.
        let bound = |problem: &Problem| {
            let live = |b: &Buffer| steps::is_live(b, placed.certificate.lower_bound.step);
            problem.buffers.iter().map(live).collect::<Vec<_>>()
        };
        if collides(&truth, offsets) || lower_bound(&truth).bytes != lower_bound(&told).bytes || bound(&truth) != bound(&told) {
            prop_assert!(check_certificate(&truth, &placed).is_err());
        }
    }

    /// Nobody told the planner of any idle period, or the checker.
    #[test]
    fn ignored_idle_periods_are_caught(truth in problem()) {
        let mut blind = truth.clone();
        blind.buffers.iter_mut().for_each(|b| b.idle.clear());
        let placed = planned(&blind);
        prop_assert_eq!(check(&truth, &placed.placement.offsets), Ok(placed.placement.height));
        let offsets = planned(&truth).placement.offsets;
        prop_assert_eq!(check(&blind, &offsets).is_err(), collides(&blind, &offsets));
    }

    #[test]
    fn swapped_offsets_are_caught(problem in problem(), i in any::<prop::sample::Index>(), j in any::<prop::sample::Index>()) {
        let n = problem.buffers.len();
        let mut placed = planned(&problem);
        placed.placement.offsets.swap(i.index(n), j.index(n));
        let offsets = &placed.placement.offsets;
        let height = offsets.iter().zip(&problem.buffers).map(|(o, b)| o + b.size).max().unwrap();
        prop_assert_eq!(check(&problem, offsets).is_err(), collides(&problem, offsets));
        let spoilt = collides(&problem, offsets) || height != placed.placement.height;
        prop_assert_eq!(check_certificate(&problem, &placed).is_err(), spoilt);
    }

    #[test]
    fn a_widened_size_is_caught(problem in problem(), i in any::<prop::sample::Index>(), by in 1..5u64) {
        let placed = planned(&problem);
        let mut wider = problem.clone();
        wider.buffers[i.index(problem.buffers.len())].size += by;
        let offsets = &placed.placement.offsets;
        prop_assert_eq!(check(&wider, offsets).is_err(), collides(&wider, offsets));
        // The certificate may survive a wider size only away from the witness, the peak and the top.
        let same = lower_bound(&wider).bytes == lower_bound(&problem).bytes
            && offsets.iter().zip(&wider.buffers).map(|(o, b)| o + b.size).max() == Some(placed.placement.height);
        prop_assert_eq!(check_certificate(&wider, &placed).is_err(), collides(&wider, offsets) || !same);
    }

    #[test]
    fn a_wrong_certificate_is_caught(problem in problem(), i in any::<prop::sample::Index>()) {
        let honest = planned(&problem);
        let caught = |spoil: &dyn Fn(&mut Placed)| {
            let mut placed = honest.clone();
            spoil(&mut placed);
            check_certificate(&problem, &placed).is_err()
        };
        let live = &honest.certificate.lower_bound.live;
        let k = i.index(live.len());
        assert!(caught(&|p| { p.certificate.lower_bound.live.remove(k); }));
        assert!(caught(&|p| { p.certificate.lower_bound.live.insert(k, live[k]); }));
        assert!(caught(&|p| p.certificate.lower_bound.live.push(problem.buffers.len())));
        assert!(caught(&|p| p.certificate.lower_bound.bytes += 1));
        assert!(caught(&|p| p.certificate.lower_bound.step = 1000));
        assert!(caught(&|p| p.certificate.height += 1));
        assert!(caught(&|p| p.placement.height -= 1));
        assert!(caught(&|p| { p.placement.offsets.pop(); }));
        assert!(caught(&|p| p.certificate.verdict = Verdict::Gap { bytes: 0 }));
        for verdict in [Verdict::Optimal, Verdict::OptimalBySearch, Verdict::Gap { bytes: 1 }] {
            if verdict != honest.certificate.verdict {
                assert!(caught(&|p| p.certificate.verdict = verdict));
            }
        }
        assert!(caught(&|p| p.certificate.proven_bytes += 1));
        assert!(caught(&|p| p.certificate.proven_bytes = p.certificate.lower_bound.bytes - 1));
        // Another step whose live set is smaller is no bound to report, even with an honest sum.
        for step in 0..20 {
            let live: Vec<usize> =
                (0..problem.buffers.len()).filter(|&i| steps::is_live(&problem.buffers[i], step)).collect();
            let bytes: u64 = live.iter().map(|&i| problem.buffers[i].size).sum();
            let height = honest.placement.height;
            let verdict = if bytes == height { Verdict::Optimal } else { Verdict::Gap { bytes: height - bytes } };
            let lower = bytes < honest.certificate.lower_bound.bytes;
            let other = LowerBound { bytes, step, live };
            let spoil = |p: &mut Placed| {
                p.certificate = Certificate { height, lower_bound: other.clone(), proven_bytes: bytes, verdict };
            };
            prop_assert_eq!(caught(&spoil), lower);
        }
    }
}

#[test]
fn every_kind_of_placement_error_is_named() {
    let b = Buffer::new;
    let two = Problem::new(vec![b(0, 2, 8), b(1, 3, 8)]);
    assert_eq!(check(&two, &[0, 8]), Ok(16));
    assert_eq!(check(&two, &[0]), Err(Violation::Count { expected: 2, got: 1 }));
    assert_eq!(check(&two, &[0, 7]), Err(Violation::Overlap { first: 0, second: 1 }));
    assert_eq!(check(&two, &[0, u64::MAX]), Err(Violation::Overflow { buffer: 1, offset: u64::MAX }));
    assert_eq!(check(&two, &[0, 7]).unwrap_err().buffers(), [0, 1]);
    // Of several pairs the one that meets first; a buffer without bytes lies in nobody's way.
    let three = Problem::new(vec![b(5, 9, 8), b(2, 6, 8), b(0, 3, 8), b(0, 9, 0)]);
    assert_eq!(check(&three, &[4, 0, 7, 1]), Err(Violation::Overlap { first: 1, second: 2 }));
    let tight = two.clone().with_capacity_bytes(15);
    assert_eq!(check(&tight, &[0, 8]), Err(Violation::AboveCapacity { buffer: 1, top: 16, capacity: 15 }));
    let aligned = Problem::new(vec![b(0, 2, 8).aligned(16)]);
    assert_eq!(check(&aligned, &[8]), Err(Violation::Misaligned { buffer: 0, offset: 8, alignment: 16 }));
    let fixed = Problem::new(vec![b(0, 2, 8).fixed_at(32)]);
    assert_eq!(check(&fixed, &[0]), Err(Violation::Moved { buffer: 0, expected: 32, got: 0 }));
    let idle = Problem::new(vec![b(0, 9, 8).idle_in(2..5).idle_in(6..8), b(2, 7, 8).idle_in(5..6)]);
    assert_eq!(check(&idle, &[0, 8]), Ok(16));
    assert_eq!(check(&idle, &[0, 0]), Ok(8));
    let mut busy = idle.clone();
    busy.buffers[1].idle.clear(); // live at step 5, as the other is
    assert_eq!(check(&busy, &[0, 0]), Err(Violation::Overlap { first: 0, second: 1 }));
    let impossible = [
        b(2, 2, 1),
        b(3, 2, 0),
        b(0, 1, 1).aligned(0),
        b(1, 4, 1).idle_in(1..2).idle_in(2..4),
        b(1, 4, 1).idle_in(2..2),
        b(1, 4, 1).idle_in(0..2),
        b(1, 4, 1).idle_in(3..5),
        b(1, 4, 1).idle_in(2..3).idle_in(1..2),
    ];
    for impossible in impossible {
        assert_eq!(check(&Problem::new(vec![impossible]), &[0]), Err(Violation::Impossible { buffer: 0 }));
    }
}
