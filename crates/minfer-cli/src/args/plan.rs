//! `minfer plan`. Takes nothing; gives raw values.

use super::shared::PlanArgs;
use clap::Args;
use std::path::PathBuf;

/// `minfer plan`.
#[derive(Args, Debug)]
#[command(after_help = crate::env::help())]
pub struct LedgerArgs {
    /// Model file (.gguf; of a split model the first part); only its header is read
    pub model: PathBuf,
    /// Positions of a sequence [default: 4096, at most what the model was trained for]
    #[arg(short = 'c', long, value_name = "N")]
    pub n_ctx: Option<u64>,
    /// Most tokens of the prompt read at once
    #[arg(long, value_name = "N", default_value_t = 512, help_heading = "Planning")]
    pub ubatch: u64,
    /// Sequences at once, each with a context of its own
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Planning")]
    pub slots: u64,
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Print one JSON object: figures, ledger and the place of every value
    #[arg(long)]
    pub json: bool,
}
