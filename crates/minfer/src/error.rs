//! What can go wrong from a path to an answer. Takes the errors of the stages; gives [`Error`].

use minfer_cpu::CpuError;
use minfer_engine::{EngineError, SamplerError};
use minfer_text::TextError;

/// What can go wrong from a path to an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file, the plan, a backend or a step.
    #[error(transparent)]
    Engine(Box<EngineError>),
    /// A sampling parameter.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The chat template refused the messages or failed.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A chat with a model that has no template.
    #[error("the model has no chat template: it completes text, but it was not made to chat")]
    NoChatTemplate,
    /// Instructions that this processor lacks, or threads that the system does not give.
    #[error(transparent)]
    Cpu(#[from] CpuError),
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        Error::Engine(Box::new(error))
    }
}
