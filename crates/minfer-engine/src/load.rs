//! A file becomes a model. Takes a path; gives [`Model`], which is read-only and shared; must not know backends.

use crate::error::EngineError;
use minfer_gguf::GgufFile;
use minfer_model::{ModelSpec, chat_template, load_spec, load_tokenizer_as};
use minfer_text::{PreTokenizer, Tokenizer};
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
        Self::open_as(path, None)
    }

    /// The same; `pre` replaces the way to cut text that the file names.
    pub fn open_as(path: impl AsRef<Path>, pre: Option<PreTokenizer>) -> Result<Self, EngineError> {
        let file = GgufFile::open(path)?;
        file.require_model()?;
        Self::from_file_as(file, pre)
    }

    /// The same, without mapping the weights: enough to plan and to refuse. [`Model::map_weights`] comes before an engine.
    pub fn open_header(path: impl AsRef<Path>, pre: Option<PreTokenizer>) -> Result<Self, EngineError> {
        let file = GgufFile::open_header(path)?;
        file.require_model()?;
        Self::from_file_as(file, pre)
    }

    /// Refuses a model without weights, of which an engine would be made.
    pub(crate) fn require_weights(&self) -> Result<(), EngineError> {
        match self.file.parts().iter().find(|part| !part.is_whole()) {
            None => Ok(()),
            Some(part) => Err(EngineError::WeightsNotMapped {
                path: part.path().unwrap_or(Path::new("a file in memory")).to_path_buf(),
                mapped_bytes: part.bytes().len() as u64,
                file_bytes: part.file_bytes(),
            }),
        }
    }

    /// Maps the weights, if only the header was read. The file must still be the same.
    pub fn map_weights(self) -> Result<Self, EngineError> {
        Ok(Self { file: self.file.map_whole()?, ..self })
    }

    /// [`Model::open`], from a file that is open already.
    pub fn from_file(file: GgufFile) -> Result<Self, EngineError> {
        Self::from_file_as(file, None)
    }

    /// The same; `pre` replaces the way to cut text that the file names.
    pub fn from_file_as(file: GgufFile, pre: Option<PreTokenizer>) -> Result<Self, EngineError> {
        let spec = load_spec(&file)?;
        let loaded = load_tokenizer_as(&file, pre)?;
        let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
        let tokenizer = Tokenizer::new(loaded.spec)?;
        let chat_template = chat_template(&file)?;
        Ok(Self { file, spec, tokenizer, chat_template, warnings, weights_version: 0 })
    }
}
