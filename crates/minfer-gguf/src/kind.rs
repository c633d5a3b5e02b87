//! What a file holds besides language models. Takes metadata, gives a `FileKind`.

use std::fmt;

use crate::error::GgufError;
use crate::file::GgufFile;

/// What a GGUF file holds, as far as its metadata tells.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileKind {
    /// A model (the default when nothing says otherwise).
    Model,
    /// A tokenizer without weights.
    Vocabulary,
    /// A LoRA adapter.
    Adapter,
    /// An image or audio encoder and its projector.
    Projector,
    /// Activation statistics for quantisation.
    ImportanceMatrix,
    /// Another `general.type`.
    Other(String),
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileKind::Model => f.write_str("a model"),
            FileKind::Vocabulary => f.write_str("only a vocabulary"),
            FileKind::Adapter => f.write_str("a LoRA adapter"),
            FileKind::Projector => f.write_str("a multimodal projector (mmproj)"),
            FileKind::ImportanceMatrix => f.write_str("an importance matrix"),
            FileKind::Other(kind) => write!(f, "a `{}`", kind.escape_debug()),
        }
    }
}

impl GgufFile {
    /// What the file holds. `general.type` decides; without it, a file without
    /// tensors is a vocabulary, and the architecture `clip` is a projector.
    pub fn kind(&self) -> FileKind {
        let text = |key| self.metadata().str(key).ok().flatten();
        match text("general.type") {
            Some("adapter") => FileKind::Adapter,
            Some("mmproj") => FileKind::Projector,
            Some("imatrix") => FileKind::ImportanceMatrix,
            Some("vocab") => FileKind::Vocabulary,
            Some("model") | None => match text("general.architecture") {
                Some("clip") => FileKind::Projector,
                _ if self.tensors().is_empty() => FileKind::Vocabulary,
                _ => FileKind::Model,
            },
            Some(other) => FileKind::Other(other.to_owned()),
        }
    }

    /// Refuses everything but a model, and says what the file is instead.
    pub fn require_model(&self) -> Result<(), GgufError> {
        let kind = self.kind();
        let advice = match kind {
            FileKind::Model => return Ok(()),
            FileKind::Vocabulary => "it can be inspected and used to tokenize, but it has no weights to run",
            FileKind::Adapter => "open the base model it was trained for",
            FileKind::Projector => "open the language model that it belongs to",
            FileKind::ImportanceMatrix => "open the model that it was computed from",
            FileKind::Other(_) => "open a file whose `general.type` is `model`",
        };
        let error = GgufError::NotAModel { kind, advice };
        Err(match self.parts().first().and_then(|part| part.path()) {
            Some(path) => error.in_file(path),
            None => error,
        })
    }
}
