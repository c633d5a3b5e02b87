//! Exact search: agreement with all permutations, the MiniMalloc suite, proofs that nothing fits, determinism.

mod steps;

use minfer_memplan::{Strategy, *};

/// A fixed sequence of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }
}

fn options(node_budget: u64, search_nodes: u64) -> Options {
    let mut options = Options::default();
    (options.node_budget, options.search_nodes) = (node_budget, search_nodes);
    options
}

/// The least height: every order of the free buffers, each as low as possible on those before it. Fixed buffers lie
/// where they lie. A placement of least height, its buffers pushed down one by one until nothing moves, is such an order.
fn least_height(problem: &Problem) -> u64 {
    struct All<'a> {
        buffers: &'a [Buffer],
        placed: Vec<(usize, u64)>,
        best: u64,
    }
    impl All<'_> {
        fn extend(&mut self, height: u64) {
            if height >= self.best {
                return;
            }
            if self.placed.len() == self.buffers.len() {
                self.best = height;
                return;
            }
            for (i, b) in self.buffers.iter().enumerate() {
                if self.placed.iter().any(|p| p.0 == i) {
                    continue;
                }
                let in_time = |j: usize| {
                    (b.lower..b.upper).any(|step| steps::is_live(b, step) && steps::is_live(&self.buffers[j], step))
                };
                let mut offset = 0;
                while let Some(&(j, o)) = self
                    .placed
                    .iter()
                    .find(|&&(j, o)| in_time(j) && offset < o + self.buffers[j].size && o < offset + b.size)
                {
                    offset = (o + self.buffers[j].size).div_ceil(b.alignment) * b.alignment;
                }
                self.placed.push((i, offset));
                self.extend(height.max(offset + b.size));
                self.placed.pop();
            }
        }
    }
    let fixed: Vec<(usize, u64)> =
        problem.buffers.iter().enumerate().filter_map(|(i, b)| b.offset.map(|o| (i, o))).collect();
    let height = fixed.iter().map(|&(i, o)| o + problem.buffers[i].size).max().unwrap_or(0);
    let mut all = All { buffers: &problem.buffers, placed: fixed, best: u64::MAX };
    all.extend(height);
    all.best
}

/// Few steps and small sizes, so that packing is tight; now and then alignments and a fixed buffer. `idle`: most buffers
/// are idle at some of their steps.
fn small_problem(random: &mut Random, idle: bool) -> Problem {
    let n = 1 + random.below(7);
    let steps = 2 + random.below(6);
    let longest = 1 + random.below(steps);
    let largest = [3, 9, 40][random.below(3) as usize];
    let is_aligned = random.below(3) == 0;
    let buffer = |_| {
        let lower = random.below(steps);
        let b = Buffer::new(lower, lower + 1 + random.below(longest), 1 + random.below(largest));
        if is_aligned { b.aligned(1 + random.below(5)) } else { b }
    };
    let mut buffers: Vec<Buffer> = (0..n).map(buffer).collect();
    if idle {
        buffers = buffers.into_iter().map(|b| steps::idle_at(b, random.below(256) & random.below(256))).collect();
    }
    if random.below(3) == 0 {
        let offset = random.below(12) / buffers[0].alignment * buffers[0].alignment;
        buffers[0].offset = Some(offset);
    }
    Problem::new(buffers)
}

#[test]
fn ten_thousand_small_problems_have_the_least_height() {
    small_problems_have_the_least_height(false);
}

#[test]
fn ten_thousand_small_problems_with_idle_buffers_have_the_least_height() {
    small_problems_have_the_least_height(true);
}

fn small_problems_have_the_least_height(idle: bool) {
    let mut random = Random(11);
    let (mut by_search, mut by_idleness) = (0, 0);
    for k in 0..10_000 {
        let problem = small_problem(&mut random, idle);
        let best = least_height(&problem);
        // Hardly any greedy work, so that the search has something to do.
        let placed = place_with(&problem, Strategy::Planned, &options(0, 100_000)).unwrap();
        assert_eq!(check_certificate(&problem, &placed), Ok(()), "{k}: {problem:?}");
        assert_eq!(placed.placement.height, best, "{k}: {problem:?}");
        assert!(!matches!(placed.certificate.verdict, Verdict::Gap { .. }), "{k}: {problem:?}");
        by_search += u64::from(placed.certificate.verdict == Verdict::OptimalBySearch);
        let mut never_idle = problem.clone();
        never_idle.buffers.iter_mut().for_each(|b| b.idle.clear());
        by_idleness += u64::from(check(&never_idle, &placed.placement.offsets).is_err());
        if best == 0 {
            continue;
        }
        let tight = problem.with_capacity_bytes(best - 1);
        match place_with(&tight, Strategy::Planned, &options(0, 100_000)) {
            Err(PlaceError::Infeasible { .. } | PlaceError::Problem(ProblemError::OffsetAboveCapacity { .. })) => {}
            Err(PlaceError::Unplaceable { blame, .. }) => check_blame(&tight, &blame, best - 1),
            other => panic!("{k}: {other:?}"),
        }
    }
    assert!(by_search > 500, "only {by_search} problems needed a proof by search");
    assert_eq!(by_idleness > 2000, idle, "{by_idleness} placements are valid only because of idle buffers");
}

