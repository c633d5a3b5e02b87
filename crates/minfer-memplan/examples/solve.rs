//! Solves problem files exactly: `solve [-c CAPACITY] [-m] [-s SECONDS] FILE...`; `-m` goes on below the capacity, to
//! the least height. Prints what was proven, and the seconds it took.

use std::error::Error;
use std::time::{Duration, Instant};

use minfer_memplan::{Options, PlaceError, Strategy, check_certificate, csv, place_until};

/// Greedy work before the search: a few hundredths of a second.
const GREEDY_NODES: u64 = 5_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut capacity, mut limit) = (None, Duration::from_secs(60));
    let mut options = Options::default();
    options.node_budget = GREEDY_NODES;
    (options.search_nodes, options.parallel, options.minimize) = (u64::MAX, true, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || -> Result<u64, Box<dyn Error>> { Ok(args.next().ok_or("expected a number")?.parse()?) };
        match arg.as_str() {
            "-c" => capacity = Some(number()?),
            "-s" => limit = Duration::from_secs(number()?),
            "-m" => options.minimize = true,
            path => {
                let mut problem = csv::read(&std::fs::read_to_string(path)?)?.problem;
                problem.capacity = capacity;
                let start = Instant::now();
                let placed = place_until(&problem, Strategy::Planned, &options, &|| start.elapsed() > limit);
                let seconds = start.elapsed().as_secs_f64();
                let placed = match placed {
                    Ok(placed) => placed,
                    Err(PlaceError::AboveCapacity { found, .. }) => *found,
                    Err(error) => {
                        println!("{path}: {error}");
                        continue;
                    }
                };
                problem.capacity = None;
                check_certificate(&problem, &placed)?;
                let certificate = placed.certificate;
                println!(
                    "{path}: height {} in [{}, {}], {:?}, {seconds:.2} s",
                    certificate.height, certificate.proven_bytes, certificate.height, certificate.verdict
                );
            }
        }
    }
    Ok(())
}
