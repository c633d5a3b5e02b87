//! A file becomes a model. Takes a path; gives [`Model`], which is read-only and shared; must not know backends.

use crate::error::EngineError;
use minfer_gguf::GgufFile;
use minfer_model::{ModelSpec, chat_template, load_spec, tokenizer_spec};
use minfer_text::Tokenizer;
use std::path::Path;

/// A model file, understood: nothing of it is copied but the vocabulary.
pub struct Model {
    /// The mapped file.
    pub file: GgufFile,
    /// Hyper-parameters and weight roles.
    pub spec: ModelSpec,
    /// Text to ids and back.
    pub tokenizer: Tokenizer,
    /// Source of the chat template, if the file has one.
    pub chat_template: Option<String>,
    /// What the reader of the file should know, such as a guessed pre-tokenizer.
    pub warnings: Vec<String>,
    /// Changes when weights change; a graph built for another version is not reused.
    pub weights_version: u64,
}

impl Model {
    /// File → metadata and tensors → specification → tokenizer and template.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, EngineError> {
        let path = path.as_ref();
        let file = GgufFile::open(path)?;
        if file.tensors().is_empty() && file.metadata().get("tokenizer.ggml.tokens").is_some() {
            return Err(EngineError::VocabularyOnly { path: path.display().to_string() });
        }
        Self::from_file(file)
    }

    /// The same, from a file that is open already.
    pub fn from_file(file: GgufFile) -> Result<Self, EngineError> {
        let spec = load_spec(&file)?;
        let (tokenizer_spec, warnings) = tokenizer_spec(&file)?;
        let tokenizer = Tokenizer::new(tokenizer_spec)?;
        let chat_template = chat_template(&file)?;
        Ok(Self { file, spec, tokenizer, chat_template, warnings, weights_version: 0 })
    }
}