/// The buffers alone do not fit, and no longer so without any one of them.
fn check_blame(problem: &Problem, blame: &Blame, capacity: u64) {
    let only = |skip: Option<usize>| {
        let kept = blame.buffers.iter().filter(|&&i| Some(i) != skip);
        least_height(&Problem::new(kept.map(|&i| problem.buffers[i].clone()).collect()))
    };
    assert!(blame.is_irreducible);
    assert!(only(None) > capacity, "{problem:?} {blame:?}");
    for &i in &blame.buffers {
        assert!(only(Some(i)) <= capacity, "{i} is innocent in {problem:?} {blame:?}");
    }
}

fn suite(name: &str) -> Problem {
    let path = format!("{}/tests/minimalloc/{name}.1048576.csv", env!("CARGO_MANIFEST_DIR"));
    csv::read(&std::fs::read_to_string(path).unwrap()).unwrap().problem.with_capacity_bytes(1 << 20)
}

/// Ten of the eleven; the other (I) takes some seconds: `cargo run --release --example solve` shows it.
#[test]
fn the_minimalloc_suite_fits_its_capacity() {
    for name in ["A", "B", "C", "D", "E", "F", "G", "H", "J", "K"] {
        let problem = suite(name);
        let mut options = options(500_000, 10_000_000);
        options.minimize = false;
        let placed = place_with(&problem, Strategy::Planned, &options).unwrap();
        assert_eq!(check_certificate(&problem, &placed), Ok(()), "{name}");
        if !["C", "D", "J"].contains(&name) {
            assert_eq!(placed.certificate.verdict, Verdict::Optimal, "{name}");
        }
    }
}

/// Its capacity is above its lower bound; the bound is what it takes.
#[test]
fn the_least_height_of_c_is_its_lower_bound() {
    let problem = suite("C");
    let placed = place_with(&problem, Strategy::Planned, &options(500_000, 1_000_000)).unwrap();
    assert_eq!(check_certificate(&problem, &placed), Ok(()));
    assert_eq!((placed.placement.height, placed.certificate.verdict), (1039360, Verdict::Optimal));
}

#[test]
fn a_second_thread_changes_nothing() {
    for (name, minimize) in [("A", false), ("D", false), ("G", true)] {
        let problem = suite(name);
        let answer = |parallel| {
            let mut options = options(100_000, 60_000);
            (options.parallel, options.minimize) = (parallel, minimize);
            place_with(&problem, Strategy::Planned, &options)
        };
        let alone = answer(false);
        assert_eq!(alone, answer(false), "{name}");
        assert_eq!(alone, answer(true), "{name}");
    }
}

#[test]
fn a_spent_budget_is_a_gap_and_never_infeasible() {
    let problem = suite("D");
    for search_nodes in [0, 1, 100, 3000] {
        let Err(PlaceError::AboveCapacity { capacity, found }) =
            place_with(&problem, Strategy::Planned, &options(10_000, search_nodes))
        else {
            panic!("expected what was found with {search_nodes} nodes");
        };
        assert_eq!(capacity, 1 << 20);
        let open = Problem { capacity: None, ..problem.clone() };
        assert_eq!(check_certificate(&open, &found), Ok(()));
        assert!(matches!(found.certificate.verdict, Verdict::Gap { .. }));
    }
    let stopped = place_until(&problem, Strategy::Planned, &options(10_000, u64::MAX), &|| true);
    assert!(matches!(stopped, Err(PlaceError::AboveCapacity { .. })), "{stopped:?}");
}

/// At no step more than seven bytes are live, and still seven bytes hold no placement.
const KNOT: [(u64, u64, u64); 8] =
    [(2, 4, 1), (3, 6, 2), (0, 2, 4), (4, 6, 3), (3, 7, 2), (0, 1, 3), (1, 4, 2), (1, 3, 1)];

#[test]
fn blame_names_the_few_that_do_not_fit() {
    let innocent = (0..60).map(|i| Buffer::new(6 + i, 8 + i, 3));
    let knot = KNOT.iter().map(|&(l, u, s)| Buffer::new(l, u, s));
    let problem = Problem::new(innocent.chain(knot).collect());
    let placed = place(&problem, Strategy::Planned).unwrap();
    assert_eq!((placed.certificate.lower_bound.bytes, placed.placement.height), (7, 8));
    assert_eq!(placed.certificate.verdict, Verdict::OptimalBySearch);
    let tight = problem.with_capacity_bytes(7);
    let Err(PlaceError::Unplaceable { blame, capacity, found }) = place(&tight, Strategy::Planned) else {
        panic!("expected a proof");
    };
    assert_eq!((capacity, found.placement.height), (7, 8));
    assert!(blame.buffers.iter().all(|&i| i >= 60), "{blame:?}");
    check_blame(&tight, &blame, capacity);
}
