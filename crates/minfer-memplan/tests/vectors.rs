//! Small problems with known answers.

use minfer_memplan::*;

/// Buffers from operator spans with both ends included, as the literature gives them.
fn inclusive(spans: &[(u64, u64, u64)]) -> Problem {
    Problem::new(spans.iter().map(|&(first, last, size)| Buffer::new(first, last + 1, size)).collect())
}

/// Places, checks the certificate, returns the height.
fn height(problem: &Problem, strategy: Strategy) -> u64 {
    let placed = place(problem, strategy).unwrap();
    assert_eq!(check_certificate(problem, &placed), Ok(()), "{strategy}");
    placed.placement.height
}

/// Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference" (2020), the worked example.
#[test]
fn pisarchyk_and_lee() {
    let problem =
        inclusive(&[(0, 1, 32), (1, 4, 28), (2, 5, 36), (3, 5, 16), (4, 5, 8), (5, 7, 64), (6, 8, 10), (7, 8, 40)]);
    let bound = lower_bound(&problem);
    assert_eq!((bound.bytes, bound.step, bound.live), (124, 5, vec![2, 3, 4, 5]));
    assert_eq!(height(&problem, Strategy::Planned), 124);
    assert_eq!(height(&problem, Strategy::Naive), 234);
}

/// A planner that never uses the free bytes below the first live block needs 240 (XNNPACK issue 10800).
#[test]
fn free_bytes_below_the_first_live_block_are_used() {
    let problem = inclusive(&[(0, 1, 100), (1, 2, 80), (2, 3, 60)]);
    assert_eq!(lower_bound(&problem).bytes, 180);
    assert_eq!(height(&problem, Strategy::Planned), 180);
}

/// The smallest problem of the MiniMalloc suite: capacity 12.
#[test]
fn five_buffers_in_twelve_bytes() {
    let spans = [(0, 3, 4), (3, 9, 4), (0, 9, 4), (9, 21, 4), (0, 21, 4)];
    let problem = Problem::new(spans.map(|(l, u, s)| Buffer::new(l, u, s)).to_vec()).with_capacity_bytes(12);
    assert_eq!(height(&problem, Strategy::Planned), 12);
}

/// Two buffers that take turns lie at the same bytes; one that is live throughout does not.
#[test]
fn idle_buffers_lend_their_bytes() {
    let turns = vec![Buffer::new(0, 10, 4).idle_in(3..5).idle_in(7..9), Buffer::new(3, 9, 4).idle_in(5..7)];
    let problem = Problem::new(turns);
    let bound = lower_bound(&problem);
    assert_eq!((bound.bytes, bound.step, bound.live), (4, 0, vec![0]));
    assert_eq!(height(&problem, Strategy::Planned), 4);
    assert_eq!(height(&problem, Strategy::Naive), 8);
    // An online allocator cannot promise the same bytes again, so it never takes them back.
    assert_eq!(place(&problem, Strategy::Pool).unwrap().n_slots, Some(2));
    let mut three = problem.clone();
    three.buffers.push(Buffer::new(4, 5, 1));
    assert_eq!((height(&three, Strategy::Planned), lower_bound(&three).live), (5, vec![1, 2]));
    // Idle at the ends of a lifetime: the same as a shorter one.
    let late = Problem::new(vec![Buffer::new(0, 9, 4).idle_in(0..5), Buffer::new(2, 9, 4).idle_in(5..9)]);
    assert_eq!(height(&late, Strategy::Planned), 4);
    // Regions, too: together they fit where one alone does.
    let regions = place_in_regions(&problem, 4, &Options::default()).unwrap();
    assert_eq!((regions.regions.len(), check_regions(&problem, &regions, 4)), (1, Ok(())));
}

