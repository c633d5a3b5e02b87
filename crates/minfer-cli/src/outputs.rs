//! The files that a command writes. Takes what the command reads, then paths; gives opened files, but none that the
//! command reads or already writes, whatever the path calls it.

use crate::exit::Failure;
use crate::resolve::TextSource;
use minfer::GgufFile;
use same_file::Handle;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Files that must stay as they are, and what they are. A handle knows its file under every name: links, `./`, `/dev/fd`.
#[derive(Clone, Default)]
pub struct Outputs {
    taken: Vec<(Arc<Handle>, &'static str)>,
}

impl Outputs {
    /// Of a command that reads this model, perhaps in several parts.
    pub fn beside(model: &GgufFile) -> Self {
        // Mapped: overwriting it would end the program, too.
        Self::default().keep(model.parts().iter().filter_map(|part| part.path()), "the model")
    }

    /// The command also reads these files.
    pub fn keep<'a>(mut self, paths: impl IntoIterator<Item = &'a Path>, what: &'static str) -> Self {
        // Only regular files can be lost, and to open a pipe once more may wait for ever.
        let handles = paths.into_iter().filter(|path| path.is_file()).filter_map(|path| Handle::from_path(path).ok());
        self.taken.extend(handles.map(|handle| (Arc::new(handle), what)));
        self
    }

    /// The command also reads this text.
    pub fn keep_text(mut self, source: &TextSource, what: &'static str) -> Self {
        match source {
            TextSource::Given(_) => self,
            TextSource::File(path) => self.keep([&**path], what),
            TextSource::Stdin => {
                self.taken.extend(Handle::stdin().ok().map(|handle| (Arc::new(handle), what)));
                self
            }
        }
    }

    /// Creates a file, or empties what is there.
    pub fn create(&mut self, path: &Path) -> Result<File, Failure> {
        self.check(path)?;
        let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
        *self = std::mem::take(self).keep([path], "another output");
        Ok(file)
    }

    /// The same with all that is to be in it. For files by names of their own, of which there may be many.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        self.check(path)?;
        std::fs::write(path, bytes).map_err(|error| cannot_write(path, &error))
    }

    fn check(&self, path: &Path) -> Result<(), Failure> {
        if !path.is_file() {
            return Ok(());
        }
        let Ok(handle) = Handle::from_path(path) else { return Ok(()) };
        match self.taken.iter().find(|(taken, _)| **taken == handle) {
            Some((_, what)) => {
                Err(Failure::new(format!("{}: this is {what}; it will not be overwritten", path.display()))
                    .hint("give another name"))
            }
            None => Ok(()),
        }
    }
}

/// A file that did not take what was written.
pub fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{}: cannot write: {error}", path.display()))
}
