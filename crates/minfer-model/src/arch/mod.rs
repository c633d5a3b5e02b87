//! The architectures. Takes an open file; gives its specification through the row of its architecture; the rows are the
//! only list of names.

mod decoder;
mod gemma3;
mod llama;
mod qwen2;
mod qwen3;

use crate::error::ModelError;
use crate::keys;
use crate::read::Keys;
use crate::spec::ModelSpec;
use minfer_gguf::{GgufFile, Metadata};

/// One architecture.
struct Architecture {
    /// Its name in files.
    name: &'static str,
    /// Reads a file of it.
    load: fn(&Keys<'_>) -> Result<ModelSpec, ModelError>,
}

/// The registry, in the order of messages.
const ARCHITECTURES: &[Architecture] = &[
    Architecture { name: "llama", load: llama::load },
    Architecture { name: "qwen2", load: qwen2::load },
    Architecture { name: "qwen3", load: qwen3::load },
    Architecture { name: "gemma3", load: gemma3::load },
];

/// Names of the architectures that can be loaded.
pub fn supported_architectures() -> Vec<&'static str> {
    ARCHITECTURES.iter().map(|arch| arch.name).collect()
}

/// Reads hyper-parameters, options and weights of a model file.
///
/// Refuses what is no model, an architecture or a setting that is not computed, hyper-parameters that do not fit together,
/// and tensors that are missing, of another shape or format, or not used at all. A specification that is returned can be
/// built into a graph.
pub fn load_spec(file: &GgufFile) -> Result<ModelSpec, ModelError> {
    file.require_model()?;
    let name = file.metadata().require(keys::ARCHITECTURE, Metadata::str)?;
    let Some(arch) = ARCHITECTURES.iter().find(|arch| arch.name == name) else {
        let (got, supported) = (name.to_owned(), supported_architectures());
        return Err(ModelError::UnsupportedArchitecture { got, supported });
    };
    (arch.load)(&Keys { file, arch: arch.name })
}
