//! Tokens that a text begins with: takes ids and the vocabulary, finds them shortest first. Must not know what they are for.

use crate::vocab::Vocab;

/// Tokens sorted by their bytes.
pub(crate) struct PrefixIndex {
    /// Ids; equal texts are there once, with their lowest id.
    sorted: Vec<u32>,
    /// `starts[b]..starts[b + 1]` are the positions in `sorted` of the texts that begin with `b`.
    starts: Box<[u32; 257]>,
}

impl PrefixIndex {
    /// Of tokens that stand for at least one byte; others are left out.
    pub(crate) fn new(vocab: &Vocab, ids: impl Iterator<Item = u32>) -> Self {
        let text = |id: u32| vocab.bytes(id).unwrap_or_default();
        let mut sorted: Vec<u32> = ids.filter(|&id| !text(id).is_empty()).collect();
        sorted.sort_unstable_by(|&a, &b| text(a).cmp(text(b)).then(a.cmp(&b)));
        sorted.dedup_by(|a, b| text(*a) == text(*b));
        sorted.shrink_to_fit();
        let mut starts = Box::new([0; 257]);
        for byte in 0..=256usize {
            let below = |&id: &u32| usize::from(text(id)[0]) < byte;
            starts[byte] = sorted.partition_point(below) as u32;
        }
        Self { sorted, starts }
    }

    /// All ids, sorted by their bytes.
    pub(crate) fn ids(&self) -> &[u32] {
        &self.sorted
    }

    /// Whether some token begins with this byte.
    #[inline]
    pub(crate) fn may_start(&self, byte: u8) -> bool {
        let byte = usize::from(byte);
        self.starts[byte] < self.starts[byte + 1]
    }

    /// Shows every token that `text` begins with and its length, shortest first.
    pub(crate) fn each(&self, vocab: &Vocab, text: &[u8], mut see: impl FnMut(u32, usize)) {
        let Some(first) = text.first().map(|&first| usize::from(first)) else {
            return;
        };
        let mut lo = self.starts[first] as usize;
        let mut hi = self.starts[first + 1] as usize;
        let bytes = |id: u32| vocab.bytes(id).unwrap_or_default();
        // All of `sorted[lo..hi]` agree with `text` in the first `depth` bytes.
        let mut depth = 1;
        while lo < hi {
            let id = self.sorted[lo];
            if bytes(id).len() == depth {
                see(id, depth);
                lo += 1;
            }
            let Some(&next) = text.get(depth) else { break };
            let range = &self.sorted[lo..hi];
            hi = lo + range.partition_point(|&id| bytes(id)[depth] <= next);
            lo += range.partition_point(|&id| bytes(id)[depth] < next);
            depth += 1;
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.sorted.capacity() * size_of::<u32>() + size_of_val(&*self.starts)
    }
}
