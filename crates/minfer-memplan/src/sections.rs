//! Time, compressed: takes the buffers of a problem, gives the sections between their bounds and a tree over these that
//! answers "the highest value in a range". Must not know what the values mean.

use crate::Buffer;

/// The bounds of all lifetimes, ascending and distinct. Section `s` is `[bounds[s], bounds[s + 1])`.
pub(crate) struct Sections {
    bounds: Vec<u64>,
}

impl Sections {
    pub(crate) fn new<'a>(buffers: impl Iterator<Item = &'a Buffer>) -> Self {
        let mut bounds: Vec<u64> = buffers.flat_map(|b| [b.lower, b.upper]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        Self { bounds }
    }

    pub(crate) fn len(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }

    /// The half-open range of sections that the buffer lives in; its bounds must be among those given to `new`.
    pub(crate) fn of(&self, b: &Buffer) -> (usize, usize) {
        let at = |step| self.bounds.partition_point(|&x| x < step);
        (at(b.lower), at(b.upper))
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

    /// Raises each section of `[from, to)` to at least `value`.
    pub(crate) fn raise(&mut self, (from, to): (usize, usize), value: u64) {
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

    /// The maximum over `[from, to)`, 0 if empty.
    pub(crate) fn max(&self, (from, to): (usize, usize)) -> u64 {
        let (mut l, mut r, mut max) = (from + self.len, to + self.len, 0);
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
                tree.raise((from, to), value);
                array[from..to].fill(value);
                for a in 0..len {
                    for b in a + 1..=len {
                        assert_eq!(tree.max((a, b)), *array[a..b].iter().max().unwrap());
                    }
                }
            }
        }
    }
}
