//! Raw values become settings. Takes what was typed and the environment; gives a command whose every number is in its
//! range; opens no file and does nothing else. One file per command says what its arguments come to.

mod bench;
mod doctor;
mod eval;
mod graph;
mod inspect;
mod memplan;
mod plan;
mod run;
mod shared;
mod template;
mod tokenize;

pub use bench::Bench;
pub use doctor::Doctor;
pub use eval::{Eval, EvalSource, ids_of};
pub use graph::Graph;
pub use inspect::Inspect;
pub use memplan::{Memplan, MemplanAction};
pub use plan::{ModelPlan, Plan};
pub use run::Run;
pub use shared::{Compute, TextSource};
pub use template::Template;
pub use tokenize::{Tokenize, TokenizeWhat};

use crate::args;
use crate::env::Environment;
use crate::exit::Failure;

type Resolved<T> = Result<T, Failure>;

/// What to do, with settings.
pub enum Command {
    Run(Run),
    Inspect(Inspect),
    Plan(Plan),
    Graph(Graph),
    Tokenize(Tokenize),
    Template(Template),
    Bench(Bench),
    Doctor(Doctor),
    Eval(Eval),
    Memplan(Memplan),
}

/// Checks every value, and lets flags win over the environment.
pub fn resolve(raw: args::Command, environment: &Environment) -> Resolved<Command> {
    Ok(match raw {
        args::Command::Run(raw) => Command::Run(run::run(*raw, environment)?),
        args::Command::Inspect(raw) => Command::Inspect(inspect::inspect(raw)),
        args::Command::Plan(raw) => Command::Plan(plan::plan(raw, environment)?),
        args::Command::Graph(raw) => Command::Graph(graph::graph(raw, environment)?),
        args::Command::Tokenize(raw) => Command::Tokenize(tokenize::tokenize(raw)?),
        args::Command::Template(raw) => Command::Template(template::template(raw)?),
        args::Command::Bench(raw) => Command::Bench(bench::bench(*raw, environment)?),
        args::Command::Doctor(raw) => Command::Doctor(doctor::doctor(raw, environment)?),
        args::Command::Eval(raw) => Command::Eval(eval::eval(raw, environment)?),
        args::Command::Memplan(raw) => Command::Memplan(memplan::memplan(raw)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn resolved(words: &str, environment: &Environment) -> Resolved<Command> {
        let words = std::iter::once("minfer").chain(words.split(' ')).map(OsString::from);
        resolve(args::parse(words), environment)
    }

    fn run_of(words: &str, environment: &Environment) -> Run {
        match resolved(words, environment) {
            Ok(Command::Run(run)) => run,
            Ok(_) => panic!("{words} is another command"),
            Err(failure) => panic!("{words}: {failure}"),
        }
    }

    fn failure_of(words: &str) -> String {
        resolved(words, &Environment::default()).err().map(|failure| failure.to_string()).unwrap_or_default()
    }

    #[test]
    fn numbers_out_of_range_are_refused_by_name() {
        for (words, start) in [
            ("m.gguf hi --threads 0", "--threads is 0, expected 1 to 1024"),
            ("m.gguf hi --temp -1", "--temp is -1, expected"),
            ("m.gguf hi --temp NaN", "--temp is NaN, expected"),
            ("m.gguf hi --top-p 2", "--top-p is 2, expected"),
            ("m.gguf hi --min-p -0.5", "--min-p is -0.5, expected"),
            ("m.gguf hi --top-k -3", "--top-k is -3, expected"),
            ("m.gguf hi --repeat-penalty 0", "--repeat-penalty is 0, expected"),
            ("m.gguf hi --n-ctx 1099511627776", "--n-ctx is 1099511627776, expected 1 to 16777216"),
            ("m.gguf hi --n-ctx 0", "--n-ctx is 0, expected"),
            ("m.gguf hi --n-predict 0", "--n-predict is 0, expected"),
            ("m.gguf hi --ubatch 0", "--ubatch is 0, expected"),
            ("eval m.gguf --ids 1,x", "--ids has `x`, expected"),
            ("eval m.gguf --ids 1,-2", "--ids has `-2`, expected"),
            ("eval m.gguf --ids ,", "--ids has ``, expected"),
            ("eval m.gguf --ids 1,,2", "--ids has ``, expected"),
            ("m.gguf hi --pre next-year", "--pre does not know `next-year`"),
            ("graph m.gguf --passes --output dot", "--passes prints text only"),
            ("graph m.gguf --kind decode --tokens 7", "--tokens is 7, but the decode graph takes one token"),
        ] {
            let message = failure_of(words);
            assert!(message.starts_with(start), "{words}: {message}");
        }
    }

    #[test]
    fn flags_win_over_the_environment() {
        let environment = Environment {
            threads: Some(3),
            no_fuse_qkv: true,
            trace: Some("env.jsonl".into()),
            ..Environment::default()
        };
        let run = run_of("m.gguf hi", &environment);
        assert_eq!((run.compute.threads.get(), run.watch.trace), (3, Some("env.jsonl".into())));
        assert!(!run.compute.config.fusion.qkv && run.compute.config.fusion.ffn);
        let run = run_of("m.gguf hi --threads 1 --trace flag.jsonl --no-fuse-ffn", &environment);
        assert_eq!((run.compute.threads.get(), run.watch.trace), (1, Some("flag.jsonl".into())));
        assert!(!run.compute.config.fusion.qkv && !run.compute.config.fusion.ffn);
    }
}
