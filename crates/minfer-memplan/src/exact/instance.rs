//! A component made ready for the search: takes buffers whose lifetimes hang together and a capacity, gives items over
//! the sections that matter, all lengths in units of their greatest common divisor. Must not know how it is searched.

use std::ops::{Index, Range};

use crate::Buffer;
use crate::fixed::align_up;
use crate::sections::Sections;

/// One buffer of the component. Lengths in units.
pub(crate) struct Item {
    /// From its first section to its last, half open: the sections between its spans are among them.
    pub from: usize,
    pub to: usize,
    /// The sections it lives in, ascending, none empty: one range but for items that are idle in between.
    pub spans: Vec<Range<usize>>,
    pub size: u64,
    pub alignment: u64,
    pub fixed: Option<u64>,
}

impl Item {
    /// The sections it lives in, ascending.
    #[inline]
    pub fn sections(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        self.spans.iter().cloned().flatten()
    }

    /// The lowest legal offset from `at` on. Rises with `at`, which is all that the search asks of it.
    #[inline]
    pub fn rise(&self, at: u64) -> u64 {
        if self.alignment == 1 { at } else { align_up(at, self.alignment).unwrap_or(u64::MAX) }
    }
}

/// The items, ascending by first section; the sections' members, who meets whom.
pub(crate) struct Instance {
    /// Bytes per unit: divides all sizes, fixed offsets and alignments that matter.
    pub unit: u64,
    /// Index of each item's buffer in the problem.
    pub buffers: Vec<usize>,
    pub items: Vec<Item>,
    /// Per item its size again, side by side for the innermost loop.
    pub sizes: Vec<u64>,
    /// Per section the items that live there, ascending.
    pub members: Lists,
    /// Per item those that share a section with it, ascending.
    pub neighbours: Lists,
}

/// Lists of items, one after the other in one table: there may be thousands with thousands each.
pub(crate) struct Lists {
    items: Vec<u32>,
    bounds: Vec<usize>, // list `k` is from bound `k` to the next
}

impl Lists {
    /// So many lists of those paired with each, in order.
    fn new(n_lists: usize, pairs: impl Iterator<Item = (usize, u32)> + Clone) -> Self {
        let mut bounds = vec![0; n_lists + 1];
        pairs.clone().for_each(|(list, _)| bounds[list + 1] += 1);
        (0..n_lists).for_each(|list| bounds[list + 1] += bounds[list]);
        let mut next = bounds.clone();
        let mut items = vec![0; bounds[n_lists]];
        for (list, item) in pairs {
            items[next[list]] = item;
            next[list] += 1;
        }
        Self { items, bounds }
    }

    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }
}

impl Index<usize> for Lists {
    type Output = [u32];

    #[inline]
    fn index(&self, list: usize) -> &[u32] {
        &self.items[self.bounds[list]..self.bounds[list + 1]]
    }
}

