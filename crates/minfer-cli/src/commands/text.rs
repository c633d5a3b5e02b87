//! Text from wherever it comes. Takes a source; gives bytes or text.

use crate::exit::Failure;
use crate::resolve::TextSource;
use std::io::{IsTerminal, Read};

/// All bytes of a source. A terminal is not waited for: `hint` says what to do instead.
pub fn read_bytes(source: &TextSource, hint: &str) -> Result<Vec<u8>, Failure> {
    match source {
        TextSource::Given(text) => Ok(text.clone().into_bytes()),
        TextSource::File(path) => {
            let failed = |error| Failure::new(format!("{}: cannot read: {error}", path.display()));
            bounded(std::fs::File::open(path).map_err(failed)?, &path.display().to_string())
        }
        TextSource::Stdin => {
            let stdin = std::io::stdin().lock();
            if stdin.is_terminal() {
                return Err(Failure::new("there is no text, and stdin is a terminal").hint(hint));
            }
            bounded(stdin, "stdin")
        }
    }
}

/// Most bytes of a text: far more than any context holds, and an end for sources that have none.
const MAX_TEXT_BYTES: u64 = 64 << 20;

fn bounded(source: impl Read, name: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = source.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(format!("{name}: cannot read: {error}")))?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        let failure = Failure::new(format!("{name} has more than {} MiB of text", MAX_TEXT_BYTES >> 20));
        return Err(failure.hint("give a part of it"));
    }
    Ok(bytes)
}

/// A prompt: UTF-8, and from stdin without the line break that `echo` adds.
pub fn read_prompt(source: &TextSource) -> Result<String, Failure> {
    let hint = "minfer MODEL \"PROMPT\", or pipe a prompt into it; there is no interactive chat yet";
    let bytes = read_bytes(source, hint)?;
    let mut text = String::from_utf8(bytes).map_err(|_| Failure::new("the prompt on stdin is not valid UTF-8"))?;
    if matches!(source, TextSource::Stdin) && text.ends_with('\n') {
        text.truncate(text.len() - if text.ends_with("\r\n") { 2 } else { 1 });
    }
    Ok(text)
}
