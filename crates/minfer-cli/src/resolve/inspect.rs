//! `minfer inspect`. Takes what was typed; gives settings.

use crate::args::{self, TextOutput};
use std::path::PathBuf;

/// `minfer inspect`.
pub struct Inspect {
    pub model: PathBuf,
    pub tensors: bool,
    pub output: TextOutput,
}

pub(super) fn inspect(raw: args::InspectArgs) -> Inspect {
    Inspect { model: raw.model, tensors: raw.tensors, output: raw.output }
}
