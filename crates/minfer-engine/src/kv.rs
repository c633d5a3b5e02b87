//! Which sequence owns which KV cells. Takes appends, cuts and forks; gives block tables, cell numbers and the copies that
//! keep shared blocks apart; must not know bytes or backends.
//!
//! Cells come in blocks of [`KV_BLOCK_CELLS`] that hold consecutive positions of a sequence. A block may belong to several
//! sequences with a common prefix; whoever writes into a shared block first gets a copy of it. Every operation either
//! succeeds whole or changes nothing.

use minfer_graph::KV_BLOCK_CELLS;
use std::collections::BTreeSet;
use std::ops::Range;

/// A sequence of one engine. A slot that is used again gets another generation, so that an id of a released sequence never
/// means its successor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct SequenceId {
    slot: u32,
    generation: u32,
}

/// Why an operation on the KV cache is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KvError {
    /// No such sequence.
    #[error("there is no sequence {0}; it was released or belongs to another engine")]
    UnknownSequence(u32),
    /// All sequences are taken.
    #[error("all {limit} sequences of this engine are in use; release one or plan for more")]
    NoSequence {
        /// Sequences planned for.
        limit: u32,
    },
    /// A position beyond the context.
    #[error("position {position} is beyond the context of {n_ctx} positions")]
    ContextFull {
        /// First position that does not fit.
        position: u64,
        /// Positions of a sequence.
        n_ctx: u32,
    },
    /// No free block.
    #[error("{needed} KV blocks are needed, {free} are free; cut or release a sequence")]
    NoBlocks {
        /// Blocks needed.
        needed: usize,
        /// Blocks free.
        free: usize,
    },
    /// More positions than the sequence has.
    #[error("sequence {sequence} has {len} positions, {got} were named")]
    BeyondEnd {
        /// Sequence.
        sequence: u32,
        /// Its length.
        len: u32,
        /// Length named.
        got: u32,
    },
}

#[derive(Clone, Debug, Default)]
struct Sequence {
    blocks: Vec<u32>,
    len: u32,
}

/// A block whose cells must be copied before the step that writes into the copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockCopy {
    /// Block to copy from.
    pub from: u32,
    /// Block to copy to.
    pub to: u32,
}

/// Positions won by an append.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Appended {
    /// First position.
    pub position: u32,
    /// Copies to make first.
    pub copies: Vec<BlockCopy>,
}

/// Owners of all cells.
#[derive(Debug)]
pub struct KvCache {
    n_ctx: u32,
    users: Vec<u32>,
    free: BTreeSet<u32>,
    sequences: Vec<Option<Sequence>>,
    /// Of the sequence that has, or will next have, each slot.
    generations: Vec<u32>,
}

impl KvCache {
    /// A cache of `n_cells` cells (whole blocks) for up to `n_sequences` sequences of `n_ctx` positions.
    pub fn new(n_cells: u32, n_sequences: u32, n_ctx: u32) -> Self {
        let n_blocks = n_cells / KV_BLOCK_CELLS;
        Self {
            n_ctx,
            users: vec![0; n_blocks as usize],
            free: (0..n_blocks).collect(),
            sequences: vec![None; n_sequences as usize],
            generations: vec![0; n_sequences as usize],
        }
    }

    /// A new, empty sequence.
    pub fn create(&mut self) -> Result<SequenceId, KvError> {
        let limit = self.sequences.len() as u32;
        let slot = self.sequences.iter().position(Option::is_none).ok_or(KvError::NoSequence { limit })?;
        self.sequences[slot] = Some(Sequence::default());
        Ok(SequenceId { slot: slot as u32, generation: self.generations[slot] })
    }

    /// Gives a sequence's cells back; those that nobody holds any more are returned.
    pub fn release(&mut self, id: SequenceId) -> Result<Vec<Range<u32>>, KvError> {
        let freed = self.cut(id, 0)?;
        self.sequences[id.slot as usize] = None;
        self.generations[id.slot as usize] = id.generation.wrapping_add(1);
        Ok(freed)
    }

    /// Positions a sequence holds.
    pub fn len(&self, id: SequenceId) -> Result<u32, KvError> {
        Ok(self.sequence(id)?.len)
    }

    /// Keeps the first `len` positions and frees the tail. The cells that nobody holds any more are returned.
    pub fn cut(&mut self, id: SequenceId, len: u32) -> Result<Vec<Range<u32>>, KvError> {
        let sequence = self.sequence(id)?;
        if len > sequence.len {
            return Err(KvError::BeyondEnd { sequence: id.slot, len: sequence.len, got: len });
        }
        let keep = len.div_ceil(KV_BLOCK_CELLS) as usize;
        let old_len = sequence.len;
        let dropped = self.sequence_mut(id)?.blocks.split_off(keep);
        self.sequence_mut(id)?.len = len;
        let mut freed = Vec::new();
        let kept = self.sequence(id)?.blocks.last().copied();
        if let Some(block) = kept.filter(|&block| self.users[block as usize] == 1) {
            let used =
                |len: u32| block * KV_BLOCK_CELLS + (len - (keep as u32 - 1) * KV_BLOCK_CELLS).min(KV_BLOCK_CELLS);
            freed.push(used(len)..used(old_len));
        }
        for block in dropped {
            self.unuse(block);
            if self.users[block as usize] == 0 {
                freed.push(block * KV_BLOCK_CELLS..(block + 1) * KV_BLOCK_CELLS);
            }
        }
        freed.retain(|cells| !cells.is_empty());
        Ok(freed)
    }

