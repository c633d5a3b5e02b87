//! `minfer bench`. Takes nothing; gives raw values.

use super::shared::{Alloc, Backend, CacheType, FusionArgs, MemoryArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// For people or for programs.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum BenchOutput {
    /// For people
    Table,
    /// One JSON object
    Json,
    /// Comma-separated values with a header
    Csv,
    /// For people, where Markdown is shown
    Markdown,
}

/// `minfer bench`.
#[derive(Args, Debug)]
#[command(after_help = crate::env::help(crate::env::UsedBy::Plan))]
pub struct BenchArgs {
    /// Model file (.gguf; of a split model the first part)
    pub model: PathBuf,
    /// Tokens of the prompt; 0 leaves prefill out
    #[arg(short = 'p', long, value_name = "P", default_value_t = 512)]
    pub n_prompt: u64,
    /// Tokens generated after it; 0 leaves decode out
    #[arg(short = 'n', long, value_name = "N", default_value_t = 64)]
    pub n_gen: u64,
    /// Also measure a prompt of P tokens and G more in one (`-pg` for short; may be given several times)
    #[arg(long = "pg", value_name = "P,G", value_parser = pair)]
    pub mixed: Vec<(u64, u64)>,
    /// Tokens in the cache before each test
    #[arg(short = 'd', long, value_name = "D,..", value_delimiter = ',', default_value = "0")]
    pub depth: Vec<u64>,
    /// Sequences decoded together, each of which reads its P tokens before; tokens/s are of all of them
    #[arg(short = 'b', long, value_name = "B,..", value_delimiter = ',', default_value = "1")]
    pub batch: Vec<u64>,
    /// Rounds
    #[arg(short = 'r', long, value_name = "R", default_value_t = 5)]
    pub rounds: u64,
    /// Positions of the context of each sequence; at least those of the longest test are taken
    #[arg(short = 'c', long, value_name = "N")]
    pub n_ctx: Option<u64>,
    /// Also measure how long each kind of operation takes, in one round more that runs step by step
    #[arg(long)]
    pub profile: bool,
    /// Draw the results
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t = BenchOutput::Table)]
    pub output: BenchOutput,
    /// Most tokens of the prompt read at once
    #[arg(long, value_name = "N", default_value_t = 512, help_heading = "Planning")]
    pub ubatch: u64,
    /// Who computes
    #[arg(long, value_enum, default_value_t = Backend::Cpu, help_heading = "Planning")]
    pub backend: Backend,
    /// Worker threads [default: one per physical core that the process may use]
    #[arg(short, long, value_name = "N,..", value_delimiter = ',', help_heading = "Planning")]
    pub threads: Vec<u64>,
    /// Element type of the KV cache
    #[arg(
        long,
        value_enum,
        value_name = "TYPE,..",
        value_delimiter = ',',
        default_value = "f16",
        help_heading = "Planning"
    )]
    pub cache_type: Vec<CacheType>,
    /// How values are placed in memory
    #[arg(long, value_enum, value_name = "STRATEGY", default_value_t = Alloc::Planned, help_heading = "Planning")]
    pub alloc: Alloc,
    #[command(flatten)]
    pub memory: MemoryArgs,
    #[command(flatten)]
    pub fusion: FusionArgs,
}

/// Two numbers with a comma between.
fn pair(text: &str) -> Result<(u64, u64), String> {
    let (first, second) = text.split_once(',').ok_or("expected two numbers such as 512,64")?;
    let number = |word: &str| word.trim().parse().map_err(|_| format!("`{word}` is no number of tokens"));
    Ok((number(first)?, number(second)?))
}