/// Four bytes are live at every step. They suffice only if c, fixed in the middle of them, lies where a is idle.
#[test]
fn a_perfect_packing_through_an_idle_period() {
    let a = Buffer::new(0, 6, 3).idle_in(2..4);
    let problem = Problem::new(vec![
        a,
        Buffer::new(0, 3, 1),             // b, beside a, stays
        Buffer::new(3, 6, 1),             // its successor
        Buffer::new(2, 4, 2).fixed_at(1), // c
        Buffer::new(2, 3, 1),
        Buffer::new(3, 4, 1),
    ]);
    assert_eq!(height(&problem, Strategy::Planned), 4);
    let tight = Problem::new(problem.buffers.clone()).with_capacity_bytes(3);
    assert!(matches!(place(&tight, Strategy::Planned), Err(PlaceError::Infeasible { .. })));
    let mut blind = problem;
    blind.buffers[0].idle.clear();
    assert_eq!(lower_bound(&blind).bytes, 7);
}

#[test]
fn liveness_reuses_buffers_along_chain() {
    // Value i is written at step i and read at step i + 1.
    let problem = Problem::new((0..10).map(|i| Buffer::new(i, i + 2, 4096)).collect());
    assert_eq!(height(&problem, Strategy::Planned), 2 * 4096);
    assert_eq!(height(&problem, Strategy::Pool), 2 * 4096);
    assert_eq!(height(&problem, Strategy::Naive), 10 * 4096);
    let pooled = place(&problem, Strategy::Pool).unwrap();
    assert_eq!(pooled.n_slots, Some(2));
    assert_eq!(pooled.placement.offsets[0], pooled.placement.offsets[2]);
}

#[test]
fn parallel_chains_do_not_share() {
    // Two chains interleaved in time: at every step one value of each is live.
    let chain = |first: u64| (0..8).map(move |i| Buffer::new(2 * i + first, 2 * i + first + 2, 2048));
    let problem = Problem::new(chain(0).chain(chain(1)).collect());
    for strategy in [Strategy::Naive, Strategy::Pool, Strategy::Planned] {
        let offsets = place(&problem, strategy).unwrap().placement.offsets;
        for (i, a) in offsets[..8].iter().enumerate() {
            for (j, b) in offsets[8..].iter().enumerate() {
                if problem.buffers[i].meets(&problem.buffers[8 + j]) {
                    assert!(a.abs_diff(*b) >= 2048, "{strategy}: {i} and {j} share bytes");
                }
            }
        }
    }
    assert_eq!(height(&problem, Strategy::Planned), 2 * 2048);
}

#[test]
fn pool_classes() {
    const KIB: u64 = 1024;
    let table = [
        (1, KIB),
        (KIB - 1, KIB),
        (KIB, KIB),
        (KIB + 1, 2 * KIB),
        (3 * KIB, 4 * KIB),
        (4 * KIB + 1, 8 * KIB),
        (8 * KIB + 1, 16 * KIB),
        (16 * KIB, 16 * KIB),
        (16 * KIB + 1, 32 * KIB),
        (33 * KIB, 48 * KIB),
        (48 * KIB, 48 * KIB),
        (100 * KIB, 112 * KIB),
    ];
    for (size, class) in table {
        assert_eq!(class_bytes(size), Some(class), "class of {size}");
    }
    assert_eq!(class_bytes(u64::MAX), None);
}

#[test]
fn pool_recycles_equal_classes_only() {
    // 1500 and 2000 share the 2 KiB class, 3000 does not, 900 does not.
    let problem = Problem::new(vec![
        Buffer::new(0, 1, 1500),
        Buffer::new(1, 2, 3000),
        Buffer::new(2, 3, 900),
        Buffer::new(3, 4, 2000),
    ]);
    let placed = place(&problem, Strategy::Pool).unwrap();
    assert_eq!(placed.n_slots, Some(3));
    assert_eq!(placed.placement.offsets, [0, 2048, 2048 + 4096, 0]);
    assert_eq!(height(&problem, Strategy::Pool), 2048 + 4096 + 900);
}

#[test]
fn fixed_offsets_and_alignments_are_honoured() {
    let problem = Problem::new(vec![
        Buffer::new(0, 4, 100).fixed_at(50),
        Buffer::new(0, 2, 40).aligned(16),
        Buffer::new(1, 3, 60).aligned(48),
        Buffer::new(2, 4, 30).aligned(7),
    ]);
    for strategy in [Strategy::Naive, Strategy::Pool, Strategy::Planned] {
        assert!(height(&problem, strategy) >= 192, "{strategy}");
    }
    // 60 bytes at a multiple of 48 do not fit below 50; above 150 the next multiple is 192.
    assert_eq!(height(&problem, Strategy::Planned), 252);
}

