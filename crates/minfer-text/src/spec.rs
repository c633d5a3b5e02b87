//! What a tokenizer is made of: takes tokens, scores, merges and ids from whoever reads
//! files, holds them compactly. Must not know any file format.

use crate::vocab::{Spelling, is_in_text};
use crate::{PreTokenizer, TextError};

/// Everything [`crate::Tokenizer::new`] needs.
#[derive(Debug, Clone)]
pub struct TokenizerSpec {
    /// The algorithm and its data.
    pub kind: TokenizerKind,
    /// The vocabulary; a token's id is its position.
    pub tokens: TokenTable,
    /// Ids with a role.
    pub special: SpecialTokens,
    /// Whether encoding with `add_special` starts with `special.bos`.
    pub add_bos: bool,
    /// Whether encoding with `add_special` ends with `special.eos`.
    pub add_eos: bool,
    /// Whether text gets a space in front (SentencePiece): at its start, and where a begin token starts it anew.
    pub add_space_prefix: bool,
    /// Tokens that take white space next to them along.
    pub strips: Vec<Strip>,
}

impl TokenizerSpec {
    /// How many of the bytes that occur in text have no token of their own: in text they become the unknown token or,
    /// without one, U+FFFD.
    pub fn missing_bytes(&self) -> usize {
        let spelling = match &self.kind {
            TokenizerKind::Bpe { pre, .. } => pre.spelling(),
            TokenizerKind::Spm | TokenizerKind::Unigram { .. } => Spelling::Sentencepiece,
        };
        let mut has = [false; 256];
        let ids = 0..self.tokens.len() as u32;
        let tokens = ids.filter_map(|id| Some((self.tokens.bytes(id)?, self.tokens.kind(id)?)));
        tokens
            .filter_map(|(text, kind)| spelling.single_byte(text, kind))
            .for_each(|byte| has[usize::from(byte)] = true);
        (0..=255).filter(|&byte| is_in_text(byte) && !has[usize::from(byte)]).count()
    }
}

/// A token that takes white space next to it along, where it is recognised in a text: that space is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strip {
    /// The token; control, unknown or user-defined.
    pub id: u32,
    /// White space before it.
    pub left: bool,
    /// White space after it.
    pub right: bool,
}

/// The tokenizer algorithm.
#[derive(Debug, Clone)]
pub enum TokenizerKind {
    /// Byte pair encoding by a list of merges. The pre-tokenizer also says how tokens and merges are spelled: one character
    /// per byte, by the byte map of GPT-2; or UTF-8 with `▁` for a space, where a character that is no token becomes byte
    /// tokens (`<0xNN>`).
    Bpe {
        /// How text is cut into words before the merges.
        pre: PreTokenizer,
        /// The merges, best first.
        merges: Merges,
        /// Whether a word that is a token as a whole is taken before any merge.
        ignore_merges: bool,
    },
    /// SentencePiece BPE: the scores in the token table decide; `▁` spells a space.
    Spm,
    /// SentencePiece Unigram: the scores in the token table are logarithms of probabilities, and the most likely cut of the
    /// whole text is taken; `▁` spells a space.
    Unigram {
        /// SentencePiece's `precompiled_charsmap`: how text is normalised first; empty for not at all.
        charsmap: Vec<u8>,
        /// Whether runs of spaces become one, and those at either end none.
        merge_spaces: bool,
    },
}

/// Ids of tokens with a role; `None` where the model has no such token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// Begin of sequence.
    pub bos: Option<u32>,
    /// End of sequence.
    pub eos: Option<u32>,
    /// End of turn.
    pub eot: Option<u32>,
    /// End of message (a tool call follows).
    pub eom: Option<u32>,
    /// Unknown text.
    pub unk: Option<u32>,
    /// Padding.
    pub pad: Option<u32>,
}

impl SpecialTokens {
    /// The token for unknown text. Some files name the end of sequence there: text never becomes that.
    pub(crate) fn unk_for_text(&self) -> Option<u32> {
        self.unk.filter(|unk| ![self.bos, self.eos, self.eot, self.eom].contains(&Some(*unk)))
    }

