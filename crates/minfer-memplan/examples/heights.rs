//! Prints what each strategy needs for the given problem files, beside the lower bound: `heights [-n NODES] FILE...`

use std::error::Error;
use std::time::Instant;

use minfer_memplan::{Options, Strategy, check_certificate, csv, lower_bound, place_with};

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::default();
    let mut args = std::env::args().skip(1);
    println!("{:40} {:>7} {:>12} strategy       height  ratio      ms", "file", "buffers", "lower bound");
    while let Some(path) = args.next() {
        if path == "-n" {
            options.node_budget = args.next().ok_or("-n: expected a number")?.parse()?;
            continue;
        }
        let problem = csv::read(&std::fs::read_to_string(&path)?)?.problem;
        let bound = lower_bound(&problem).bytes;
        for strategy in [Strategy::Naive, Strategy::Pool, Strategy::Planned] {
            let start = Instant::now();
            let placed = place_with(&problem, strategy, &options)?;
            let ms = start.elapsed().as_secs_f64() * 1e3;
            check_certificate(&problem, &placed)?;
            let (height, n) = (placed.placement.height, problem.buffers.len());
            let ratio = height as f64 / bound as f64;
            println!("{path:40} {n:7} {bound:12} {strategy:8} {height:12} {ratio:6.3} {ms:7.1}");
        }
    }
    Ok(())
}
