//! Time, compressed: takes the buffers of a problem, gives the sections between the bounds of their spans and a tree over
//! these that answers "the highest value in a range". Must not know what the values mean.

use std::ops::Range;

use crate::Buffer;

/// The bounds of all spans, ascending and distinct. Section `s` is `[bounds[s], bounds[s + 1])`.
pub(crate) struct Sections {
    bounds: Vec<u64>,
}

impl Sections {
    pub(crate) fn new<'a>(buffers: impl Iterator<Item = &'a Buffer>) -> Self {
        let mut bounds: Vec<u64> = buffers.flat_map(Buffer::spans).flat_map(|s| [s.start, s.end]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        Self { bounds }
    }

    pub(crate) fn len(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }

    /// The half-open ranges of sections that the buffer lives in, one per span; it must be among those given to `new`.
    pub(crate) fn of(&self, b: &Buffer) -> impl Iterator<Item = Range<usize>> {
        let at = |step| self.bounds.partition_point(|&x| x < step);
        b.spans().map(move |span| at(span.start)..at(span.end))
    }
}

/// A segment tree over sections: raise a range to at least a value, ask for the maximum of a range. `O(log n)` each.
pub(crate) struct MaxTree {
    len: usize,
    max: Vec<u64>, // of the whole subtree
    tag: Vec<u64>, // all leaves below are at least this
}

impl MaxTree {
    pub(crate) fn new(len: usize) -> Self {
        Self { len, max: vec![0; 2 * len.max(1)], tag: vec![0; 2 * len.max(1)] }
    }

    /// Raises each of the sections to at least `value`.
    pub(crate) fn raise(&mut self, sections: &Range<usize>, value: u64) {
        let (from, to) = (sections.start, sections.end);
        let (mut l, mut r) = (from + self.len, to + self.len);
        while l < r {
            if l & 1 == 1 {
                self.set(l, value);
                l += 1;
            }
            if r & 1 == 1 {
                r -= 1;
                self.set(r, value);
            }
            l >>= 1;
            r >>= 1;
        }
        self.refresh((from + self.len) >> 1);
        self.refresh((to + self.len - 1) >> 1);
    }

    /// The maximum over the sections, 0 if there are none.
    pub(crate) fn max(&self, sections: &Range<usize>) -> u64 {
        let (mut l, mut r, mut max) = (sections.start + self.len, sections.end + self.len, 0);
        if l >= r {
            return 0;
        }
        for mut node in [l >> 1, (r - 1) >> 1] {
            while node > 0 {
                max = max.max(self.tag[node]);
                node >>= 1;
            }
        }
        while l < r {
            if l & 1 == 1 {
                max = max.max(self.max[l]);
                l += 1;
            }
            if r & 1 == 1 {
                r -= 1;
                max = max.max(self.max[r]);
            }
            l >>= 1;
            r >>= 1;
        }
        max
    }

    fn set(&mut self, node: usize, value: u64) {
        self.max[node] = self.max[node].max(value);
        self.tag[node] = self.tag[node].max(value);
    }

    fn refresh(&mut self, mut node: usize) {
        while node > 0 {
            self.max[node] = self.max[2 * node].max(self.max[2 * node + 1]).max(self.tag[node]);
            node >>= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_tree_agrees_with_an_array() {
        for len in 1..20usize {
            let (mut tree, mut array) = (MaxTree::new(len), vec![0u64; len]);
            let mut x = 1u64;
            for _ in 0..200 {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let from = (x >> 33) as usize % len;
                let to = from + 1 + (x >> 45) as usize % (len - from);
                let value = array[from..to].iter().max().unwrap() + (x >> 60);
                tree.raise(&(from..to), value);
                array[from..to].fill(value);
                for a in 0..len {
                    for b in a + 1..=len {
                        assert_eq!(tree.max(&(a..b)), *array[a..b].iter().max().unwrap());
                    }
                }
            }
        }
    }
}
