//! `minfer plan`. Takes nothing; gives raw values.

use super::shared::{MemoryArgs, PlanArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Settings that can be made as large as the memory allows.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum FitSetting {
    /// Positions of a sequence
    NCtx,
    /// Most tokens of the prompt read at once
    Ubatch,
    /// Sequences at once
    Slots,
}

/// `minfer plan`.
#[derive(Args, Debug)]
#[command(
    after_help = crate::env::help(crate::env::UsedBy::Plan),
    override_usage = "minfer plan [OPTIONS] <MODEL>\n       minfer plan --diff <A.json> <B.json>"
)]
pub struct LedgerArgs {
    /// Model file (.gguf; of a split model the first part); only its header is read
    #[arg(required_unless_present = "diff")]
    pub model: Option<PathBuf>,
    /// Positions of a sequence [default: 4096, at most what the model was trained for]
    #[arg(short = 'c', long, value_name = "N")]
    pub n_ctx: Option<u64>,
    /// Most tokens of the prompt read at once
    #[arg(long, value_name = "N", default_value_t = 512, help_heading = "Planning")]
    pub ubatch: u64,
    /// Sequences at once, each with a context of its own
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Planning")]
    pub slots: u64,
    /// Say who holds memory at the fullest step and why, and what each setting would change
    #[arg(long, conflicts_with = "json")]
    pub explain: bool,
    /// Compare two files that --json wrote: what moved, what lives longer, what makes the difference
    #[arg(long, num_args = 2, value_names = ["A.json", "B.json"], exclusive = true)]
    pub diff: Vec<PathBuf>,
    /// Draw the plan, time across and addresses up, as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Draw the plan as a page for a browser, with a step slider and a switch between strategies
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print one JSON object: figures, ledger and the place of every value
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub plan: PlanArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Find the largest value of this setting that fits in --memory, or without it in what the machine has and this process
    /// may take
    #[arg(long, value_enum, value_name = "SETTING", help_heading = "Planning")]
    pub fit: Option<FitSetting>,
}
