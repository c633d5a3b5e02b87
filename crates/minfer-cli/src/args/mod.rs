//! The command line. Takes words; gives raw values, checked only as far as their type goes; must not know what they mean.

mod bench;
mod doctor;
mod memplan;
mod plan;
mod run;
mod shared;
mod tools;

pub use bench::{BenchArgs, BenchOutput};
pub use doctor::DoctorArgs;
pub use memplan::{MemplanArgs, TableOutput};
pub use plan::{FitSetting, LedgerArgs};
pub use run::{RunArgs, SamplingArgs};
pub use shared::{Alloc, Backend, CacheType, MemoryArgs, PlanArgs, WordArgs};
pub use tools::{
    EvalArgs, EvalOutput, GraphArgs, GraphKind, GraphOutput, InspectArgs, TemplateArgs, TextOutput, TokenOutput,
    TokenizeArgs,
};

use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;

/// Run GGUF language models, with the memory planned before anything is loaded.
#[derive(Parser, Debug)]
#[command(
    name = "minfer",
    version,
    override_usage = "minfer MODEL [PROMPT] [OPTIONS]\n       minfer COMMAND [OPTIONS]",
    after_help = crate::env::help(crate::env::UsedBy::Watch),
    after_long_help = crate::env::help(crate::env::UsedBy::Watch),
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = false
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Answer a prompt; `minfer MODEL PROMPT` is short for it
    ///
    /// The answer goes to stdout, everything else to stderr. The first Ctrl+C ends the answer where it is, cleanly, with
    /// exit code 0; the second ends the program at once, with exit code 130.
    Run(Box<RunArgs>),
    /// Show what is in a model file
    ///
    /// Also works for files that minfer cannot run: vocabularies, unknown architectures, unknown tensor formats.
    Inspect(InspectArgs),
    /// Say what a model will take in memory, without loading it
    ///
    /// Reads only the headers of the file and allocates none of what it plans. Weights, KV cache and arenas are exact to the
    /// byte, for `minfer run` allocates from the same plan; the heap beside them is counted from the sizes of its tables.
    /// Exit code 1 says that it does not fit: in --memory SIZE, which alone decides, for it may be another machine's, and
    /// stderr tells if it would not run here; without it, in what the machine has and this process may take.
    Plan(LedgerArgs),
    /// Show the compute graph and its memory plan, without running it
    ///
    /// Reads only the headers of the file and allocates none of what it plans.
    Graph(GraphArgs),
    /// Turn text into token ids, and back
    ///
    /// Begin and end tokens are added as the file says. Spellings of control tokens in the text stay text. A conversation
    /// (--chat) goes through the chat template: what the template writes is read for control tokens, what the messages say
    /// is not. Works for files that hold only a vocabulary.
    Tokenize(TokenizeArgs),
    /// Show the chat template, or a conversation in its words
    ///
    /// Works for files that hold only a vocabulary. A template that fails or refuses a conversation is an error; no other is
    /// taken in its place unless --chat-template names it.
    Template(TemplateArgs),
    /// Measure tokens per second, and how close they come to the limits of this machine
    ///
    /// Each round reads P tokens (prefill) and then generates N, one after the other (decode), on top of D tokens that are
    /// in the cache already. Flags with several values are tried in every combination. One round more is made first and not
    /// counted. The ids are made up.
    ///
    /// GB/s are weights and KV cache read, GOP/s 8-bit multiplications and additions of products, both counted in the
    /// planned graph; their shares are of what this machine was measured to do just before with as many threads: read as
    /// many bytes as the model has, at most 1 GiB, over and over, and multiply in registers.
    Bench(Box<BenchArgs>),
    /// Show what this machine gives minfer: instructions, threads, bandwidth, 8-bit rate
    ///
    /// Takes a few seconds. No model is needed; with one it also tells how fast that could decode at most.
    Doctor(DoctorArgs),
    /// Score given text: likelihood, and the logits after it
    ///
    /// The figures are those of the text's tokens from the second on, each given all before it.
    Eval(EvalArgs),
    /// Place buffers with lifetimes in one address range, and prove how good that is
    ///
    /// Problems are files in the format of the MiniMalloc suite: a header with id,lower,upper,size (lifetimes [lower, upper))
    /// and perhaps alignment, offset (fixed placements), gaps (periods in which a buffer is not live, as in "2-4 7-8": half
    /// open, and never with a part that stays, "2-4@0:16") and hint (left unread). Also read: start or begin for lower, buffer
    /// or buffer_id for id, and end for an upper that is the last step itself, also of gaps.
    #[command(subcommand)]
    Memplan(MemplanArgs),
}

/// Reads the words of the command line. Ends the process for `--help`, `--version` and words that make no sense (exit
/// code 2).
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Command {
    Cli::parse_from(with_long_pg(with_command(words.into_iter().collect()))).command
}

/// Puts `run` in front of words that name no command: the short form.
fn with_command(mut words: Vec<OsString>) -> Vec<OsString> {
    let program_flags = ["-h", "--help", "-V", "--version", "help"];
    let is_known = |word: &str| program_flags.contains(&word) || Cli::command().find_subcommand(word).is_some();
    if words.get(1).is_some_and(|word| !word.to_str().is_some_and(is_known)) {
        words.insert(1, "run".into());
    }
    words
}

/// Spells the `-pg` of a benchmark, known from elsewhere, as the long flag that it is.
fn with_long_pg(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|command| command == "bench") {
        words.iter_mut().filter(|word| *word == "-pg").for_each(|word| *word = "--pg".into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    /// A heading goes on for whatever follows, so groups of flags come last.
    #[test]
    fn no_heading_covers_what_is_not_of_it() {
        for command in Cli::command().get_subcommands() {
            for name in ["output", "passes", "explain", "json", "diff", "svg", "html", "profile", "top"] {
                let found = command.get_arguments().find(|arg| arg.get_id() == name);
                let heading = found.and_then(|arg| arg.get_help_heading());
                assert_eq!(heading, None, "{} --{name}", command.get_name());
            }
        }
    }

    #[test]
    fn words_without_a_command_are_a_run() {
        for short in ["minfer m.gguf hi", "minfer --temp 0 m.gguf hi", "minfer m.gguf"] {
            let long = short.replacen("minfer", "minfer run", 1);
            assert_eq!(with_command(words(short)), words(&long));
        }
        for whole in ["minfer", "minfer run m.gguf", "minfer inspect m.gguf", "minfer --help", "minfer help run"] {
            assert_eq!(with_command(words(whole)), words(whole));
        }
    }
}
