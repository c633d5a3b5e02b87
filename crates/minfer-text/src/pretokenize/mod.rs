//! Cuts text into words before the merges: takes bytes, gives consecutive slices that
//! together are the input. Must not know the vocabulary.
//!
//! A pre-tokenizer is a list of passes. The first cuts the text, each further one cuts
//! every piece again. Every pass is a linear scanner without backtracking; bytes that are
//! not UTF-8 count as symbols.

mod class;
mod ranges;
mod scan;
mod table;

use scan::Pass;
use table::{Row, TABLE};

use crate::vocab::Spelling;

/// A rule of cutting text, by the family of models it was made for; one row of one table.
#[derive(Clone, Copy)]
pub struct PreTokenizer(&'static Row);

impl PreTokenizer {
    /// What is assumed for files that name no rule.
    pub const DEFAULT_NAME: &'static str = "default";

    /// The pre-tokenizer of this name, as model files spell it; `None` for a name the table does not hold.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.names.contains(&name)).map(Self)
    }

    /// Every name [`Self::from_name`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().flat_map(|row| row.names).copied()
    }

    /// The first name of the rule.
    pub fn name(self) -> &'static str {
        self.0.names[0]
    }

    /// Whether models of this family take a word that is a token as a whole, before any merge.
    pub fn takes_whole_words(self) -> bool {
        self.0.whole_words
    }

    /// Whether models of this family begin a text with the first token, where their file does not say.
    pub fn adds_bos(self) -> bool {
        self.0.adds_bos
    }

    /// Whether merges of this family start from bytes, and not from characters.
    pub fn is_byte_level(self) -> bool {
        self.0.spelling == Spelling::ByteMap
    }

    /// How tokens and merges of this family are spelled.
    pub(crate) fn spelling(self) -> Spelling {
        self.0.spelling
    }

    /// Calls `word` with each word of `text`, in order; the words are the whole text.
    pub fn split<'a>(self, text: &'a [u8], mut word: impl FnMut(&'a [u8])) {
        if !text.is_empty() {
            split(self.0.passes, text, &mut word);
        }
    }
}

impl Default for PreTokenizer {
    /// The rule for files that name none.
    fn default() -> Self {
        Self(&TABLE[0])
    }
}

impl PartialEq for PreTokenizer {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for PreTokenizer {}

impl std::fmt::Debug for PreTokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PreTokenizer({})", self.name())
    }
}

fn split<'a>(passes: &[Pass], text: &'a [u8], word: &mut dyn FnMut(&'a [u8])) {
    match passes {
        [] => word(text),
        [pass, passes @ ..] => pass.split(text, &mut |piece| split(passes, piece, word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = PreTokenizer::names().collect();
        let n = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n);
        assert_eq!(PreTokenizer::from_name(PreTokenizer::DEFAULT_NAME), Some(PreTokenizer::default()));
    }
}
