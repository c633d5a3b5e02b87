//! `minfer tokenize`. Takes what was typed; gives settings.

use super::Resolved;
use super::shared::{TextSource, Words, source, text, words};
use crate::args::{self, TokenOutput};
use std::path::PathBuf;

/// `minfer tokenize`.
pub struct Tokenize {
    pub model: PathBuf,
    pub what: TokenizeWhat,
    pub words: Words,
    pub output: TokenOutput,
}

/// What `minfer tokenize` turns into what.
pub enum TokenizeWhat {
    Text { source: TextSource, add_special: bool, parse_special: bool },
    Chat(PathBuf),
    Ids { source: TextSource, show_special: bool },
}

pub(super) fn tokenize(raw: args::TokenizeArgs) -> Resolved<Tokenize> {
    let given = text("--text", raw.text)?;
    let what = match raw.chat {
        Some(path) => TokenizeWhat::Chat(path),
        None if raw.decode => TokenizeWhat::Ids { source: source(given, raw.file), show_special: raw.show_special },
        None => TokenizeWhat::Text {
            source: source(given, raw.file),
            add_special: !raw.no_special,
            parse_special: raw.parse_special,
        },
    };
    Ok(Tokenize { model: raw.model, what, words: words(raw.words)?, output: raw.output })
}