    /// All roles with their names, in a fixed order.
    pub fn roles(&self) -> [(&'static str, Option<u32>); 6] {
        [
            ("bos", self.bos),
            ("eos", self.eos),
            ("eot", self.eot),
            ("eom", self.eom),
            ("unk", self.unk),
            ("pad", self.pad),
        ]
    }
}

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TokenKind {
    /// Ordinary text.
    Normal,
    /// Stands for text that has no token.
    Unknown,
    /// Structure, not text: never made from user text, decodes to nothing.
    Control,
    /// Literal text that is always one token.
    UserDefined,
    /// A spare entry.
    Unused,
    /// One byte, spelled `<0xNN>` (SentencePiece).
    Byte,
}

/// A vocabulary in one blob: per token its bytes, 4 bytes of offset, 1 of kind and,
/// where given, 4 of score. No allocation per token.
#[derive(Debug, Clone, Default)]
pub struct TokenTable {
    bytes: Blob,
    kinds: Vec<TokenKind>,
    scores: Vec<f32>,
}

impl TokenTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty table with room for `n_tokens` tokens of `n_bytes` bytes in all. Capacity
    /// only: a caller must not pass counts from a file before it has bounded them.
    pub fn with_capacity(n_tokens: usize, n_bytes: usize) -> Self {
        Self { bytes: Blob::with_capacity(n_tokens, n_bytes), kinds: Vec::with_capacity(n_tokens), scores: Vec::new() }
    }

    /// Appends a token, spelled as in the model's vocabulary, and returns its id. A table
    /// with scores has one per token: [`crate::Tokenizer::new`] checks that where it matters.
    ///
    /// # Errors
    /// [`TextError::TooLarge`] when ids or offsets no longer fit 32 bits.
    pub fn push(&mut self, bytes: &[u8], kind: TokenKind, score: Option<f32>) -> Result<u32, TextError> {
        let id = self.bytes.push(bytes, "bytes of vocabulary")?;
        self.kinds.push(kind);
        if let Some(score) = score {
            self.scores.push(score);
        }
        Ok(id)
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The bytes of a token as they were pushed.
    pub fn bytes(&self, id: u32) -> Option<&[u8]> {
        self.bytes.get(id)
    }

    /// The kind of a token.
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    /// The scores, in id order; may be shorter than the table.
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// The parts: bytes, kinds, scores.
    pub(crate) fn into_parts(self) -> (Blob, Vec<TokenKind>, Vec<f32>) {
        (self.bytes, self.kinds, self.scores)
    }
}

/// Merges in rank order, each kept as the text `left right`, in one blob.
#[derive(Debug, Clone, Default)]
pub struct Merges {
    lines: Blob,
}

impl Merges {
    /// No merges.
    pub fn new() -> Self {
        Self::default()
    }

    /// No merges, with room for `n_merges` lines of `n_bytes` bytes in all.
    pub fn with_capacity(n_merges: usize, n_bytes: usize) -> Self {
        Self { lines: Blob::with_capacity(n_merges, n_bytes) }
    }

    /// Appends the next merge as one line, `left right`, spelled as in the vocabulary.
    ///
    /// # Errors
    /// [`TextError::TooLarge`] when ranks or offsets no longer fit 32 bits.
    pub fn push(&mut self, line: &[u8]) -> Result<u32, TextError> {
        self.lines.push(line, "bytes of merges")
    }

    /// Number of merges.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is no merge.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The merge of this rank as it was pushed.
    pub(crate) fn line(&self, rank: u32) -> Option<&[u8]> {
        self.lines.get(rank)
    }

    /// Left and right of the merge of this rank; `None` past the end and for a line that
    /// holds no pair. The separator is the first space after the first byte.
    pub fn pair(&self, rank: u32) -> Option<(&[u8], &[u8])> {
        let line = self.line(rank)?;
        let space = 1 + line.get(1..)?.iter().position(|&byte| byte == b' ')?;
        Some((&line[..space], &line[space + 1..])).filter(|(_, right)| !right.is_empty())
    }
}

/// Byte strings back to back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blob {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Blob {
    pub(crate) fn with_capacity(n_items: usize, n_bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(n_bytes), ends: Vec::with_capacity(n_items) }
    }

    /// Appends an item; its index is returned. `u32::MAX` is never an index.
    pub(crate) fn push(&mut self, item: &[u8], what: &'static str) -> Result<u32, TextError> {
        let end = self.bytes.len() as u64 + item.len() as u64;
        let limit = u64::from(u32::MAX);
        if end > limit || self.ends.len() as u64 >= limit {
            return Err(TextError::TooLarge { what, limit, got: end.max(self.ends.len() as u64) });
        }
        self.bytes.extend_from_slice(item);
        self.ends.push(end as u32);
        Ok(self.ends.len() as u32 - 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, index: u32) -> Option<&[u8]> {
        let index = index as usize;
        let end = *self.ends.get(index)? as usize;
        let start = match index {
            0 => 0,
            _ => self.ends[index - 1] as usize,
        };
        Some(&self.bytes[start..end])
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>()
    }
}
