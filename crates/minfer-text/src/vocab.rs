//! The vocabulary in use: takes a token table, keeps each token as the bytes it stands for,
//! and finds tokens by those bytes. Must not know merges or scores.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

use crate::spec::{Blob, TokenKind};
use crate::{TextError, byte_map};

/// How the vocabulary spells bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// One character per byte ([`crate::byte_map`]): words are bytes.
    ByteMap,
    /// UTF-8 with `▁` for a space and `<0xNN>` for single bytes.
    Sentencepiece,
}

impl Spelling {
    /// The byte that a token stands for, if it is one.
    pub(crate) fn single_byte(self, token: &[u8], kind: TokenKind) -> Option<u8> {
        match (self, kind) {
            (Self::ByteMap, TokenKind::Normal | TokenKind::Unused) => {
                let mut chars = std::str::from_utf8(token).ok()?.chars();
                let byte = byte_map::byte_of(chars.next()?);
                byte.filter(|_| chars.next().is_none())
            }
            (Self::ByteMap, TokenKind::UserDefined) => token.first().copied().filter(|_| token.len() == 1),
            (Self::Sentencepiece, TokenKind::Byte | TokenKind::Normal) => parse_byte_token(token),
            _ => None,
        }
    }
}

/// Stands for "no token".
pub(crate) const NONE: u32 = u32::MAX;

/// Tokens by id and by bytes.
pub(crate) struct Vocab {
    /// What each token stands for as text.
    bytes: Blob,
    kinds: Vec<TokenKind>,
    /// Ids of the tokens that text can become, by their bytes.
    by_bytes: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Token of each single byte, or [`NONE`].
    byte_ids: Box<[u32; 256]>,
    max_len: usize,
    /// Bytes that stand before a space in some token.
    before_space: Box<[bool; 256]>,
    /// What a byte without a token becomes.
    unknown: Vec<u32>,
    /// Whether no two tokens that text can become are equal, and none is misspelled.
    is_plain: bool,
}

impl Vocab {
    /// `unk` is the token for text that has none.
    pub(crate) fn new(
        spelled: &Blob,
        mut kinds: Vec<TokenKind>,
        spelling: Spelling,
        unk: Option<u32>,
    ) -> Result<Self, TextError> {
        if kinds.is_empty() {
            return Err(TextError::EmptyVocabulary);
        }
        // A table without token kinds calls its byte tokens normal.
        if spelling == Spelling::Sentencepiece && !kinds.contains(&TokenKind::Byte) {
            for (id, kind) in kinds.iter_mut().enumerate() {
                let text = spelled.get(id as u32).unwrap_or_default();
                if *kind == TokenKind::Normal && parse_byte_token(text).is_some() {
                    *kind = TokenKind::Byte;
                }
            }
        }
        let mut bytes = Blob::with_capacity(kinds.len(), 0);
        let mut misspelled = Vec::new();
        let mut text = Vec::new();
        for (id, kind) in kinds.iter_mut().enumerate() {
            text.clear();
            let token = spelled.get(id as u32).unwrap_or_default();
            match (spelling, *kind) {
                (Spelling::ByteMap, TokenKind::Normal | TokenKind::Unused) => {
                    if !byte_map::unspell(token, &mut text) {
                        misspelled.push(id as u32);
                        text.extend_from_slice(token);
                    }
                }
                (Spelling::Sentencepiece, TokenKind::Normal | TokenKind::UserDefined) => {
                    unescape_spaces(token, &mut text)
                }
                (Spelling::Sentencepiece, TokenKind::Byte) => match parse_byte_token(token) {
                    Some(byte) => text.push(byte),
                    None => {
                        *kind = TokenKind::Unused;
                        text.extend_from_slice(token);
                    }
                },
                _ => text.extend_from_slice(token),
            }
            bytes.push(&text, "bytes of vocabulary")?;
        }
        bytes.shrink_to_fit();
        let mut vocab = Self {
            by_bytes: HashTable::with_capacity(kinds.len()),
            hasher: DefaultHashBuilder::default(),
            byte_ids: Box::new([NONE; 256]),
            max_len: 0,
            before_space: Box::new([false; 256]),
            unknown: unk.into_iter().collect(),
            is_plain: misspelled.is_empty(),
            bytes,
            kinds,
        };
        vocab.index(spelling, &misspelled);
        if vocab.unknown.is_empty() {
            vocab.unknown = vocab.replacement()?;
        }
        Ok(vocab)
    }

