//! Properties of every strategy on random problems, and the true optimum of tiny ones.

mod steps;

use minfer_memplan::{Strategy, *};
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

const STRATEGIES: [Strategy; 3] = [Strategy::Naive, Strategy::Pool, Strategy::Planned];

fn buffer(max_size: u64) -> impl Generator<Value = Buffer> {
    let alignment = prop_oneof![4 => Just(1u64), 1 => Just(64), 1 => 1..9u64];
    let idle = prop_oneof![2 => Just(0u64), 1 => any::<u64>()];
    (0..40u64, 1..20u64, 0..max_size, alignment, idle).prop_map(|(lower, steps, size, alignment, idle)| {
        steps::idle_at(Buffer::new(lower, lower + steps, size).aligned(alignment), idle)
    })
}

fn problem(n: usize) -> impl Generator<Value = Problem> {
    prop_oneof![prop::collection::vec(buffer(50), 0..n), prop::collection::vec(buffer(100_000), 0..n),]
        .prop_map(Problem::new)
}

/// Fixes some buffers where the naive strategy would put them, so that they never overlap.
fn partly_fixed(n: usize) -> impl Generator<Value = Problem> {
    (problem(n), any::<u64>()).prop_map(|(mut problem, which)| {
        let offsets = place(&problem, Strategy::Naive).unwrap().placement.offsets;
        for (i, b) in problem.buffers.iter_mut().enumerate() {
            if which >> (i % 64) & 3 == 3 {
                b.offset = Some(offsets[i]);
            }
        }
        problem
    })
}

/// The lowest height over all orders, each buffer as low as possible on those before it. An optimal placement, its
/// buffers pushed down one by one from the lowest, is such an order, so this is the optimum.
fn optimum(problem: &Problem) -> u64 {
    fn extend(buffers: &[Buffer], placed: &mut Vec<(usize, u64)>, best: &mut u64) {
        if placed.len() == buffers.len() {
            let height = placed.iter().map(|&(i, o)| o + buffers[i].size).max().unwrap_or(0);
            *best = height.min(*best);
            return;
        }
        for i in 0..buffers.len() {
            if placed.iter().any(|p| p.0 == i) {
                continue;
            }
            let b = &buffers[i];
            let in_time =
                |j: usize| (b.lower..b.upper).any(|step| steps::is_live(b, step) && steps::is_live(&buffers[j], step));
            let mut offset = 0;
            while let Some(&(j, o)) =
                placed.iter().find(|&&(j, o)| in_time(j) && offset < o + buffers[j].size && o < offset + b.size)
            {
                offset = (o + buffers[j].size).div_ceil(b.alignment) * b.alignment;
            }
            placed.push((i, offset));
            extend(buffers, placed, best);
            placed.pop();
        }
    }
    let mut best = u64::MAX;
    extend(&problem.buffers, &mut Vec::new(), &mut best);
    best
}

