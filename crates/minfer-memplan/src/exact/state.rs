//! The state of a search: takes placements and refusals of single items, keeps what they imply for all others, and takes
//! them back. Must not know which item comes next.
//!
//! Searched for are placements in which no item could lie lower while all others stay: pushing items down one at a time
//! turns any placement into one of these, and none gets higher. In such a placement each item *rests*: on the ground or
//! on a neighbour below it. Everything here follows from that:
//!
//! - `rest`: the lowest offset above all placed neighbours. An unplaced item lies there or higher.
//! - A *refused* item does not lie at its rest; some unplaced neighbour lies below and lifts it.
//! - `level`: the lowest offset an unplaced item can still have; above `rest` only for refused items.
//! - An item is placed (at its rest) only once no unplaced neighbour fits below it: so placed items are always below.
//! - An item whose unplaced neighbours all have levels from its top on must lie at its rest; if it is refused, the
//!   branch is dead.
//! - In a section, the lowest level plus the bytes still to come must stay within the capacity; so must the second
//!   lowest level plus the bytes without the lowest item.

use super::instance::{Instance, Item};
use crate::budget::Stop;

/// A level that no placement has: marks placed items.
const AWAY: u64 = u64::MAX / 2;

/// The two lowest values among a section's unplaced items, and whose the lowest is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Lowest {
    item: u32,
    first: u64,
    second: u64,
}

impl Lowest {
    const NONE: Self = Self { item: u32::MAX, first: AWAY, second: AWAY };

    #[inline]
    fn add(&mut self, item: u32, value: u64) {
        if value < self.first {
            *self = Self { item, first: value, second: self.first };
        } else if value < self.second {
            self.second = value;
        }
    }

    /// The lowest without this item.
    #[inline]
    fn without(&self, item: u32) -> u64 {
        if self.item == item { self.second } else { self.first }
    }
}

/// What is known of a section's unplaced items.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Section {
    levels: Lowest,
    tops: Lowest,
}

enum Undo {
    Item { item: u32, rest: u64, level: u64, refused: bool },
    Placed { item: u32, level: u64 },
}

/// A place in the history, for [`State::undo`].
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    trail: usize,
    section_trail: usize,
}

/// The most changes of items that a trail of so many holds, and as many of sections; looking at one more item may add some
/// per item. In a search that goes deep each of `n` decisions changes some of `n` items: the largest of the MiniMalloc suite
/// need a third of `n` squared, and 2000 buffers that often meet half of the limit.
pub(crate) fn max_changes(n_items: usize) -> usize {
    (1024 + 4 * n_items * n_items).min(1 << 18)
}

/// The most bytes that the state of a search takes.
pub(crate) fn state_bytes(n_items: usize, n_sections: usize) -> usize {
    let changes = max_changes(n_items) + n_items + n_sections;
    changes * (size_of::<Undo>() + size_of::<(u32, Section)>())
        + 64 * n_items
        + (size_of::<Section>() + 32) * n_sections
}

/// No placement extends the state.
pub(crate) struct Dead;

/// Why conclusions were not drawn to the end.
pub(crate) enum End {
    Dead,
    /// It was to stop, or the trail is full.
    Halted,
}

impl From<Dead> for End {
    fn from(_: Dead) -> Self {
        End::Dead
    }
}

/// Looks at items, about a nanosecond each, between two questions whether to stop. Where thousands hang together, one
/// conclusion after the other may take seconds.
const LOOKS_PER_QUESTION: usize = 1 << 22;

pub(crate) struct State<'a> {
    pub instance: &'a Instance,
    pub capacity: u64,
    rest: Vec<u64>,
    level: Vec<u64>,
    refused: Vec<bool>,
    /// Offsets of the placed items.
    pub offsets: Vec<u64>,
    to_come: Vec<u64>, // per section: sizes of the unplaced
    sections: Vec<Section>,
    /// Per section how often it was the one that did not fit.
    pub failures: Vec<u64>,
    trail: Vec<Undo>,
    section_trail: Vec<(u32, Section)>, // which section, and what it was
    max_changes: usize,
    dirty: Vec<u64>, // bit set of sections
    batch: Vec<u32>,
    seen: Vec<u64>, // per item the round it was looked at
    round: u64,
    looks: usize, // since the last question whether to stop
}