    /// The tokens of U+FFFD, for bytes without a token where there is none for unknown text.
    fn replacement(&self) -> Result<Vec<u32>, TextError> {
        let replacement = "\u{fffd}".as_bytes();
        let mut missing = self.missing_bytes().filter(|&byte| is_in_text(byte));
        match missing.next() {
            Some(first) if !self.has_bytes(replacement) => {
                Err(TextError::BytesMissing { n_missing: 1 + missing.count(), first })
            }
            _ => Ok(replacement.iter().map(|&byte| self.byte_id(byte)).collect()),
        }
    }

    /// Bytes without a token of their own.
    pub(crate) fn missing_bytes(&self) -> impl Iterator<Item = u8> {
        (0..=255).filter(|&byte| self.byte_id(byte) == NONE)
    }

    /// Whether each of these bytes has a token.
    pub(crate) fn has_bytes(&self, bytes: &[u8]) -> bool {
        bytes.iter().all(|&byte| self.byte_id(byte) != NONE)
    }

    /// Appends the tokens of single bytes; one without is unknown.
    pub(crate) fn push_bytes(&self, bytes: &[u8], out: &mut Vec<u32>) {
        for &byte in bytes {
            match self.byte_id(byte) {
                NONE => self.push_unknown(out),
                id => out.push(id),
            }
        }
    }

    /// Appends what stands for unknown text.
    pub(crate) fn push_unknown(&self, out: &mut Vec<u32>) {
        out.extend_from_slice(&self.unknown);
    }

    /// Fills the tables that lead from bytes to ids. Of equal tokens the lowest id wins, and
    /// one spelled as ordinary text wins over a user-defined one. Control and unknown
    /// tokens, and `misspelled` ones (sorted), are never made from text.
    fn index(&mut self, spelling: Spelling, misspelled: &[u32]) {
        let mut user_defined = Vec::new();
        for id in 0..self.kinds.len() as u32 {
            match self.kinds[id as usize] {
                TokenKind::Control | TokenKind::Unknown => {}
                TokenKind::UserDefined => user_defined.push(id),
                TokenKind::Byte => {
                    if let Some(&[byte]) = self.bytes.get(id) {
                        let slot = &mut self.byte_ids[usize::from(byte)];
                        *slot = (*slot).min(id);
                    }
                }
                TokenKind::Normal | TokenKind::Unused => {
                    if misspelled.binary_search(&id).is_err() {
                        self.insert(id);
                    }
                }
            }
        }
        user_defined.into_iter().for_each(|id| self.insert(id));
        if spelling == Spelling::ByteMap {
            for byte in 0..=255u8 {
                self.byte_ids[usize::from(byte)] = self.find(&[byte]).unwrap_or(NONE);
            }
        }
    }

    /// Makes a token known by its bytes, unless an equal one is.
    fn insert(&mut self, id: u32) {
        let (bytes, hasher) = (&self.bytes, &self.hasher);
        let Some(token) = bytes.get(id).filter(|token| !token.is_empty()) else {
            return;
        };
        self.max_len = self.max_len.max(token.len());
        for pair in token.windows(2).filter(|pair| pair[1] == b' ') {
            self.before_space[usize::from(pair[0])] = true;
        }
        let entry = self.by_bytes.entry(
            hasher.hash_one(token),
            |&other| bytes.get(other) == Some(token),
            |&other| hasher.hash_one(bytes.get(other).unwrap_or_default()),
        );
        if *entry.or_insert(id).get() != id {
            self.is_plain = false;
        }
    }

