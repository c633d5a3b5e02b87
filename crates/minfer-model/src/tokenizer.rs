//! The tokenizer of a file.

use crate::error::ModelError;
use crate::keys;
use minfer_gguf::GgufFile;

/// The chat template, if the file has one.
pub fn chat_template(file: &GgufFile) -> Result<Option<String>, ModelError> {
    Ok(file.metadata().str(keys::CHAT_TEMPLATE)?.map(str::to_owned))
}
