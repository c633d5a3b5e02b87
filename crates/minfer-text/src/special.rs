//! Tokens that are cut out of the text before it is tokenized: takes the vocabulary, finds
//! the longest such token at a position. Must not know the tokenizer algorithm.

use crate::prefix::PrefixIndex;
use crate::spec::TokenKind;
use crate::vocab::Vocab;

/// A longer text is never recognised; bounds the work per position for any vocabulary.
const MAX_LEN_BYTES: usize = 256;

/// Control, unknown and user-defined tokens, sorted by their text.
pub(crate) struct SpecialIndex {
    tokens: PrefixIndex,
}

impl SpecialIndex {
    pub(crate) fn new(vocab: &Vocab) -> Self {
        let is_special = |&id: &u32| {
            matches!(vocab.kind(id), Some(TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined))
                && vocab.bytes(id).is_some_and(|text| text.len() <= MAX_LEN_BYTES)
        };
        Self { tokens: PrefixIndex::new(vocab, (0..vocab.len()).filter(is_special)) }
    }

    /// Whether some token begins with this byte.
    #[inline]
    pub(crate) fn may_start(&self, byte: u8) -> bool {
        self.tokens.may_start(byte)
    }

    /// The longest token that `text` begins with, and its length. User-defined tokens are
    /// always eligible, the others only up to `control_limit` bytes.
    pub(crate) fn longest(&self, vocab: &Vocab, text: &[u8], control_limit: usize) -> Option<(u32, usize)> {
        let mut best = None;
        self.tokens.each(vocab, text, |id, len| {
            if len <= control_limit || vocab.kind(id) == Some(TokenKind::UserDefined) {
                best = Some((id, len));
            }
        });
        best
    }

    /// The control and unknown tokens among them, to look for at the edges of a text.
    pub(crate) fn control_edges<'a>(&'a self, vocab: &'a Vocab) -> ControlEdges<'a> {
        let is_control = |&id: &u32| vocab.kind(id) != Some(TokenKind::UserDefined);
        let ids = self.tokens.ids().iter().copied().filter(is_control);
        let texts: Vec<&[u8]> = ids.filter_map(|id| vocab.bytes(id)).collect();
        let mut inner = [false; 256];
        texts.iter().flat_map(|text| &text[1..]).for_each(|&byte| inner[usize::from(byte)] = true);
        ControlEdges { index: self, vocab, texts, inner }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.tokens.heap_bytes()
    }
}

/// Finds control tokens that lie in a text or reach over one of its ends.
pub(crate) struct ControlEdges<'a> {
    index: &'a SpecialIndex,
    vocab: &'a Vocab,
    /// Of the control and unknown tokens, sorted.
    texts: Vec<&'a [u8]>,
    /// Whether a byte is in some text, not as its first.
    inner: [bool; 256],
}

impl ControlEdges<'_> {
    /// Whether `rest`, the rest of a text, begins with a control token or is the begin of one.
    pub(crate) fn start_at(&self, rest: &[u8]) -> bool {
        if !rest.first().is_some_and(|&first| self.index.may_start(first)) {
            return false;
        }
        let found = self.index.longest(self.vocab, rest, usize::MAX);
        let is_control = |id| self.vocab.kind(id) != Some(TokenKind::UserDefined);
        found.is_some_and(|(id, _)| is_control(id))
            || rest.len() < MAX_LEN_BYTES && {
                let after = self.texts.partition_point(|&text| text < rest);
                self.texts.get(after).is_some_and(|text| text.starts_with(rest))
            }
    }

    /// Whether `text` begins with the end of a control token, at least one byte short of all of it.
    pub(crate) fn end_in(&self, text: &[u8]) -> bool {
        let ends_in = |token: &[u8]| (1..token.len()).any(|at| text.starts_with(&token[at..]));
        text.first().is_some_and(|&first| self.inner[usize::from(first)]) && self.texts.iter().any(|text| ends_in(text))
    }
}