#[test]
fn the_first_free_buffer_may_be_stuck_above_a_fixed_one() {
    let problem = Problem::new(vec![Buffer::new(0, 2, 10).fixed_at(5), Buffer::new(1, 3, 6)]);
    let placed = place(&problem, Strategy::Planned).unwrap();
    assert_eq!(placed.placement.height, 21);
    assert_eq!((placed.certificate.lower_bound.bytes, placed.certificate.proven_bytes), (16, 21));
    assert_eq!(placed.certificate.verdict, Verdict::OptimalBySearch);
}

/// No placement is lower than a fixed buffer's end, under any strategy and however far up it lies.
#[test]
fn a_fixed_buffer_proves_the_height_at_its_end() {
    for offset in [1 << 20, 1 << 61, 1 << 62, 1 << 63, u64::MAX - 64] {
        let problem = Problem::new(vec![Buffer::new(0, 2, 10).fixed_at(offset), Buffer::new(1, 3, 6)]);
        for strategy in [Strategy::Naive, Strategy::Planned] {
            let placed = place(&problem, strategy).unwrap();
            assert_eq!(check_certificate(&problem, &placed), Ok(()));
            assert_eq!((placed.placement.height, placed.certificate.verdict), (offset + 10, Verdict::OptimalBySearch));
        }
    }
}

/// Sizes near the end of 64 bits are searched as well, if they are multiples of something large.
#[test]
fn large_units_are_searched() {
    let knot = [(2, 4, 1), (3, 6, 2), (0, 2, 4), (4, 6, 3), (3, 7, 2), (0, 1, 3), (1, 4, 2), (1, 3, 1)];
    let problem = Problem::new(knot.map(|(lower, upper, size)| Buffer::new(lower, upper, size << 59)).to_vec());
    let placed = place(&problem, Strategy::Planned).unwrap();
    assert_eq!(check_certificate(&problem, &placed), Ok(()));
    assert_eq!((placed.placement.height, placed.certificate.verdict), (8 << 59, Verdict::OptimalBySearch));
}

/// Many odd sizes of which 64 bits hold few: no sum, product or handicap overflows on the way.
#[test]
fn heights_near_the_limit_of_the_search_are_searched() {
    let mut x = 7u64;
    let mut below = |end: u64| {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (x >> 33) % end
    };
    let mut buffer = |_| {
        let lower = below(20);
        Buffer::new(lower, lower + 1 + below(12), (1 << 54) + (below(1 << 30) << 23) + 1 + below(9))
    };
    let problem = Problem::new((0..200).map(&mut buffer).collect());
    let mut options = Options::default();
    options.node_budget = 1_000_000;
    let placed = place_with(&problem, Strategy::Planned, &options).unwrap();
    assert_eq!(check_certificate(&problem, &placed), Ok(()));
    assert!(placed.certificate.height < u64::MAX / 8);
}

#[test]
fn nothing_and_zero_bytes_are_fine() {
    let zero = Problem::new(vec![Buffer::new(3, 3, 0), Buffer::new(0, 9, 0), Buffer::new(0, 1, 5)]);
    for strategy in [Strategy::Naive, Strategy::Pool, Strategy::Planned] {
        assert_eq!(height(&Problem::default(), strategy), 0);
        assert_eq!(height(&zero, strategy), 5);
    }
    assert_eq!(lower_bound(&Problem::default()), LowerBound::default());
    assert_eq!(lower_bound(&zero).live, [2]);
}

