//! The commands beside `run`. Takes nothing; gives raw values.

use super::shared::{MemoryArgs, PlanArgs, WordArgs};
use clap::{ArgGroup, Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// For people or for programs.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextOutput {
    /// For people
    Text,
    /// One JSON object
    Json,
}

/// For people or for programs.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenOutput {
    /// Ids, separated by commas
    Text,
    /// A line per token: id, text, bytes and kind
    Table,
    /// One JSON object: ids, pieces, bytes in hexadecimal, kinds
    Json,
}

/// Forms of a graph.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphOutput {
    /// One line per node
    Text,
    /// Graphviz, coloured by backend
    Dot,
    /// One JSON object
    Json,
}

/// Which of a model's two graphs.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphKind {
    /// Many tokens of a prompt at once
    Prefill,
    /// One token
    Decode,
}

/// `minfer inspect`.
#[derive(Args, Debug)]
pub struct InspectArgs {
    /// Model file (.gguf; of a split model the first part)
    pub model: PathBuf,
    /// List every tensor with format, shape, size and offset (JSON always does)
    #[arg(long)]
    pub tensors: bool,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t = TextOutput::Text)]
    pub output: TextOutput,
}

/// `minfer graph`.
#[derive(Args, Debug)]
#[command(after_help = crate::env::help(crate::env::UsedBy::Plan))]
pub struct GraphArgs {
    /// Model file (.gguf; of a split model the first part)
    pub model: PathBuf,
    /// Which of the model's two graphs
    #[arg(long, value_enum, default_value_t = GraphKind::Prefill)]
    pub kind: GraphKind,
    /// Most tokens in a batch of the prefill graph [default: 512]
    #[arg(long, value_name = "N")]
    pub tokens: Option<u64>,
    /// Positions of the context [default: 4096, at most what the model was trained for]
    #[arg(short = 'c', long, value_name = "N")]
    pub n_ctx: Option<u64>,
    /// Print the graph after every pass of the planner
    #[arg(long)]
    pub passes: bool,
    /// For people, for Graphviz or for programs
    #[arg(long, value_enum, default_value_t = GraphOutput::Text)]
    pub output: GraphOutput,
    #[command(flatten)]
    pub plan: PlanArgs,
}

/// `minfer tokenize`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("source").args(["text", "file", "chat"]))]
pub struct TokenizeArgs {
    /// Model file (.gguf; of a split model the first part)
    pub model: PathBuf,
    /// The text. Without --text, --file and --chat it is read from stdin
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub text: Option<OsString>,
    /// A file with the text, taken byte for byte
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// A conversation as JSON: an array of messages, or an object with `messages` and, if there are any, `tools`,
    /// `add_generation_prompt` (default true) and more variables for the template
    #[arg(long, value_name = "FILE")]
    pub chat: Option<PathBuf>,
    /// The other way: the text is ids such as 1,2,3, and their bytes are written
    #[arg(long, conflicts_with_all = ["chat", "no_special", "parse_special"])]
    pub decode: bool,
    /// With --decode: write control tokens as they are spelled, not as nothing
    #[arg(long, requires = "decode")]
    pub show_special: bool,
    /// Leave begin and end tokens out
    #[arg(long, conflicts_with = "chat")]
    pub no_special: bool,
    /// Take the spelling of a control token in the text for that token
    #[arg(long, conflicts_with = "chat")]
    pub parse_special: bool,
    /// Ids, or more about each token
    #[arg(long, value_enum, default_value_t = TokenOutput::Text)]
    pub output: TokenOutput,
    #[command(flatten)]
    pub words: WordArgs,
}

/// `minfer template`.
#[derive(Args, Debug)]
pub struct TemplateArgs {
    /// Model file (.gguf; of a split model the first part)
    pub model: PathBuf,
    /// List the names that --chat-template takes: templates of the file, then built-in ones
    #[arg(long, conflicts_with_all = ["chat", "chat_template"])]
    pub list: bool,
    /// Render a conversation instead, given as JSON: see `minfer tokenize --help`
    #[arg(long, value_name = "FILE")]
    pub chat: Option<PathBuf>,
    /// Another chat template than the file's: a file with one, or a name from --list
    #[arg(long, value_name = "FILE|NAME")]
    pub chat_template: Option<OsString>,
}

/// `minfer eval`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("source").args(["ids", "text", "file"]).required(true), after_help = crate::env::help(crate::env::UsedBy::Watch))]
pub struct EvalArgs {
    /// Model file (.gguf; of a split model the first part)
    pub model: PathBuf,
    /// Token ids, separated by commas
    #[arg(long, value_name = "IDS", allow_hyphen_values = true)]
    pub ids: Option<OsString>,
    /// The text; begin and end tokens are added as the file says
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub text: Option<OsString>,
    /// A file with the text, taken byte for byte
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// How many of the largest logits after the last token to print
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub top: u64,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t = EvalOutput::Table)]
    pub output: EvalOutput,
    /// Most tokens read at once; as many rows of logits are kept
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Planning")]
    pub ubatch: u64,
    #[command(flatten)]
    pub plan: PlanArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Fill bytes with NaN before their first write and after their last read: no figure may change
    #[arg(long, help_heading = "Looking inside")]
    pub poison: bool,
    /// Write what every step computed, as JSON lines
    #[arg(long, value_name = "FILE", help_heading = "Looking inside")]
    pub trace: Option<PathBuf>,
}

/// For people or for programs.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum EvalOutput {
    /// For people
    Table,
    /// One JSON object
    Json,
}
