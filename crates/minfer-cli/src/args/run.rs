//! `minfer run`. Takes nothing; gives raw values.

use super::shared::{MemoryArgs, PlanArgs, WordArgs};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// `minfer run`.
#[derive(Args, Debug)]
#[command(after_help = crate::env::help(crate::env::UsedBy::Watch))]
pub struct RunArgs {
    /// Model file (.gguf; of a split model the first part)
    pub model: PathBuf,
    /// The prompt. Without one it is read from stdin, less one line break at its end
    pub prompt: Option<OsString>,
    /// System message, put before the prompt in the chat template
    #[arg(long, value_name = "TEXT")]
    pub system: Option<OsString>,
    /// Go on with the prompt as it is, without the model's chat template
    #[arg(long, visible_alias = "no-template", conflicts_with = "system")]
    pub raw: bool,
    /// Print nothing but the answer, warnings and errors
    #[arg(short, long)]
    pub quiet: bool,
    /// Positions of the context, 1 to 16777216 [default: 4096, more for a longer prompt, at most what the model was trained for]
    #[arg(short = 'c', long, value_name = "N")]
    pub n_ctx: Option<u64>,
    /// Most tokens of the answer [default: until the model ends it or the context is full]
    #[arg(short = 'n', long, value_name = "N")]
    pub n_predict: Option<u64>,
    /// End the answer before this text; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub stop: Vec<OsString>,
    #[command(flatten)]
    pub words: WordArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub plan: PlanArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Most tokens of the prompt read at once
    #[arg(long, value_name = "N", default_value_t = 512, help_heading = "Planning")]
    pub ubatch: u64,
    /// Print, at the end, the planned memory beside the measured, class by class (Linux)
    #[arg(long, help_heading = "Looking inside")]
    pub memory_report: bool,
    /// Fill bytes with NaN before their first write and after their last read: no answer may change
    #[arg(long, help_heading = "Looking inside")]
    pub poison: bool,
    /// Write what every step computed, as JSON lines
    #[arg(long, value_name = "FILE", help_heading = "Looking inside")]
    pub trace: Option<PathBuf>,
    /// Write the planned graph of the prompt: Graphviz if the name ends in .dot, else text
    #[arg(long, value_name = "FILE", help_heading = "Looking inside")]
    pub dump_graph: Option<PathBuf>,
    /// Write the planned graph of the prompt as JSON
    #[arg(long, value_name = "FILE", help_heading = "Looking inside")]
    pub dump_graph_json: Option<PathBuf>,
}

/// How tokens are chosen.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Choosing tokens")]
pub struct SamplingArgs {
    /// Divides the logits; 0 always takes the most likely token
    #[arg(long, value_name = "T", default_value_t = 0.8, allow_negative_numbers = true)]
    pub temp: f32,
    /// Keep the K most likely tokens; 0 keeps all
    #[arg(long, value_name = "K", default_value_t = 40, allow_negative_numbers = true)]
    pub top_k: i64,
    /// Keep the most likely tokens whose probabilities sum to P; 1 keeps all
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_negative_numbers = true)]
    pub top_p: f32,
    /// Keep tokens at least P times as likely as the most likely; 0 keeps all
    #[arg(long, value_name = "P", default_value_t = 0.05, allow_negative_numbers = true)]
    pub min_p: f32,
    /// Make the last 64 tokens less likely by this factor; 1 does nothing
    #[arg(long, value_name = "R", default_value_t = 1.0, allow_negative_numbers = true)]
    pub repeat_penalty: f32,
    /// Start of the random numbers: the same seed gives the same answer [default: from the clock, and printed]
    #[arg(short, long, value_name = "N")]
    pub seed: Option<u64>,
}