impl Instance {
    /// The component of these `indices`: all have bytes and a lifetime. At most `n_pairs` times one meets another, counted
    /// from both sides.
    pub fn new(buffers: &[Buffer], indices: &[usize], n_pairs: usize) -> Self {
        let mut indices = indices.to_vec();
        // By first section; a buffer may be idle at the beginning of its lifetime.
        indices.sort_by_key(|&i| (buffers[i].spans().next().map(|span| span.start), i));
        let unit = unit(indices.iter().map(|&i| &buffers[i]));
        let spans = crowded_spans(indices.iter().map(|&i| &buffers[i]));
        let item = |(&i, spans): (&usize, Vec<Range<usize>>)| {
            let b = &buffers[i];
            // An alignment that divides the unit is met by any number of units.
            let alignment = if unit.is_multiple_of(b.alignment) { 1 } else { b.alignment / unit };
            let (from, to) = (spans[0].start, spans[spans.len() - 1].end);
            Item { from, to, spans, size: b.size / unit, alignment, fixed: b.offset.map(|o| o / unit) }
        };
        let items: Vec<Item> = indices.iter().zip(spans).map(item).collect();
        let n_sections = items.iter().map(|i| i.to).max().unwrap_or(0);
        let numbered = || items.iter().enumerate().map(|(k, i)| (k as u32, i));
        let members = Lists::new(n_sections, numbered().flat_map(|(k, i)| i.sections().map(move |s| (s, k))));
        // Who shares a section with an item is there when a span of it begins, or begins within.
        let begins = numbered().flat_map(|(k, i)| i.spans.iter().map(move |span| (span.start, k)));
        let beginning = Lists::new(n_sections, begins);
        let mut neighbours = Lists { items: Vec::with_capacity(n_pairs), bounds: vec![0] };
        let mut seen = vec![usize::MAX; items.len()];
        for (k, i) in items.iter().enumerate() {
            seen[k] = k;
            let first = neighbours.items.len();
            for span in &i.spans {
                let begin_within = span.clone().flat_map(|s| &beginning[s]);
                for &j in members[span.start].iter().chain(begin_within) {
                    if seen[j as usize] != k {
                        seen[j as usize] = k;
                        neighbours.items.push(j);
                    }
                }
            }
            neighbours.items[first..].sort_unstable();
            neighbours.bounds.push(neighbours.items.len());
        }
        let sizes = items.iter().map(|i| i.size).collect();
        Self { unit, buffers: indices, items, sizes, members, neighbours }
    }
}

/// The greatest common divisor of all lengths. A buffer that rests on others or on the ground lies at a sum of sizes,
/// rounded up to alignments, so heights between multiples of the unit need no thought.
pub(crate) fn unit<'a>(buffers: impl Iterator<Item = &'a Buffer> + Clone) -> u64 {
    let lengths = buffers.clone().flat_map(|b| [b.size, b.offset.unwrap_or(0)]);
    let mut unit = lengths.fold(0, gcd).max(1);
    // Rounding up to an alignment that divides the unit changes nothing. Any other makes the unit smaller, which may
    // concern those before it.
    loop {
        let finer =
            buffers.clone().map(|b| b.alignment).fold(unit, |u, a| if u.is_multiple_of(a) { u } else { gcd(u, a) });
        if finer == unit {
            return unit;
        }
        unit = finer;
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Each buffer's half-open ranges of *crowded* sections: those whose live set is not part of a neighbouring section's.
/// The others ask for nothing that these do not. Each of a buffer's spans holds a crowded section: the first after whose
/// beginning something ends.
pub(crate) fn crowded_spans<'a>(buffers: impl Iterator<Item = &'a Buffer> + Clone) -> Vec<Vec<Range<usize>>> {
    let sections = Sections::new(buffers.clone());
    let spans: Vec<Vec<_>> = buffers.map(|b| sections.of(b).collect()).collect();
    let (mut starts, mut ends) = (vec![false; sections.len() + 1], vec![false; sections.len() + 1]);
    for span in spans.iter().flatten() {
        (starts[span.start], ends[span.end]) = (true, true);
    }
    // Crowded: something began since the last end, and something ends right after.
    let (mut crowded, mut grown) = (Vec::new(), false);
    for s in 0..sections.len() {
        grown |= starts[s];
        if grown && ends[s + 1] {
            crowded.push(s);
            grown = false;
        }
    }
    let rank = |s: usize| crowded.partition_point(|&c| c < s);
    let crowded_of = |spans: &Vec<Range<usize>>| {
        let mut kept: Vec<Range<usize>> = Vec::with_capacity(spans.len());
        for span in spans {
            let span = rank(span.start)..rank(span.end);
            match kept.last_mut() {
                // Nothing that matters happened while it was idle.
                Some(last) if last.end == span.start => last.end = span.end,
                _ => kept.push(span),
            }
        }
        kept
    };
    spans.iter().map(crowded_of).collect()
}