impl<'a> State<'a> {
    /// Nothing is placed. `failures` are those of searches before, per section.
    pub fn new(instance: &'a Instance, capacity: u64, failures: Vec<u64>) -> Self {
        let (n, m) = (instance.items.len(), instance.members.len());
        let mut state = Self {
            instance,
            capacity,
            rest: vec![0; n],
            level: instance.items.iter().map(|i| i.fixed.unwrap_or(0)).collect(),
            refused: vec![false; n],
            offsets: vec![0; n],
            to_come: vec![0; m],
            sections: vec![Section { levels: Lowest::NONE, tops: Lowest::NONE }; m],
            failures,
            trail: Vec::new(),
            section_trail: Vec::new(),
            max_changes: max_changes(n),
            dirty: vec![0; m.div_ceil(64)],
            batch: Vec::new(),
            seen: vec![0; n],
            round: 0,
            looks: 0,
        };
        for item in &instance.items {
            item.sections().for_each(|s| state.to_come[s] += item.size);
            state.touch(item);
        }
        state
    }

    pub fn is_placed(&self, i: u32) -> bool {
        self.level[i as usize] == AWAY
    }

    /// Unplaced and not refused: it may be placed at its level if nothing fits below.
    pub fn is_open(&self, i: u32) -> bool {
        !self.refused[i as usize] && self.level[i as usize] != AWAY
    }

    pub fn level(&self, i: u32) -> u64 {
        self.level[i as usize]
    }

    pub fn to_come(&self, s: usize) -> u64 {
        self.to_come[s]
    }

    /// Capacity that the section can still waste.
    pub fn slack(&self, s: usize) -> u64 {
        (self.capacity - self.to_come[s]).saturating_sub(self.sections[s].levels.first)
    }

    /// The lowest level in the section; `None` once all its items are placed.
    pub fn floor(&self, s: usize) -> Option<u64> {
        Some(self.sections[s].levels.first).filter(|&f| f != AWAY)
    }

    #[inline]
    fn sections_of(&self, item: &'a Item) -> impl Iterator<Item = &Section> {
        item.spans.iter().flat_map(|span| &self.sections[span.clone()])
    }

    /// The unplaced neighbour with the lowest top that fits below the item.
    pub fn fits_below(&self, i: u32) -> Option<u32> {
        let level = self.level[i as usize];
        let item = &self.instance.items[i as usize];
        if self.sections_of(item).all(|s| s.tops.without(i) > level) {
            return None;
        }
        let neighbours = self.instance.neighbours[i as usize].iter().copied().filter(|&v| !self.is_placed(v));
        neighbours.min_by_key(|&v| self.level[v as usize] + self.instance.items[v as usize].size)
    }

    /// Where the history stands.
    pub fn mark(&self) -> Mark {
        Mark { trail: self.trail.len(), section_trail: self.section_trail.len() }
    }

    /// Takes everything after the mark back.
    pub fn undo(&mut self, to: Mark) {
        for entry in self.trail.drain(to.trail..).rev() {
            match entry {
                Undo::Item { item, rest, level, refused } => {
                    let i = item as usize;
                    (self.rest[i], self.level[i], self.refused[i]) = (rest, level, refused);
                }
                Undo::Placed { item, level } => {
                    self.level[item as usize] = level;
                    let item = &self.instance.items[item as usize];
                    item.sections().for_each(|s| self.to_come[s] += item.size);
                }
            }
        }
        for (s, was) in self.section_trail.drain(to.section_trail..).rev() {
            self.sections[s as usize] = was;
        }
        self.dirty.fill(0);
    }

    /// Places the item at its level: nothing unplaced fits below it. What follows is left to [`State::propagate`].
    pub fn place(&mut self, i: u32) -> Result<(), Dead> {
        let instance = self.instance;
        let item = &instance.items[i as usize];
        let level = self.level[i as usize];
        let top = level + item.size;
        if top > self.capacity || self.rest[i as usize] > level {
            return Err(Dead);
        }
        self.offsets[i as usize] = level;
        self.trail.push(Undo::Placed { item: i, level });
        self.level[i as usize] = AWAY;
        item.sections().for_each(|s| self.to_come[s] -= item.size);
        self.touch(item);
        for &v in &instance.neighbours[i as usize] {
            let k = v as usize;
            if self.level[k] == AWAY || self.rest[k] >= top {
                continue;
            }
            let other = &instance.items[k];
            let rest = other.rise(top);
            if rest > self.capacity - other.size || other.fixed.is_some_and(|f| f < rest) {
                return Err(Dead);
            }
            self.keep(v);
            self.rest[k] = rest;
            if rest >= self.level[k] && other.fixed.is_none() {
                (self.level[k], self.refused[k]) = (rest, false);
                self.touch(other);
            }
        }
        // Most dead branches show here already, before anything else is looked at again.
        item.sections().try_for_each(|s| self.refresh(s))
    }

