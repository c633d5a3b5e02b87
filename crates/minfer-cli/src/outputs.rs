//! The files that a command writes. Takes what the command reads, then paths; gives opened files, but none that the
//! command reads or already writes, whatever the path calls it.

use crate::exit::Failure;
use crate::resolve::TextSource;
use minfer::GgufFile;
use same_file::Handle;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files that must stay as they are, and what they are. A handle knows its file under every name: links, `./`, `/dev/fd`.
#[derive(Clone, Default)]
pub struct Outputs {
    taken: Vec<(Arc<Handle>, &'static str)>,
    /// Whether the command also writes an answer to stdout.
    has_answer: bool,
}

/// A file to be written. What it held stays until there is something to write, and a new one goes again if there never is. A
/// pipe whose reader has enough takes everything silently.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    file: File,
    is_new: bool,
    is_begun: bool,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !std::mem::replace(&mut self.is_begun, true) && self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        match self.file.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_new && !self.is_begun {
            // Whatever ended the command is told already.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether this is the very file, pipe or terminal that stdout is. Other devices hold nothing, and may be named twice.
#[cfg(unix)]
fn is_stdout(path: &Path) -> bool {
    use std::io::IsTerminal;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let stdout = io::stdout();
    let own = stdout.as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata());
    // Not opened: to open a pipe once more may wait for ever.
    let (Ok(own), Ok(other)) = (own, std::fs::metadata(path)) else { return false };
    let keeps = !own.file_type().is_char_device() || stdout.is_terminal();
    keeps && (own.dev(), own.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_stdout(path: &Path) -> bool {
    path.is_file() && Handle::stdout().ok().zip(Handle::from_path(path).ok()).is_some_and(|(own, other)| own == other)
}

impl Outputs {
    /// Of a command that reads this model, perhaps in several parts, and answers on stdout.
    pub fn beside(model: &GgufFile) -> Self {
        // Mapped: overwriting it would end the program, too.
        Self { has_answer: true, ..Self::default() }
            .keep(model.parts().iter().filter_map(|part| part.path()), "the model")
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

    /// Opens a file to be written, before there is anything to write.
    pub fn create(&mut self, path: &Path) -> Result<Output, Failure> {
        self.check(path)?;
        let (file, is_new) = match File::options().write(true).create_new(true).open(path) {
            Ok(file) => (Ok(file), true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Not emptied: what it holds may stay. Created, where a link leads nowhere yet.
                (File::options().write(true).create(true).truncate(false).open(path), false)
            }
            Err(error) => (Err(error), false),
        };
        let file = file.map_err(|error| cannot_write(path, &error))?;
        *self = std::mem::take(self).keep([path], "another output");
        Ok(Output { path: path.to_owned(), file, is_new, is_begun: false })
    }

    /// The same with all that is to be in it. For files by names of their own, of which there may be many.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        self.check(path)?;
        match std::fs::write(path, bytes) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(cannot_write(path, &error)),
            _ => Ok(()),
        }
    }

    fn check(&self, path: &Path) -> Result<(), Failure> {
        if self.has_answer && is_stdout(path) {
            let failure = Failure::new(format!("{}: this is where the answer goes", path.display()));
            return Err(failure.hint("give another name, or send the answer elsewhere"));
        }
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