fn options(node_budget: u64) -> Options {
    let mut options = Options::default();
    options.node_budget = node_budget;
    options.search_nodes = 2000;
    options
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_strategy_is_valid_and_certified(
        problem in prop_oneof![problem(40), partly_fixed(40)],
        nodes in prop_oneof![Just(0u64), Just(1000), Just(100_000)],
    ) {
        let bound = lower_bound(&problem).bytes;
        let mut heights = Vec::new();
        for strategy in STRATEGIES {
            let placed = place_with(&problem, strategy, &options(nodes)).unwrap();
            prop_assert_eq!(check_certificate(&problem, &placed), Ok(()), "{}", strategy);
            prop_assert_eq!(placed.n_slots.is_some(), strategy == Strategy::Pool);
            prop_assert!(placed.placement.height >= bound);
            let again = place_with(&problem, strategy, &options(nodes)).unwrap();
            prop_assert_eq!(&again, &placed, "{} is not deterministic", strategy);
            heights.push(placed.placement.height);
        }
        prop_assert!(heights[2] <= heights[0] && heights[2] <= heights[1]);
    }

    /// The checker's walk through time says what comparing all pairs, step by step, says.
    #[test]
    fn the_checker_finds_every_overlap(
        buffers in prop::collection::vec((buffer(50), 0..600u64), 0..12),
    ) {
        let (buffers, offsets): (Vec<Buffer>, Vec<u64>) =
            buffers.into_iter().map(|(b, offset)| { let at = offset / b.alignment * b.alignment; (b, at) }).unzip();
        let overlap = |i: usize, j: usize| {
            let ((a, b), (at_a, at_b)) = ((&buffers[i], &buffers[j]), (offsets[i], offsets[j]));
            let bytes = at_a.max(at_b) < (at_a + a.size).min(at_b + b.size);
            bytes && (a.lower..a.upper).any(|step| steps::is_live(a, step) && steps::is_live(b, step))
        };
        let is_wrong = (0..buffers.len()).any(|i| (0..i).any(|j| overlap(i, j)));
        match check(&Problem::new(buffers.clone()), &offsets) {
            Ok(_) => prop_assert!(!is_wrong),
            Err(Violation::Overlap { first, second }) => prop_assert!(overlap(first, second)),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn naive_shares_no_byte(problem in problem(30)) {
        let mut always = problem.clone();
        for b in &mut always.buffers {
            (b.lower, b.upper, b.idle) = (0, 1, vec![]);
        }
        let offsets = place(&problem, Strategy::Naive).unwrap().placement.offsets;
        prop_assert!(check(&always, &offsets).is_ok());
    }

    #[test]
    fn tiny_problems_stay_between_bound_and_plan(problem in problem(7)) {
        let best = optimum(&problem);
        let planned = place_with(&problem, Strategy::Planned, &options(20_000)).unwrap();
        prop_assert!(lower_bound(&problem).bytes <= best);
        prop_assert!(best <= planned.placement.height);
        prop_assert!(planned.certificate.proven_bytes <= best);
        let is_open = matches!(planned.certificate.verdict, Verdict::Gap { .. });
        prop_assert!(!is_open);
    }

    #[test]
    fn more_nodes_never_hurt(problem in problem(40)) {
        let height = |nodes, search_nodes| {
            let mut options = options(nodes);
            options.search_nodes = search_nodes;
            place_with(&problem, Strategy::Planned, &options).unwrap().placement.height
        };
        let greedy = height(10_000, 0);
        prop_assert!(height(0, 0) >= greedy);
        prop_assert!(greedy >= height(10_000, 10_000));
    }

    #[test]
    fn buffers_meet_if_they_share_a_step(a in buffer(9), b in buffer(9)) {
        let meet = (0..99).any(|step| steps::is_live(&a, step) && steps::is_live(&b, step));
        prop_assert_eq!(a.meets(&b), meet);
        let live: Vec<u64> = a.spans().flatten().collect();
        prop_assert_eq!(live.len() as u64, a.duration());
        prop_assert_eq!(live, (0..99).filter(|&step| steps::is_live(&a, step)).collect::<Vec<_>>());
    }

    #[test]
    fn csv_round_trip(problem in prop_oneof![problem(20), partly_fixed(20)]) {
        let ids = (0..problem.buffers.len()).map(|i| format!("b{i}")).collect();
        let table = csv::Table { ids, problem };
        let text = csv::write(&table, None).unwrap();
        prop_assert_eq!(csv::read(&text), Ok(table));
    }

    #[test]
    fn csv_never_panics(text in "[a-z0-9,\"\n -]{0,60}", cell in "[^\n]{0,12}") {
        let _ = csv::read(&text);
        let _ = csv::read(&format!("id,lower,end,size,gaps\n{cell},1,2,{text},"));
        let _ = csv::read(&format!("id,lower,end,size,gaps\na,1,2,3,{cell}"));
    }
}
