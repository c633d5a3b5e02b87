//! Byte pair merges by rank: takes the bytes of one word, gives ids. Must not know how
//! words are found or what they mean.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::spec::{Merges, TokenKind};
use crate::vocab::{NONE, Spelling, Vocab, unescape_spaces};
use crate::{TextError, byte_map};

/// A longer word is cut, so that positions fit 32 bits.
const MAX_WORD_BYTES: usize = 1 << 30;
/// Of a merge in a message; the longest tokens of real vocabularies are runs of some hundred spaces.
const MAX_SHOWN_CHARS: usize = 64;

/// The merges by the ids of their parts: 12 bytes each and a table of ranks.
pub(crate) struct Bpe {
    /// Left id, right id, merged id; the index is the rank.
    merges: Vec<[u32; 3]>,
    by_pair: HashTable<u32>,
    hasher: DefaultHashBuilder,
    ignore_merges: bool,
    spelling: Spelling,
}

/// Memory that is used again for every word.
#[derive(Default)]
pub(crate) struct Scratch {
    symbols: Vec<Symbol>,
    /// Candidates, best first: rank, then position of the left symbol.
    queue: BinaryHeap<Reverse<(u32, u32)>>,
}

/// A piece of the word in a list that is linked both ways; its index is where it starts.
#[derive(Clone, Copy)]
struct Symbol {
    /// Token of this piece, or [`NONE`].
    id: u32,
    prev: u32,
    next: u32,
}

impl Bpe {
    /// Merges of tokens that text never becomes (control tokens, say) can never apply and are left out.
    ///
    /// # Errors
    /// A merge with a part or result that is no token: text would be cut otherwise than the model was trained with.
    pub(crate) fn new(
        vocab: &Vocab,
        merges: &Merges,
        ignore_merges: bool,
        spelling: Spelling,
    ) -> Result<Self, TextError> {
        let mut left_out = Vec::new();
        let mut pairs = Vec::with_capacity(merges.len());
        let mut text = Vec::new();
        // Most vocabularies list the results of their merges in rank order.
        let mut guess = 0;
        for rank in 0..merges.len() as u32 {
            match ids_in_text(vocab, merges.pair(rank), spelling, guess, &mut text) {
                Some(ids) => {
                    pairs.push(ids);
                    guess = ids[2].saturating_add(1);
                }
                None => left_out.push(rank),
            }
        }
        if !left_out.is_empty() {
            refuse_unknown(vocab, merges, &left_out, spelling)?;
        }
        pairs.shrink_to_fit();
        let hasher = DefaultHashBuilder::default();
        let mut by_pair = HashTable::with_capacity(pairs.len());
        for (rank, &[left, right, _]) in pairs.iter().enumerate() {
            // Of equal pairs the first has the best rank.
            by_pair
                .entry(
                    hasher.hash_one(pair_key(left, right)),
                    |&other: &u32| pairs[other as usize][..2] == [left, right],
                    |&other| {
                        let [left, right, _] = pairs[other as usize];
                        hasher.hash_one(pair_key(left, right))
                    },
                )
                .or_insert(rank as u32);
        }
        Ok(Self { merges: pairs, by_pair, hasher, ignore_merges, spelling })
    }

    /// Appends the ids of one word.
    pub(crate) fn encode_word(&self, vocab: &Vocab, word: &[u8], scratch: &mut Scratch, out: &mut Vec<u32>) {
        if self.ignore_merges
            && let Some(id) = vocab.find(word)
        {
            return out.push(id);
        }
        for chunk in word.chunks(MAX_WORD_BYTES) {
            self.merge(vocab, chunk, scratch);
            let mut at = 0;
            while let Some(&Symbol { id, next, .. }) = scratch.symbols.get(at as usize) {
                match id {
                    NONE => vocab.push_bytes(&chunk[at as usize..chunk.len().min(next as usize)], out),
                    id => out.push(id),
                }
                at = next;
            }
        }
    }

    /// Leaves the merged word in `scratch.symbols`, as a list from index 0.
    fn merge(&self, vocab: &Vocab, word: &[u8], scratch: &mut Scratch) {
        let Scratch { symbols, queue } = scratch;
        symbols.clear();
        queue.clear();
        match self.spelling {
            Spelling::ByteMap => list_bytes(vocab, word, symbols),
            Spelling::Sentencepiece => list_characters(vocab, word, symbols),
        }
        let mut at = 0;
        while let Some(&Symbol { id: left, next, .. }) = symbols.get(at as usize)
            && let Some(right) = symbols.get(next as usize)
        {
            queue.extend(self.rank(left, right.id).map(|rank| Reverse((rank, at))));
            at = next;
        }
        while let Some(Reverse((rank, at))) = queue.pop() {
            let [left, right, merged] = self.merges[rank as usize];
            // A candidate is stale when one of its symbols has been merged since.
            let Symbol { id, prev, next } = symbols[at as usize];
            if id != left || next == NONE || symbols[next as usize].id != right {
                continue;
            }
            let after = symbols[next as usize].next;
            symbols[next as usize].id = NONE;
            symbols[at as usize].id = merged;
            symbols[at as usize].next = after;
            if after != NONE {
                symbols[after as usize].prev = at;
                let rank = self.rank(merged, symbols[after as usize].id);
                queue.extend(rank.map(|rank| Reverse((rank, at))));
            }
            if prev != NONE {
                let rank = self.rank(symbols[prev as usize].id, merged);
                queue.extend(rank.map(|rank| Reverse((rank, prev))));
            }
        }
    }

