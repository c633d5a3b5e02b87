//! `minfer memplan`. Takes nothing; gives raw values.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What to do with a problem or its answer.
#[derive(Subcommand, Debug)]
pub enum MemplanArgs {
    /// Place the buffers; prints the problem with an offset per buffer
    ///
    /// Without a capacity the least height is looked for, with one any placement within it. stderr says what is proven. Exit
    /// code 1: nothing within the capacity exists, or none was found in time; then the lowest found is printed.
    Solve {
        #[command(flatten)]
        problem: ProblemArgs,
        /// With a capacity: go on below it, to the least height
        #[arg(long)]
        minimize: bool,
        /// Form of the answer
        #[arg(long, value_enum, default_value_t = TableOutput::Csv)]
        output: TableOutput,
    },
    /// Check a placement by itself: overlaps, bounds, alignments
    ///
    /// Shares no code with the search. Exit code 1 and the first violation if the placement is wrong.
    Check {
        /// Problem file with an offset for every buffer; - is stdin
        #[arg(value_name = "FILE.csv")]
        file: PathBuf,
        /// Take lifetimes, sizes, alignments and fixed offsets from this file instead, by id; - is stdin
        #[arg(long, value_name = "FILE.csv")]
        problem: Option<PathBuf>,
        /// Bytes that the placement must not exceed
        #[arg(long, value_name = "BYTES")]
        capacity: Option<u64>,
    },
    /// Draw the placement as SVG; buffers without an offset are placed first
    ///
    /// A given placement that is wrong is drawn with the buffers of the first violation in red; stderr names it, exit code 1.
    Render {
        #[command(flatten)]
        problem: ProblemArgs,
        /// Write the picture to this file instead of stdout
        #[arg(short, long, value_name = "FILE.svg")]
        out: Option<PathBuf>,
    },
}

/// A problem, and how long to search.
#[derive(Args, Debug)]
pub struct ProblemArgs {
    /// Problem file; - is stdin
    #[arg(value_name = "FILE.csv")]
    pub file: PathBuf,
    /// Bytes that the placement must not exceed
    #[arg(long, value_name = "BYTES")]
    pub capacity: Option<u64>,
    /// Seconds after which the best placement found so far is taken
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    pub timeout: f64,
}

/// For people or for programs.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableOutput {
    /// A table
    Table,
    /// One JSON object
    Json,
    /// The columns of the input, and `offset`
    Csv,
}