    /// The item does not lie at its rest.
    pub fn refuse(&mut self, i: u32) -> Result<(), Dead> {
        self.keep(i);
        self.refused[i as usize] = true;
        self.look_at(i).map(|_| ())
    }

    /// Draws all conclusions. True if items were placed on the way because they had no choice.
    pub fn propagate(&mut self, stop: Stop<'_>) -> Result<bool, End> {
        let mut placed = false;
        loop {
            self.round += 1;
            self.batch.clear();
            for word in 0..self.dirty.len() {
                let mut bits = std::mem::take(&mut self.dirty[word]);
                while bits != 0 {
                    let s = 64 * word + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    self.refresh(s)?;
                    for &u in &self.instance.members[s] {
                        if self.seen[u as usize] != self.round && self.level[u as usize] != AWAY {
                            self.seen[u as usize] = self.round;
                            self.batch.push(u);
                        }
                    }
                }
            }
            if self.batch.is_empty() {
                return Ok(placed);
            }
            let batch = std::mem::take(&mut self.batch);
            let looked = batch.iter().try_for_each(|&u| {
                placed |= self.look_at(u)?;
                if self.trail.len().max(self.section_trail.len()) > self.max_changes {
                    return Err(End::Halted);
                }
                if self.looks < LOOKS_PER_QUESTION {
                    return Ok(());
                }
                self.looks = 0;
                if stop() { Err(End::Halted) } else { Ok(()) }
            });
            self.batch = batch;
            looked?;
        }
    }

    /// What the item's sections say about it. True if it had to be placed.
    fn look_at(&mut self, i: u32) -> Result<bool, Dead> {
        let k = i as usize;
        let item = &self.instance.items[k];
        let level = self.level[k];
        if level == AWAY || item.fixed.is_some() {
            return Ok(false);
        }
        if !self.refused[k] {
            let top = level + item.size;
            let has_choice = self.sections_of(item).any(|s| s.levels.without(i) < top);
            if !has_choice {
                self.place(i)?;
            }
            return Ok(!has_choice);
        }
        let (lowest_level, lowest_top) = self
            .sections_of(item)
            .fold((AWAY, AWAY), |(level, top), s| (level.min(s.levels.without(i)), top.min(s.tops.without(i))));
        let lift = item.rise(lowest_top);
        if lowest_level >= self.rest[k] + item.size || lift.saturating_add(item.size) > self.capacity {
            return Err(Dead);
        }
        if lift > level {
            self.keep(i);
            self.level[k] = lift;
            self.touch(item);
        }
        Ok(false)
    }

    /// Computes a section anew and holds it against the capacity.
    #[inline]
    fn refresh(&mut self, s: usize) -> Result<(), Dead> {
        let (mut levels, mut tops) = (Lowest::NONE, Lowest::NONE);
        self.looks += self.instance.members[s].len();
        for &u in &self.instance.members[s] {
            let level = self.level[u as usize];
            levels.add(u, level);
            tops.add(u, level + self.instance.sizes[u as usize]);
        }
        let section = Section { levels, tops };
        if self.sections[s] != section {
            self.section_trail.push((s as u32, self.sections[s]));
            self.sections[s] = section;
        }
        if levels.first == AWAY {
            return Ok(());
        }
        let to_come = self.to_come[s];
        let fits = levels.first + to_come <= self.capacity
            && (levels.second == AWAY
                || levels.second + to_come - self.instance.items[levels.item as usize].size <= self.capacity);
        if !fits {
            self.failures[s] += 1;
            return Err(Dead);
        }
        Ok(())
    }

    fn keep(&mut self, i: u32) {
        let k = i as usize;
        self.trail.push(Undo::Item { item: i, rest: self.rest[k], level: self.level[k], refused: self.refused[k] });
    }

    /// The sections of the item have to be computed anew. Those in between may be, too: it changes nothing.
    #[inline]
    fn touch(&mut self, item: &Item) {
        let (first, last) = (item.from / 64, (item.to - 1) / 64);
        let (low, high) = (!0 << (item.from % 64), !0 >> (63 - (item.to - 1) % 64));
        if first == last {
            self.dirty[first] |= low & high;
        } else {
            self.dirty[first] |= low;
            self.dirty[first + 1..last].fill(!0);
            self.dirty[last] |= high;
        }
    }
}