    /// A new sequence with the first `len` positions of another; their cells are shared until one of the two writes.
    pub fn fork(&mut self, id: SequenceId, len: u32) -> Result<SequenceId, KvError> {
        let sequence = self.sequence(id)?;
        if len > sequence.len {
            return Err(KvError::BeyondEnd { sequence: id.slot, len: sequence.len, got: len });
        }
        let blocks = sequence.blocks[..len.div_ceil(KV_BLOCK_CELLS) as usize].to_vec();
        let fork = self.create()?;
        for &block in &blocks {
            self.users[block as usize] += 1;
        }
        *self.sequence_mut(fork)? = Sequence { blocks, len };
        Ok(fork)
    }

    /// Adds `n` positions at a sequence's end. The caller makes the copies before it writes the new cells.
    pub fn append(&mut self, id: SequenceId, n: u32) -> Result<Appended, KvError> {
        let sequence = self.sequence(id)?;
        let position = sequence.len;
        let end = u64::from(position) + u64::from(n);
        if end > u64::from(self.n_ctx) {
            return Err(KvError::ContextFull { position: u64::from(self.n_ctx), n_ctx: self.n_ctx });
        }
        let have = sequence.blocks.len();
        let added = (end as u32).div_ceil(KV_BLOCK_CELLS) as usize - have;
        let partial = !position.is_multiple_of(KV_BLOCK_CELLS) && n > 0;
        let shared = partial.then(|| sequence.blocks[have - 1]).filter(|&block| self.users[block as usize] > 1);
        let needed = added + usize::from(shared.is_some());
        if needed > self.free.len() {
            return Err(KvError::NoBlocks { needed, free: self.free.len() });
        }
        let mut copies = Vec::new();
        if let Some(from) = shared {
            let to = self.take_block();
            self.unuse(from);
            self.sequence_mut(id)?.blocks[have - 1] = to;
            copies.push(BlockCopy { from, to });
        }
        for _ in 0..added {
            let block = self.take_block();
            self.sequence_mut(id)?.blocks.push(block);
        }
        self.sequence_mut(id)?.len = end as u32;
        Ok(Appended { position, copies })
    }

    /// The cell of a position that the sequence holds.
    pub fn cell(&self, id: SequenceId, position: u32) -> Result<u32, KvError> {
        let sequence = self.sequence(id)?;
        if position >= sequence.len {
            return Err(KvError::BeyondEnd { sequence: id.slot, len: sequence.len, got: position });
        }
        let block = sequence.blocks[(position / KV_BLOCK_CELLS) as usize];
        Ok(block * KV_BLOCK_CELLS + position % KV_BLOCK_CELLS)
    }

    /// The blocks of a sequence, in order of position.
    pub fn blocks(&self, id: SequenceId) -> Result<&[u32], KvError> {
        Ok(&self.sequence(id)?.blocks)
    }

    /// Blocks that nobody owns.
    pub fn free_blocks(&self) -> usize {
        self.free.len()
    }

    fn sequence(&self, id: SequenceId) -> Result<&Sequence, KvError> {
        self.check(id)?;
        self.sequences.get(id.slot as usize).and_then(Option::as_ref).ok_or(KvError::UnknownSequence(id.slot))
    }

    fn sequence_mut(&mut self, id: SequenceId) -> Result<&mut Sequence, KvError> {
        self.check(id)?;
        self.sequences.get_mut(id.slot as usize).and_then(Option::as_mut).ok_or(KvError::UnknownSequence(id.slot))
    }

    fn check(&self, id: SequenceId) -> Result<(), KvError> {
        match self.generations.get(id.slot as usize) {
            Some(&generation) if generation == id.generation => Ok(()),
            _ => Err(KvError::UnknownSequence(id.slot)),
        }
    }

    /// The lowest free block, so that a lone sequence fills the cache in order. The caller has counted the free ones.
    fn take_block(&mut self) -> u32 {
        let block = self.free.pop_first().unwrap_or_default();
        self.users[block as usize] = 1;
        block
    }

    fn unuse(&mut self, block: u32) {
        let users = &mut self.users[block as usize];
        *users -= 1;
        if *users == 0 {
            self.free.insert(block);
        }
    }
}

#[cfg(test)]
mod tests;
