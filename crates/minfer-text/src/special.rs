//! Tokens that are cut out of the text before it is tokenized: takes the vocabulary, finds
//! the longest such token at a position. Must not know the tokenizer algorithm.

use crate::spec::TokenKind;
use crate::vocab::Vocab;

/// A longer text is never recognised; bounds the work per position for any vocabulary.
const MAX_LEN_BYTES: usize = 256;

/// Control, unknown and user-defined tokens, sorted by their text.
pub(crate) struct SpecialIndex {
    /// Ids; equal texts are there once, with their lowest id.
    sorted: Vec<u32>,
    /// `starts[b]..starts[b + 1]` are the positions in `sorted` of the texts that begin with `b`.
    starts: Box<[u32; 257]>,
}

impl SpecialIndex {
    pub(crate) fn new(vocab: &Vocab) -> Self {
        let text = |id: u32| vocab.bytes(id).unwrap_or_default();
        let mut sorted: Vec<u32> = (0..vocab.len())
            .filter(|&id| {
                matches!(vocab.kind(id), Some(TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined))
                    && (1..=MAX_LEN_BYTES).contains(&text(id).len())
            })
            .collect();
        sorted.sort_by(|&a, &b| text(a).cmp(text(b)).then(a.cmp(&b)));
        sorted.dedup_by(|a, b| text(*a) == text(*b));
        sorted.shrink_to_fit();
        let mut starts = Box::new([0; 257]);
        for byte in 0..=256usize {
            let below = |&id: &u32| usize::from(text(id)[0]) < byte;
            starts[byte] = sorted.partition_point(below) as u32;
        }
        Self { sorted, starts }
    }

    /// Whether some token begins with this byte.
    #[inline]
    pub(crate) fn may_start(&self, byte: u8) -> bool {
        let byte = usize::from(byte);
        self.starts[byte] < self.starts[byte + 1]
    }

    /// The longest token that `text` begins with, and its length. User-defined tokens are
    /// always eligible, the others only up to `control_limit` bytes.
    pub(crate) fn longest(&self, vocab: &Vocab, text: &[u8], control_limit: usize) -> Option<(u32, usize)> {
        let first = usize::from(*text.first()?);
        let mut lo = self.starts[first] as usize;
        let mut hi = self.starts[first + 1] as usize;
        let bytes = |id: u32| vocab.bytes(id).unwrap_or_default();
        let mut best = None;
        // All of `sorted[lo..hi]` agree with `text` in the first `depth` bytes.
        let mut depth = 1;
        while lo < hi {
            let id = self.sorted[lo];
            if bytes(id).len() == depth {
                let user_defined = vocab.kind(id) == Some(TokenKind::UserDefined);
                if user_defined || depth <= control_limit {
                    best = Some((id, depth));
                }
                lo += 1;
            }
            let Some(&next) = text.get(depth) else { break };
            let range = &self.sorted[lo..hi];
            hi = lo + range.partition_point(|&id| bytes(id)[depth] <= next);
            lo += range.partition_point(|&id| bytes(id)[depth] < next);
            depth += 1;
        }
        best
    }

    /// The control and unknown tokens among them, to look for at the edges of a text.
    pub(crate) fn control_edges<'a>(&'a self, vocab: &'a Vocab) -> ControlEdges<'a> {
        let is_control = |&id: &u32| vocab.kind(id) != Some(TokenKind::UserDefined);
        let ids = self.sorted.iter().copied().filter(is_control);
        let texts: Vec<&[u8]> = ids.filter_map(|id| vocab.bytes(id)).collect();
        let mut inner = [false; 256];
        texts.iter().flat_map(|text| &text[1..]).for_each(|&byte| inner[usize::from(byte)] = true);
        ControlEdges { index: self, vocab, texts, inner }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.sorted.capacity() * size_of::<u32>() + size_of_val(&*self.starts)
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
