//! SentencePiece BPE: takes text with plain spaces, gives ids; the pair whose union has the
//! best score merges first, the leftmost of equals. Must not know special tokens.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::TextError;
use crate::vocab::{NONE, Vocab};

/// A longer text is cut, so that positions fit 32 bits.
const MAX_TEXT_BYTES: usize = 1 << 30;

pub(crate) struct Spm {
    /// Per token, turned so that a better score is a smaller number.
    costs: Vec<u32>,
}

/// A piece of the text in a list that is linked both ways.
#[derive(Clone, Copy)]
struct Symbol {
    /// Token of this piece, or [`NONE`].
    id: u32,
    start: u32,
    /// 0 once it has been merged into the symbol before it.
    len: u32,
    prev: u32,
    next: u32,
}

/// A pair that may merge.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Candidate {
    cost: u32,
    /// Position of the left symbol.
    left: u32,
    /// Length in bytes of the union: tells a candidate that is no longer true.
    len: u32,
    id: u32,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.cost, self.left).cmp(&(other.cost, other.left))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Spm {
    pub(crate) fn new(vocab: &Vocab, scores: &[f32]) -> Result<Self, TextError> {
        let n_vocab = vocab.len() as usize;
        if scores.len() < n_vocab {
            return Err(TextError::ScoresMissing { expected: n_vocab, got: scores.len() });
        }
        let costs = scores[..n_vocab].iter().map(|&score| cost(score)).collect();
        Ok(Self { costs })
    }

    /// Appends the ids of `text`.
    pub(crate) fn encode(&self, vocab: &Vocab, text: &[u8], out: &mut Vec<u32>) {
        for chunk in text.chunks(MAX_TEXT_BYTES) {
            let mut symbols = symbols(vocab, chunk);
            self.merge(vocab, chunk, &mut symbols);
            self.emit(vocab, chunk, &symbols, out);
        }
    }

    fn merge(&self, vocab: &Vocab, text: &[u8], symbols: &mut [Symbol]) {
        let mut queue = BinaryHeap::new();
        let candidate = |symbols: &[Symbol], at: u32| {
            let left = symbols.get(at as usize)?;
            let right = symbols.get(left.next as usize)?;
            let (start, len) = (left.start as usize, left.len + right.len);
            let id = vocab.find(&text[start..start + len as usize])?;
            let cost = self.costs[id as usize];
            Some(Reverse(Candidate { cost, left: at, len, id }))
        };
        for at in 0..symbols.len() as u32 {
            queue.extend(candidate(symbols, at));
        }
        while let Some(Reverse(Candidate { left, len, id, .. })) = queue.pop() {
            let Symbol { len: left_len, next, prev, .. } = symbols[left as usize];
            let Some(&right) = symbols.get(next as usize) else {
                continue;
            };
            if left_len == 0 || left_len + right.len != len {
                continue;
            }
            symbols[next as usize].len = 0;
            let symbol = &mut symbols[left as usize];
            (symbol.id, symbol.len, symbol.next) = (id, len, right.next);
            if let Some(after) = symbols.get_mut(right.next as usize) {
                after.prev = left;
            }
            queue.extend(candidate(symbols, prev));
            queue.extend(candidate(symbols, left));
        }
    }

    /// Pieces without a token become byte tokens; without those one unknown token for
    /// each run of them.
    fn emit(&self, vocab: &Vocab, text: &[u8], symbols: &[Symbol], out: &mut Vec<u32>) {
        let mut in_unknown = false;
        let mut at = 0;
        while let Some(symbol) = symbols.get(at as usize) {
            at = symbol.next;
            if symbol.id != NONE {
                out.push(symbol.id);
                in_unknown = false;
                continue;
            }
            let start = symbol.start as usize;
            let piece = &text[start..start + symbol.len as usize];
            if vocab.has_bytes(piece) {
                vocab.push_bytes(piece, out);
                in_unknown = false;
            } else if !std::mem::replace(&mut in_unknown, true) {
                vocab.push_unknown(out);
            }
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.costs.capacity() * size_of::<u32>()
    }
}

/// One symbol per character; bytes outside UTF-8 stand alone.
fn symbols(vocab: &Vocab, text: &[u8]) -> Vec<Symbol> {
    let mut symbols = Vec::with_capacity(text.len());
    let mut start = 0;
    let mut push = |len: usize, may_be_token: bool| {
        let at = symbols.len() as u32;
        let piece = &text[start as usize..start as usize + len];
        symbols.push(Symbol {
            id: may_be_token.then(|| vocab.find(piece)).flatten().unwrap_or(NONE),
            start,
            len: len as u32,
            prev: at.wrapping_sub(1),
            next: at + 1,
        });
        start += len as u32;
    };
    for chunk in text.utf8_chunks() {
        chunk.valid().chars().for_each(|c| push(c.len_utf8(), true));
        chunk.invalid().iter().for_each(|_| push(1, false));
    }
    if let Some(last) = symbols.last_mut() {
        last.next = NONE;
    }
    symbols
}

/// Maps a score to an integer that sorts the other way round; NaN is the worst.
fn cost(score: f32) -> u32 {
    if score.is_nan() {
        return u32::MAX;
    }
    // `+ 0.0` makes the two zeros one.
    let bits = (score + 0.0).to_bits();
    if bits >> 31 == 1 { bits } else { !bits & 0x7fff_ffff }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_orders_scores_downwards() {
        let scores = [f32::INFINITY, 3.0, 0.5, 0.0, -0.5, -3.0, f32::NEG_INFINITY];
        assert!(scores.is_sorted_by(|a, b| cost(*a) < cost(*b)));
        assert_eq!(cost(-0.0), cost(0.0));
        assert!(cost(f32::NAN) > cost(f32::NEG_INFINITY));
    }
}
