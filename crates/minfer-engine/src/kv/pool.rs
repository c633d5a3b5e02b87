//! The cells of one kind of layers. Takes how sequences grow and are cut; gives blocks, the copies that keep shared ones
//! apart, and the cells that nobody holds any more; must not know sequences by name, nor other kinds.

use super::Appended;
use minfer_graph::{GraphParams, KV_BLOCK_CELLS};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// Layers that hold the same positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KvKind {
    /// The latest positions that a token of these layers sees; all when absent.
    pub window: Option<u32>,
    /// Cells of such a layer: whole blocks.
    pub n_cells: u32,
    /// Most blocks that a sequence holds: its latest.
    pub blocks_held: u32,
}

impl KvKind {
    /// The layers of a graph of these parameters that have this window, or none.
    pub fn new(params: &GraphParams, window: Option<u32>) -> Self {
        Self { window, n_cells: params.n_cells_of(window), blocks_held: params.blocks_held(window) }
    }
}

/// A block whose cells must be copied before the step that writes into the copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockCopy {
    /// In layers with this window.
    pub window: Option<u32>,
    /// Block to copy from.
    pub from: u32,
    /// Block to copy to.
    pub to: u32,
}

/// Cells that nobody holds any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FreedCells {
    /// In layers with this window.
    pub window: Option<u32>,
    /// Which.
    pub cells: Range<u32>,
}

/// A sequence's blocks in the layers of a kind: the latest of those that its positions fill.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// Blocks given back before these.
    pub first: u32,
    pub blocks: VecDeque<u32>,
}

impl Held {
    /// Blocks of the first `len` positions, but for those given back.
    fn n_blocks(&self, len: u32) -> usize {
        len.div_ceil(KV_BLOCK_CELLS).saturating_sub(self.first) as usize
    }
}

/// Owners of the cells of one kind of layers.
#[derive(Debug)]
pub(super) struct Pool {
    pub kind: KvKind,
    users: Vec<u32>,
    free: BTreeSet<u32>,
}

impl Pool {
    pub fn new(kind: KvKind) -> Self {
        let n_blocks = kind.n_cells / KV_BLOCK_CELLS;
        Self { kind, users: vec![0; n_blocks as usize], free: (0..n_blocks).collect() }
    }

    pub fn free_blocks(&self) -> usize {
        self.free.len()
    }

    /// The least length but 0 that a sequence can be cut to: such that all its next token sees is held.
    pub fn least_len(&self, held: &Held) -> u32 {
        match self.kind.window {
            Some(window) if held.first > 0 => (held.first * KV_BLOCK_CELLS).saturating_add(window.saturating_sub(1)),
            _ => 0,
        }
    }

    /// Free blocks that one more position needs.
    pub fn needed(&self, held: &Held, position: u32) -> usize {
        let back = self.oldest_to_give_back(held, position).filter(|&block| self.users[block as usize] == 1);
        let taken = position.is_multiple_of(KV_BLOCK_CELLS) || self.shared_end(held, position).is_some();
        usize::from(taken && back.is_none())
    }

    /// Gives one more position its cell; the blocks that it needs are free.
    pub fn append(&mut self, held: &mut Held, position: u32, appended: &mut Appended) {
        let window = self.kind.window;
        if let Some(from) = self.shared_end(held, position) {
            let to = self.take();
            self.unuse(from);
            held.blocks.pop_back();
            held.blocks.push_back(to);
            appended.copies.push(BlockCopy { window, from, to });
        } else if position.is_multiple_of(KV_BLOCK_CELLS) {
            if let Some(oldest) = self.oldest_to_give_back(held, position) {
                held.blocks.pop_front();
                held.first += 1;
                let freed = self.unuse(oldest).then(|| FreedCells { window, cells: cells_of(oldest) });
                appended.freed.extend(freed);
            }
            held.blocks.push_back(self.take());
        }
        let last = held.blocks.back().copied().unwrap_or_default();
        appended.cells.push(last * KV_BLOCK_CELLS + position % KV_BLOCK_CELLS);
    }

    /// Lets go of all positions from `len` on, of `old_len`.
    pub fn cut(&mut self, held: &mut Held, old_len: u32, len: u32, freed: &mut Vec<FreedCells>) {
        let keep = held.n_blocks(len);
        let dropped = held.blocks.split_off(keep.min(held.blocks.len()));
        let window = self.kind.window;
        // The end of a block that only this sequence has.
        let last = held.blocks.back().filter(|&&block| self.users[block as usize] == 1);
        if let Some(&block) = last {
            let start = (held.first + keep as u32 - 1) * KV_BLOCK_CELLS;
            let at = |len: u32| block * KV_BLOCK_CELLS + (len - start).min(KV_BLOCK_CELLS);
            let cells = at(len)..at(old_len);
            freed.extend((!cells.is_empty()).then_some(FreedCells { window, cells }));
        }
        for block in dropped {
            if self.unuse(block) {
                freed.push(FreedCells { window, cells: cells_of(block) });
            }
        }
        if len == 0 {
            held.first = 0;
        }
    }

    /// The first `len` positions, shared with another sequence.
    pub fn share(&mut self, held: &Held, len: u32) -> Held {
        let blocks: VecDeque<u32> = held.blocks.iter().take(held.n_blocks(len)).copied().collect();
        for &block in &blocks {
            self.users[block as usize] += 1;
        }
        Held { first: if len == 0 { 0 } else { held.first }, blocks }
    }

    /// The last block, if a position to come goes into it and others have it too.
    fn shared_end(&self, held: &Held, position: u32) -> Option<u32> {
        let last = held.blocks.back().filter(|_| !position.is_multiple_of(KV_BLOCK_CELLS));
        last.copied().filter(|&block| self.users[block as usize] > 1)
    }

    /// The oldest block, if a position to come needs another and there are as many as a sequence may hold.
    fn oldest_to_give_back(&self, held: &Held, position: u32) -> Option<u32> {
        let full = position.is_multiple_of(KV_BLOCK_CELLS) && held.blocks.len() >= self.kind.blocks_held as usize;
        held.blocks.front().filter(|_| full).copied()
    }

    /// The lowest free block, so that a lone sequence fills the cache in order. The caller has counted the free ones.
    fn take(&mut self) -> u32 {
        let block = self.free.pop_first().unwrap_or_default();
        self.users[block as usize] = 1;
        block
    }

    /// Whether nobody has the block any more.
    fn unuse(&mut self, block: u32) -> bool {
        let users = &mut self.users[block as usize];
        *users -= 1;
        *users == 0 && self.free.insert(block)
    }
}

fn cells_of(block: u32) -> Range<u32> {
    block * KV_BLOCK_CELLS..(block + 1) * KV_BLOCK_CELLS
}
