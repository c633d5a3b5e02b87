//! How the program ends. Takes what a command returned; gives an exit code and, on stderr, one clear sentence with a hint;
//! a closed pipe is silent.

use crate::output;
use minfer::EngineError;
use minfer_gguf::GgufError;
use std::fmt;
use std::io::ErrorKind;
use std::process::ExitCode;

/// What a command that did not fail has to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Done.
    Done,
    /// Done, and the answer, printed already, is no.
    No,
}

/// A failure of the command line itself: what is wrong, and what to do.
#[derive(Debug)]
pub struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// What is wrong.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// What to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// A bound that admits less than is needed: why, and what would do, line by line. Nothing was loaded.
#[derive(Debug)]
pub struct Refused(pub Vec<String>);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Refused {}

/// Prints an error, if there is one; 0 done, 1 a negative answer, 2 failure.
pub fn code(result: anyhow::Result<Outcome>) -> ExitCode {
    let error = match result {
        Ok(Outcome::Done) => return ExitCode::SUCCESS,
        Ok(Outcome::No) => return ExitCode::from(NO),
        Err(error) if is_closed_pipe(&error) => return ExitCode::SUCCESS,
        Err(error) => error,
    };
    if let Some(Refused(lines)) = error.downcast_ref() {
        lines.iter().for_each(|line| output::line(line));
        output::line("nothing was loaded");
        return ExitCode::from(NO);
    }
    output::line(&format!("error: {error}"));
    if let Some(hint) = hint(&error) {
        output::line(&format!("hint: {hint}"));
    }
    ExitCode::from(2)
}

/// The exit code of a negative answer.
const NO: u8 = 1;

/// The engine's error, if it is one.
fn engine_error(error: &anyhow::Error) -> Option<&EngineError> {
    match error.downcast_ref::<minfer::Error>() {
        Some(minfer::Error::Engine(engine)) => Some(engine),
        _ => error.downcast_ref::<EngineError>(),
    }
}

/// Whoever read our output has enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |io: &std::io::Error| io.kind() == ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_pipe))
}

fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.hint.clone();
    }
    match error.downcast_ref::<minfer::Error>() {
        Some(minfer::Error::Cpu(minfer::CpuError::NoSimd { .. })) => return Some("unset MINFER_SIMD".into()),
        Some(minfer::Error::Text(_)) => return Some("--raw goes on with the prompt without the chat template".into()),
        _ => {}
    }
    match engine_error(error)? {
        EngineError::PromptTooLong { n_prompt, n_ctx_train, .. } if *n_prompt <= *n_ctx_train as usize => {
            Some(format!("--n-ctx {n_prompt} or more holds it"))
        }
        EngineError::PromptTooLong { .. } => Some("no context of this model holds it: shorten the prompt".into()),
        EngineError::File(GgufError::InFile { path, problem })
            if matches!(**problem, GgufError::Missing)
                && path.extension().is_none()
                && path.components().count() == 1 =>
        {
            Some(format!("if `{}` was meant as a command: `minfer --help` lists them", path.display()))
        }
        EngineError::EmptyPrompt => Some("minfer MODEL \"PROMPT\", or pipe a prompt into it".into()),
        EngineError::Backend(minfer_backend::BackendError::OutOfMemory { .. }) => {
            Some("--n-ctx, --ubatch and --cache-type f16 make it smaller; `minfer plan` shows what is planned".into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_found_in_any_depth() {
        let pipe = std::io::Error::new(ErrorKind::BrokenPipe, "gone");
        assert!(is_closed_pipe(&anyhow::Error::new(pipe).context("writing")));
        assert!(!is_closed_pipe(&anyhow::Error::new(Failure::new("no"))));
    }

    #[test]
    fn hints_come_with_the_errors_of_the_engine() {
        let error = EngineError::PromptTooLong { n_prompt: 5000, n_ctx: 4096, n_ctx_train: 8192 };
        let hint = hint(&anyhow::Error::new(minfer::Error::from(error))).unwrap();
        assert!(hint.contains("--n-ctx 5000"), "{hint}");
    }
}