    /// The token that stands for exactly these bytes as text.
    #[inline]
    pub(crate) fn find(&self, text: &[u8]) -> Option<u32> {
        if text.len() > self.max_len {
            return None;
        }
        let hash = self.hasher.hash_one(text);
        self.by_bytes.find(hash, |&id| self.bytes.get(id) == Some(text)).copied()
    }

    /// As [`Self::find`], but looks at `guess` first.
    pub(crate) fn find_near(&self, text: &[u8], guess: u32) -> Option<u32> {
        let is_guess =
            self.is_plain && self.kind(guess) == Some(TokenKind::Normal) && self.bytes.get(guess) == Some(text);
        if is_guess { Some(guess) } else { self.find(text) }
    }

    /// The lowest id of a token of any kind that stands for exactly these bytes. Slow.
    pub(crate) fn find_any(&self, text: &[u8]) -> Option<u32> {
        (0..self.len()).find(|&id| self.bytes.get(id) == Some(text))
    }

    /// Calls `word` with the words of `text`, cut where no token can reach over: before spaces, but after bytes that stand
    /// before a space in some token. Any way to put tokens together gives the same for the words as for the text.
    pub(crate) fn split_at_spaces<'a>(&self, text: &'a [u8], mut word: impl FnMut(&'a [u8])) {
        let mut start = 0;
        for at in 1..text.len() {
            if text[at] == b' ' && !self.before_space[usize::from(text[at - 1])] {
                word(&text[start..at]);
                start = at;
            }
        }
        if start < text.len() {
            word(&text[start..]);
        }
    }

    /// The token of a single byte, or [`NONE`].
    #[inline]
    pub(crate) fn byte_id(&self, byte: u8) -> u32 {
        self.byte_ids[usize::from(byte)]
    }

    /// What a token stands for; structure gives its spelling.
    pub(crate) fn bytes(&self, id: u32) -> Option<&[u8]> {
        self.bytes.get(id)
    }

    pub(crate) fn kind(&self, id: u32) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    pub(crate) fn len(&self) -> u32 {
        self.kinds.len() as u32
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.heap_bytes()
            + self.kinds.capacity() * size_of::<TokenKind>()
            + self.by_bytes.allocation_size()
            + size_of_val(&*self.byte_ids)
            + size_of_val(&*self.before_space)
            + self.unknown.capacity() * size_of::<u32>()
    }
}

/// Whether a byte occurs in text: UTF-8 never has C0, C1 and F5 to FF, and F1 and F2 begin characters from U+40000 to U+BFFFF,
/// of which none is assigned.
pub(crate) fn is_in_text(byte: u8) -> bool {
    !matches!(byte, 0xc0 | 0xc1 | 0xf1 | 0xf2 | 0xf5..)
}

/// The byte that `<0xNN>` spells.
fn parse_byte_token(token: &[u8]) -> Option<u8> {
    match token {
        [b'<', b'0', b'x', high, low, b'>'] => {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            Some((digit(*high)? * 16 + digit(*low)?) as u8)
        }
        _ => None,
    }
}

/// `▁`, which spells a space.
pub(crate) const ESCAPED_SPACE: &[u8] = "\u{2581}".as_bytes();

/// Appends `text` with each `▁` turned into a space.
pub(crate) fn unescape_spaces(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some((&first, rest)) = text.split_first() {
        if let Some(rest) = text.strip_prefix(ESCAPED_SPACE) {
            out.push(b' ');
            text = rest;
        } else {
            out.push(first);
            text = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_tokens_are_parsed_strictly() {
        assert_eq!(parse_byte_token(b"<0x0A>"), Some(10));
        assert_eq!(parse_byte_token(b"<0xff>"), Some(255));
        for bad in ["<0x-1>", "<0xZZ>", "<0x1>", "<0x100>", "", "<0x+1>"] {
            assert_eq!(parse_byte_token(bad.as_bytes()), None, "{bad}");
        }
    }
}
