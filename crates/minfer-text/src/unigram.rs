//! SentencePiece Unigram: takes text with plain spaces, gives the ids of its most likely cut into tokens. Must not know
//! special tokens.
//!
//! The cut with the best sum of scores is found in one walk over the text (Viterbi): for each end of a token the best way
//! there is kept. Memory: 16 bytes per byte of normalised text, while it is encoded.

use crate::TextError;
use crate::charsmap::CharsMap;
use crate::prefix::PrefixIndex;
use crate::spec::TokenKind;
use crate::utf8::first_char;
use crate::vocab::{NONE, Vocab};

/// How much worse than the worst token an unknown character is (SentencePiece's `kUnkPenalty`).
const UNKNOWN_PENALTY: f64 = 10.0;
/// A longer text is cut, so that positions fit 32 bits.
const MAX_TEXT_BYTES: usize = 1 << 28;

pub(crate) struct Unigram {
    tokens: PrefixIndex,
    scores: Vec<f32>,
    /// Score of a character that is no token.
    unknown_score: f64,
    charsmap: CharsMap,
    merge_spaces: bool,
}

/// The best way to a position.
#[derive(Clone, Copy)]
struct Best {
    score: f64,
    /// Last token, or [`NONE`] for an unknown character.
    id: u32,
    /// Where that token starts.
    start: u32,
}

impl Unigram {
    pub(crate) fn new(vocab: &Vocab, scores: &[f32], charsmap: &[u8], merge_spaces: bool) -> Result<Self, TextError> {
        let n_vocab = vocab.len() as usize;
        if scores.len() < n_vocab {
            return Err(TextError::ScoresMissing { expected: n_vocab, got: scores.len() });
        }
        let kind = |id: &u32| vocab.kind(*id);
        let normal = (0..vocab.len()).filter(|id| kind(id) == Some(TokenKind::Normal));
        let worst = normal.map(|id| f64::from(scores[id as usize])).filter(|score| score.is_finite());
        let text_tokens = (0..vocab.len()).filter(|id| matches!(kind(id), Some(TokenKind::Normal | TokenKind::Unused)));
        Ok(Self {
            tokens: PrefixIndex::new(vocab, text_tokens),
            scores: scores[..n_vocab].to_vec(),
            unknown_score: worst.fold(0.0, f64::min) - UNKNOWN_PENALTY,
            charsmap: CharsMap::new(charsmap)?,
            merge_spaces,
        })
    }

    /// Appends the ids of normalised text.
    pub(crate) fn encode(&self, vocab: &Vocab, text: &[u8], out: &mut Vec<u32>) {
        for chunk in text.chunks(MAX_TEXT_BYTES) {
            let best = self.best_ways(vocab, chunk);
            emit(vocab, chunk, &best, out);
        }
    }

    /// Replaces characters and, where the model wants it, merges spaces; `prefix` puts a space in front.
    pub(crate) fn normalise(&self, text: &[u8], prefix: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len() + 1);
        out.extend(prefix.then_some(b' '));
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, len) = self.charsmap.replace(rest).unwrap_or_else(|| {
                let len = first_char(rest).1;
                (&rest[..len], len)
            });
            for &byte in piece {
                let is_double = byte == b' ' && self.merge_spaces && out.last().is_none_or(|&last| last == b' ');
                if !is_double {
                    out.push(byte);
                }
            }
            rest = &rest[len..];
        }
        if self.merge_spaces && out.last() == Some(&b' ') {
            out.pop();
        }
        out
    }

    fn best_ways(&self, vocab: &Vocab, text: &[u8]) -> Vec<Best> {
        let nowhere = Best { score: f64::NEG_INFINITY, id: NONE, start: 0 };
        let mut best = vec![nowhere; text.len() + 1];
        best[0].score = 0.0;
        let mut start = 0;
        while start < text.len() {
            let rest = &text[start..];
            let char_len = first_char(rest).1;
            let score = best[start].score;
            let mut has_character = false;
            let mut offer = |id: u32, len: usize, score: f64| {
                let end = &mut best[start + len];
                if score > end.score {
                    *end = Best { score, id, start: start as u32 };
                }
            };
            self.tokens.each(vocab, rest, |id, len| {
                has_character |= len == char_len;
                // Tokens that end inside a character lead nowhere: no walk starts there.
                offer(id, len, score + f64::from(self.scores[id as usize]));
            });
            if !has_character {
                offer(NONE, char_len, score + self.unknown_score);
            }
            start += char_len;
        }
        best
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.tokens.heap_bytes() + self.scores.capacity() * size_of::<f32>() + self.charsmap.heap_bytes()
    }
}

/// Walks the best way back. Unknown characters become byte tokens; without those one unknown token for each run of them.
fn emit(vocab: &Vocab, text: &[u8], best: &[Best], out: &mut Vec<u32>) {
    let mut cuts = Vec::new();
    let mut end = text.len();
    while end > 0 {
        let Best { id, start, .. } = best[end];
        cuts.push((id, start as usize..end));
        end = start as usize;
    }
    let mut in_unknown = false;
    for (id, piece) in cuts.into_iter().rev() {
        if id != NONE {
            out.push(id);
            in_unknown = false;
        } else if vocab.has_bytes(&text[piece.clone()]) {
            vocab.push_bytes(&text[piece], out);
            in_unknown = false;
        } else if !std::mem::replace(&mut in_unknown, true) {
            vocab.push_unknown(out);
        }
    }
}
