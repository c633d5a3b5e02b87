//! A model's header, opened. Takes a path; gives a file or a model; maps no weights.

use super::template::in_file;
use crate::exit::Failure;
use crate::memory::{self, Memory, PROGRAM_BYTES};
use crate::output::mib;
use anyhow::Result;
use minfer::{EngineError, GgufFile, Model};
use minfer_text::PreTokenizer;
use std::path::Path;

/// The header alone.
pub fn header(path: &Path) -> Result<GgufFile> {
    Ok(GgufFile::open_header(path).map_err(EngineError::from)?)
}

/// A model, without its weights: enough to plan and to refuse. `pre` replaces the way to cut text that the file names.
pub fn model(path: &Path, pre: Option<PreTokenizer>) -> Result<Model> {
    let file = header(path)?;
    file.require_model()?;
    let file_bytes = file.parts().first().map_or(0, |part| part.file_bytes());
    let first = file.tensors().iter().filter(|tensor| tensor.part == 0);
    group_has_room(first.map(|tensor| tensor.offset).min().unwrap_or(file_bytes), memory::memory())?;
    in_file(path, Model::from_file_as(file, pre))
}

/// Whoever takes more than a control group has is killed, not told no. A vocabulary takes more than its bytes of the header.
fn group_has_room(header_bytes: u64, memory: Option<Memory>) -> Result<(), Failure> {
    let needed = header_bytes.saturating_add(PROGRAM_BYTES);
    match memory.and_then(|memory| memory.group).map(|group| group.budget_bytes) {
        Some(left) if left < needed => {
            let (needed, left) = (mib(needed), mib(left));
            let what = "to read the vocabulary of the model";
            Err(Failure::new(format!(
                "too little memory: {needed} are needed {what}, and the control group of this process leaves {left}"
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Group;
    use crate::memory::tests::NO_LIMITS;

    #[test]
    fn a_group_is_asked_before_it_kills() {
        assert!(group_has_room(1 << 40, None).is_ok() && group_has_room(1 << 40, Some(NO_LIMITS)).is_ok());
        let group = |budget_bytes| Some(Group { limit_bytes: 1 << 30, budget_bytes });
        let within = |bytes| Some(Memory { group: group(bytes), ..NO_LIMITS });
        assert!(group_has_room(1 << 20, within(PROGRAM_BYTES + (1 << 20))).is_ok());
        let refused = group_has_room((1 << 20) + 1, within(PROGRAM_BYTES + (1 << 20))).unwrap_err().to_string();
        assert!(refused.ends_with("the control group of this process leaves 9.0 MiB"), "{refused}");
    }
}