#[test]
fn broken_problems_are_refused() {
    let b = Buffer::new;
    let inverted = std::ops::Range { start: 5, end: 4 };
    let cases = [
        (vec![b(2, 2, 1)], ProblemError::EmptyLifetime { buffer: 0, lower: 2, upper: 2 }),
        (vec![b(3, 2, 0)], ProblemError::EmptyLifetime { buffer: 0, lower: 3, upper: 2 }),
        (vec![b(2, 9, 1).idle_in(4..4)], ProblemError::EmptyIdle { buffer: 0, period: 4..4 }),
        (vec![b(2, 9, 1).idle_in(inverted.clone())], ProblemError::EmptyIdle { buffer: 0, period: inverted }),
        (vec![b(2, 9, 1).idle_in(1..4)], ProblemError::IdleOutside { buffer: 0, period: 1..4, lower: 2, upper: 9 }),
        (
            vec![b(2, 9, 1).idle_in(3..4).idle_in(8..10)],
            ProblemError::IdleOutside { buffer: 0, period: 8..10, lower: 2, upper: 9 },
        ),
        (vec![b(2, 9, 1).idle_in(3..5).idle_in(4..6)], ProblemError::IdleOverlap { buffer: 0, period: 4..6, end: 5 }),
        (vec![b(2, 9, 1).idle_in(2..5).idle_in(5..9)], ProblemError::NeverLive { buffer: 0, lower: 2, upper: 9 }),
        (vec![b(0, 1, 1).aligned(0)], ProblemError::ZeroAlignment { buffer: 0 }),
        (
            vec![b(0, 1, 1).aligned(4).fixed_at(6)],
            ProblemError::MisalignedOffset { buffer: 0, offset: 6, alignment: 4 },
        ),
        (vec![b(0, 1, 1), b(0, 1, u64::MAX)], ProblemError::TotalOverflow { buffer: 1 }),
        (vec![b(0, 1, 2).fixed_at(u64::MAX - 1)], ProblemError::TotalOverflow { buffer: 0 }),
        (
            vec![b(0, 3, 8).fixed_at(0), b(2, 4, 8).fixed_at(8), b(3, 5, 2).fixed_at(15)],
            ProblemError::FixedOverlap { first: 1, second: 2 },
        ),
        (
            vec![b(0, 9, 8).fixed_at(0).idle_in(2..4), b(3, 5, 8).fixed_at(4)],
            ProblemError::FixedOverlap { first: 0, second: 1 },
        ),
    ];
    for (buffers, error) in cases {
        let problem = Problem::new(buffers);
        assert_eq!(problem.validate(), Err(error.clone()));
        assert_eq!(place(&problem, Strategy::Planned), Err(PlaceError::Problem(error)));
    }
    let above = Problem::new(vec![b(0, 1, 8).fixed_at(8)]).with_capacity_bytes(15);
    assert_eq!(above.validate(), Err(ProblemError::OffsetAboveCapacity { buffer: 0, top: 16, capacity: 15 }));
    // Fixed at the same bytes, one after the other: fine.
    assert_eq!(Problem::new(vec![b(0, 2, 8).fixed_at(0), b(2, 4, 8).fixed_at(4)]).validate(), Ok(()));
    // Or one while the other is idle; and without bytes a buffer may be idle always.
    assert_eq!(Problem::new(vec![b(0, 9, 8).fixed_at(0).idle_in(2..4), b(2, 4, 8).fixed_at(4)]).validate(), Ok(()));
    assert_eq!(Problem::new(vec![b(0, 9, 0).idle_in(0..9)]).validate(), Ok(()));
}

#[test]
fn a_capacity_is_refused_with_proof_or_with_what_was_found() {
    let problem = inclusive(&[(0, 1, 100), (1, 2, 80), (2, 3, 60)]);
    let tight = problem.clone().with_capacity_bytes(179);
    let Err(PlaceError::Infeasible { capacity: 179, lower_bound }) = place(&tight, Strategy::Planned) else {
        panic!("expected a proof");
    };
    assert_eq!((lower_bound.bytes, lower_bound.live), (180, vec![0, 1]));

    let roomy = problem.with_capacity_bytes(200);
    assert!(place(&roomy, Strategy::Planned).is_ok());
    let Err(PlaceError::AboveCapacity { capacity: 200, found }) = place(&roomy, Strategy::Naive) else {
        panic!("expected what was found");
    };
    assert_eq!(found.placement.height, 240);
}

#[test]
fn strategies_have_names() {
    for strategy in [Strategy::Naive, Strategy::Pool, Strategy::Planned] {
        assert_eq!(strategy.to_string().parse(), Ok(strategy));
    }
    assert_eq!("best".parse::<Strategy>(), Err(UnknownStrategy { got: "best".to_owned() }));
    assert_eq!(Strategy::default(), Strategy::Planned);
}
