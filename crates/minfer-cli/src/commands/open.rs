//! A model's header, opened where there is room for what comes of it. Takes a path; gives a file or a model, or says what is
//! missing; maps no weights.

use super::template::in_file;
use crate::room;
use anyhow::Result;
use minfer::{EngineError, GgufFile, Model};
use minfer_text::PreTokenizer;
use std::path::Path;

/// Most that is mapped of a file at first where only its header is wanted (`minfer_gguf`), and what its tables take beside.
const MAPPED_BYTES: u64 = 32 << 20;
const TABLES_BYTES: u64 = 2 << 20;
/// What a vocabulary takes while it is read, in bytes per byte of the header that it fills. Measured on 22 vocabularies: 1.5
/// to 3.0, with merges and without.
const VOCABULARY_FACTOR: u64 = 3;
/// What a plan takes while it is made, per tensor. Measured: 1.5 to 3 KiB.
const TENSOR_BYTES: u64 = 4 << 10;

/// The header alone.
pub fn header(path: &Path) -> Result<GgufFile> {
    // What is no file is told of by whoever opens it.
    let file_bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    room::require_beside_files(TABLES_BYTES, file_bytes.min(MAPPED_BYTES), "to read the header of the model")?;
    Ok(GgufFile::open_header(path).map_err(EngineError::from)?)
}

/// The header, with room for its vocabulary and for a plan.
pub fn with_vocabulary(path: &Path) -> Result<GgufFile> {
    let file = header(path)?;
    let first = || file.tensors().iter().filter(|tensor| tensor.part == 0);
    let file_bytes = file.parts().first().map_or(0, |part| part.file_bytes());
    let header_bytes = first().map(|tensor| tensor.offset).min().unwrap_or(file_bytes);
    let tensors = TENSOR_BYTES.saturating_mul(file.tensors().len() as u64);
    let needed = header_bytes.saturating_mul(VOCABULARY_FACTOR).saturating_add(tensors).saturating_add(TABLES_BYTES);
    room::require(needed, "to read the vocabulary of the model and to plan")?;
    Ok(file)
}

/// A model, without its weights: enough to plan and to refuse. `pre` replaces the way to cut text that the file names.
pub fn model(path: &Path, pre: Option<PreTokenizer>) -> Result<Model> {
    let file = with_vocabulary(path)?;
    file.require_model()?;
    in_file(path, Model::from_file_as(file, pre))
}
