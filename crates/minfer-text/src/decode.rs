//! Streaming: takes ids one by one, gives text that is complete. Must not know what
//! generates the ids.

use std::ops::Deref;

use crate::Tokenizer;

/// Bytes in pieces → text in pieces, never half a character. What it gives, put together, is
/// `String::from_utf8_lossy` of the whole.
#[derive(Debug, Clone, Default)]
pub struct Utf8Stream {
    /// The start of a character whose rest has not come yet; 0 to 3 bytes.
    held: Vec<u8>,
    text: String,
}

impl Utf8Stream {
    /// At the start of a text.
    pub fn new() -> Self {
        Self::default()
    }

    /// The text that these bytes complete. Bytes that cannot become a character give one
    /// U+FFFD; bytes that still can are held back.
    pub fn push(&mut self, bytes: &[u8]) -> &str {
        self.text.clear();
        self.held.extend_from_slice(bytes);
        let mut rest: &[u8] = &self.held;
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    self.text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, bad) = rest.split_at(error.valid_up_to());
                    self.text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                    rest = bad;
                    let Some(bad_len) = error.error_len() else {
                        break;
                    };
                    self.text.push(char::REPLACEMENT_CHARACTER);
                    rest = &rest[bad_len..];
                }
            }
        }
        let done = self.held.len() - rest.len();
        self.held.drain(..done);
        &self.text
    }

    /// Ends the text: one U+FFFD if a character was left unfinished, else nothing.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        if !self.held.is_empty() {
            self.held.clear();
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        &self.text
    }
}

/// Ids one by one → text, never half a character. `T` is a `&Tokenizer` or an
/// `Arc<Tokenizer>`.
#[derive(Debug, Clone)]
pub struct StreamDecoder<T> {
    tokenizer: T,
    utf8: Utf8Stream,
    at_start: bool,
    show_special: bool,
}

impl<T: Deref<Target = Tokenizer>> StreamDecoder<T> {
    /// For ids from the start of a text: the space that encoding puts in front is left out.
    pub fn new(tokenizer: T) -> Self {
        Self { tokenizer, utf8: Utf8Stream::new(), at_start: true, show_special: false }
    }

    /// For ids that continue a text: a leading space is text.
    pub fn continuing(tokenizer: T) -> Self {
        Self { at_start: false, ..Self::new(tokenizer) }
    }

    /// Control and unknown tokens give their spelling instead of nothing.
    pub fn show_special(mut self, yes: bool) -> Self {
        self.show_special = yes;
        self
    }

    /// The text that this token completes; often none.
    pub fn push(&mut self, id: u32) -> &str {
        let piece = self.tokenizer.piece(id, self.show_special, &mut self.at_start);
        self.utf8.push(piece)
    }

    /// Ends the text: one U+FFFD if a character was left unfinished, else nothing.
    pub fn finish(&mut self) -> &str {
        self.utf8.finish()
    }
}