    #[inline]
    fn rank(&self, left: u32, right: u32) -> Option<u32> {
        let hash = self.hasher.hash_one(pair_key(left, right));
        self.by_pair.find(hash, |&rank| self.merges[rank as usize][..2] == [left, right]).copied()
    }

    /// Number of merges in use.
    pub(crate) fn n_merges(&self) -> usize {
        self.merges.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.merges.capacity() * size_of::<[u32; 3]>() + self.by_pair.allocation_size()
    }
}

/// The tokens of a merge's parts and of its result, if text can become all three. `text` is memory to be used again.
fn ids_in_text(
    vocab: &Vocab,
    pair: Option<(&[u8], &[u8])>,
    spelling: Spelling,
    guess: u32,
    text: &mut Vec<u8>,
) -> Option<[u32; 3]> {
    let (left, right) = pair?;
    text.clear();
    unspell(left, spelling, text).then_some(())?;
    let middle = text.len();
    unspell(right, spelling, text).then_some(())?;
    Some([vocab.find(&text[..middle])?, vocab.find(&text[middle..])?, vocab.find_near(text, guess)?])
}

/// Refuses the first of these merges that is no pair, or has a part or result that is no token of any kind, however it is
/// spelled.
fn refuse_unknown(vocab: &Vocab, merges: &Merges, ranks: &[u32], spelling: Spelling) -> Result<(), TextError> {
    let tokens: HashSet<&[u8]> = (0..vocab.len()).filter_map(|id| vocab.bytes(id)).collect();
    let mut text = Vec::new();
    for &rank in ranks {
        let line = || shown(merges.line(rank).unwrap_or_default());
        let Some((left, right)) = merges.pair(rank) else {
            return Err(TextError::MergeWithoutPair { rank, line: line() });
        };
        for piece in [left, right, &[left, right].concat()] {
            text.clear();
            let is_token = tokens.contains(piece)
                || unspell(piece, spelling, &mut text) && tokens.contains(&text[..])
                || spelling.single_byte(piece, TokenKind::Byte).is_some_and(|byte| tokens.contains(&[byte][..]));
            if !is_token {
                return Err(TextError::MergeOfNoToken { rank, line: line(), piece: shown(piece) });
            }
        }
    }
    Ok(())
}

/// Text of a file for a message: its start.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(MAX_SHOWN_CHARS).collect()
}

fn unspell(text: &[u8], spelling: Spelling, out: &mut Vec<u8>) -> bool {
    match spelling {
        Spelling::ByteMap => byte_map::unspell(text, out),
        Spelling::Sentencepiece => {
            unescape_spaces(text, out);
            true
        }
    }
}

fn list_bytes(vocab: &Vocab, word: &[u8], symbols: &mut Vec<Symbol>) {
    symbols.extend((0..).zip(word).map(|(at, &byte)| Symbol {
        id: vocab.byte_id(byte),
        prev: if at == 0 { NONE } else { at - 1 },
        next: if at as usize + 1 == word.len() { NONE } else { at + 1 },
    }));
}

/// One symbol per character; the places of its other bytes are left out of the list. Bytes outside UTF-8 stand alone.
fn list_characters(vocab: &Vocab, word: &[u8], symbols: &mut Vec<Symbol>) {
    symbols.resize(word.len(), Symbol { id: NONE, prev: NONE, next: NONE });
    let (mut start, mut prev) = (0, NONE);
    let mut push = |len: usize, may_be_token: bool| {
        let end = start + len;
        let id = may_be_token.then(|| vocab.find(&word[start..end])).flatten().unwrap_or(NONE);
        let next = if end == word.len() { NONE } else { end as u32 };
        symbols[start] = Symbol { id, prev, next };
        prev = start as u32;
        start = end;
    };
    for chunk in word.utf8_chunks() {
        chunk.valid().chars().for_each(|c| push(c.len_utf8(), true));
        chunk.invalid().iter().for_each(|_| push(1, false));
    }
}

fn pair_key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}
