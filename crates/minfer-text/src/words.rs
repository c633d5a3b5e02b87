//! Words that come again: takes a word and what encodes it, gives its ids, by a copy where the word has been seen. Must not
//! know how words are encoded.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Longer words are not remembered.
const MAX_WORD_BYTES: usize = 15;
/// When so many words are known, all are forgotten: 24 bytes each.
const MAX_WORDS: usize = 1 << 15;

/// The words of one text, and where in its ids they are.
#[derive(Default)]
pub(crate) struct Words {
    known: HashTable<Entry>,
    hasher: DefaultHashBuilder,
}

struct Entry {
    /// The word, zeros, and its length.
    key: [u8; MAX_WORD_BYTES + 1],
    start: u32,
    /// A word has at most a few ids per byte.
    n_ids: u32,
}

impl Words {
    /// Appends the ids of a word; `encode` does so for one that is not known. `out` only ever grows.
    pub(crate) fn encode(&mut self, word: &[u8], out: &mut Vec<u32>, encode: impl FnOnce(&mut Vec<u32>)) {
        if word.len() > MAX_WORD_BYTES {
            return encode(out);
        }
        let mut key = [0; MAX_WORD_BYTES + 1];
        key[..word.len()].copy_from_slice(word);
        key[MAX_WORD_BYTES] = word.len() as u8;
        let hash = self.hasher.hash_one(u128::from_le_bytes(key));
        if let Some(&Entry { start, n_ids, .. }) = self.known.find(hash, |entry| entry.key == key) {
            return out.extend_from_within(start as usize..start as usize + n_ids as usize);
        }
        let start = out.len();
        encode(out);
        if let (Ok(start), Ok(n_ids)) = (u32::try_from(start), u32::try_from(out.len() - start)) {
            if self.known.len() == MAX_WORDS {
                self.known.clear();
            }
            let Self { known, hasher } = self;
            let rehash = |entry: &Entry| hasher.hash_one(u128::from_le_bytes(entry.key));
            known.insert_unique(hash, Entry { key, start, n_ids }, rehash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_encoded_once_unless_it_is_long() {
        let mut words = Words::default();
        let mut out = Vec::new();
        let mut n_encoded = 0;
        for word in [&b"a"[..], b"b", b"a", b"a\0", b"a", b"a long word of 20 by", b"a long word of 20 by"] {
            words.encode(word, &mut out, |out| {
                n_encoded += 1;
                out.extend(word.iter().map(|&byte| u32::from(byte)));
            });
        }
        assert_eq!(n_encoded, 5);
        let text = b"abaa\0aa long word of 20 bya long word of 20 by";
        assert_eq!(out, text.map(u32::from));
    }

    #[test]
    fn words_are_forgotten_when_there_are_too_many() {
        let mut words = Words::default();
        let mut out = Vec::new();
        for n in 0..3 * MAX_WORDS as u32 {
            words.encode(&n.to_le_bytes(), &mut out, |out| out.push(n));
        }
        assert!(words.known.len() <= MAX_WORDS);
        assert!(out.iter().copied().eq(0..3 * MAX_WORDS as u32));
    }
}
