//! Which sequence owns which KV cells. Takes appends, cuts and forks; gives block tables, cell numbers and the copies that
//! keep shared blocks apart; must not know bytes or backends.
//!
//! Cells come in blocks of [`KV_BLOCK_CELLS`](minfer_graph::KV_BLOCK_CELLS) that hold consecutive positions of a sequence.
//! A block may belong to several sequences with a common prefix; whoever writes into a shared block first gets a copy of
//! it. Layers with a window have cells of their own ([`KvKind`]), of which a sequence holds its latest blocks only: the
//! oldest is given back when a new one would be too many. Every operation either succeeds whole or changes nothing.

mod pool;

use pool::{Held, Pool};

pub use pool::{BlockCopy, FreedCells, KvKind};

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
    /// Positions that layers with a window hold no more.
    #[error(
        "sequence {sequence} can be cut to 0 or to {least} positions and more, not to {got}: its windows have passed"
    )]
    WindowPassed {
        /// Sequence.
        sequence: u32,
        /// Least length but 0.
        least: u32,
        /// Length named.
        got: u32,
    },
}

#[derive(Clone, Debug)]
struct Sequence {
    len: u32,
    /// By kind.
    held: Vec<Held>,
}

/// A position won by an append.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Appended {
    /// The position.
    pub position: u32,
    /// Its cell in the layers of each kind.
    pub cells: Vec<u32>,
    /// Cells of positions that left their window.
    pub freed: Vec<FreedCells>,
    /// Copies to make first.
    pub copies: Vec<BlockCopy>,
}

/// Owners of all cells.
#[derive(Debug)]
pub struct KvCache {
    n_ctx: u32,
    pools: Vec<Pool>,
    sequences: Vec<Option<Sequence>>,
    /// Of the sequence that has, or will next have, each slot.
    generations: Vec<u32>,
}

impl KvCache {
    /// A cache of these kinds of layers for up to `n_sequences` sequences of `n_ctx` positions.
    pub fn new(kinds: impl IntoIterator<Item = KvKind>, n_sequences: u32, n_ctx: u32) -> Self {
        Self {
            n_ctx,
            pools: kinds.into_iter().map(Pool::new).collect(),
            sequences: vec![None; n_sequences as usize],
            generations: vec![0; n_sequences as usize],
        }
    }

    /// The kinds of layers.
    pub fn kinds(&self) -> impl Iterator<Item = KvKind> + '_ {
        self.pools.iter().map(|pool| pool.kind)
    }

    /// A new, empty sequence.
    pub fn create(&mut self) -> Result<SequenceId, KvError> {
        let limit = self.sequences.len() as u32;
        let slot = self.sequences.iter().position(Option::is_none).ok_or(KvError::NoSequence { limit })?;
        self.sequences[slot] = Some(Sequence { len: 0, held: vec![Held::default(); self.pools.len()] });
        Ok(SequenceId { slot: slot as u32, generation: self.generations[slot] })
    }

    /// Gives a sequence's cells back; those that nobody holds any more are returned.
    pub fn release(&mut self, id: SequenceId) -> Result<Vec<FreedCells>, KvError> {
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
    ///
    /// Where layers have a window, only the latest blocks are there: [`KvError::WindowPassed`] for a length whose next token
    /// would see others. From its greatest length a sequence can always be cut by as many positions as a batch has tokens.
    pub fn cut(&mut self, id: SequenceId, len: u32) -> Result<Vec<FreedCells>, KvError> {
        self.check_prefix(id, len)?;
        let mut freed = Vec::new();
        if let Some(sequence) = &mut self.sequences[id.slot as usize] {
            let old_len = std::mem::replace(&mut sequence.len, len);
            for (pool, held) in self.pools.iter_mut().zip(&mut sequence.held) {
                pool.cut(held, old_len, len, &mut freed);
            }
        }
        Ok(freed)
    }

    /// A new sequence with the first `len` positions of another; their cells are shared until one of the two writes.
    pub fn fork(&mut self, id: SequenceId, len: u32) -> Result<SequenceId, KvError> {
        let held = self.check_prefix(id, len)?.held.clone();
        let fork = self.create()?;
        let held = self.pools.iter_mut().zip(&held).map(|(pool, held)| pool.share(held, len)).collect();
        self.sequences[fork.slot as usize] = Some(Sequence { len, held });
        Ok(fork)
    }

    /// Adds a position at a sequence's end. The caller makes the copies before it writes the new cell.
    pub fn append(&mut self, id: SequenceId) -> Result<Appended, KvError> {
        let sequence = self.sequence(id)?;
        let position = sequence.len;
        if position >= self.n_ctx {
            return Err(KvError::ContextFull { position: u64::from(position), n_ctx: self.n_ctx });
        }
        for (pool, held) in self.pools.iter().zip(&sequence.held) {
            let (needed, free) = (pool.needed(held, position), pool.free_blocks());
            if needed > free {
                return Err(KvError::NoBlocks { needed, free });
            }
        }
        let mut appended = Appended { position, ..Appended::default() };
        if let Some(sequence) = &mut self.sequences[id.slot as usize] {
            sequence.len += 1;
            for (pool, held) in self.pools.iter_mut().zip(&mut sequence.held) {
                pool.append(held, position, &mut appended);
            }
        }
        Ok(appended)
    }

    /// By kind of layer the blocks that a sequence holds, each with its place: that of block `i` has the positions
    /// `32 i .. 32 (i + 1)`.
    pub fn blocks(
        &self,
        id: SequenceId,
    ) -> Result<impl Iterator<Item = impl Iterator<Item = (u32, u32)> + use<'_>> + use<'_>, KvError> {
        Ok(self.sequence(id)?.held.iter().map(|held| (held.first..).zip(held.blocks.iter().copied())))
    }

    /// Blocks that nobody owns, by kind.
    pub fn free_blocks(&self) -> impl Iterator<Item = usize> + '_ {
        self.pools.iter().map(Pool::free_blocks)
    }

    /// The sequence, if a token after its first `len` positions would find all that it sees.
    fn check_prefix(&self, id: SequenceId, len: u32) -> Result<&Sequence, KvError> {
        let sequence = self.sequence(id)?;
        if len > sequence.len {
            return Err(KvError::BeyondEnd { sequence: id.slot, len: sequence.len, got: len });
        }
        let least = self.pools.iter().zip(&sequence.held).map(|(pool, held)| pool.least_len(held)).max().unwrap_or(0);
        if len > 0 && len < least {
            return Err(KvError::WindowPassed { sequence: id.slot, least, got: len });
        }
        Ok(sequence)
    }

    fn sequence(&self, id: SequenceId) -> Result<&Sequence, KvError> {
        let of_id = self.generations.get(id.slot as usize) == Some(&id.generation);
        let sequence = self.sequences.get(id.slot as usize).filter(|_| of_id).and_then(Option::as_ref);
        sequence.ok_or(KvError::UnknownSequence(id.slot))
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod window_tests;
