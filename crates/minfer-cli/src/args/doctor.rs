//! `minfer doctor`. Takes nothing; gives raw values.

use super::tools::TextOutput;
use clap::Args;
use std::path::PathBuf;

/// `minfer doctor`.
#[derive(Args, Debug)]
#[command(after_help = crate::env::help(crate::env::UsedBy::Machine))]
pub struct DoctorArgs {
    /// Model file (.gguf; of a split model the first part): also tell how fast it could decode here at most
    pub model: Option<PathBuf>,
    /// Most threads to measure [default: one per physical core that the process may use]
    #[arg(short, long, value_name = "N")]
    pub threads: Option<u64>,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t = TextOutput::Text)]
    pub output: TextOutput,
}
