//! Cells, blocks and sequences.

use super::*;

const BLOCK: u32 = minfer_graph::KV_BLOCK_CELLS;

/// A cache of layers that see everything.
fn everything(n_blocks: u32, n_sequences: u32, n_ctx: u32) -> KvCache {
    KvCache::new([KvKind { window: None, n_cells: n_blocks * BLOCK, blocks_held: n_blocks }], n_sequences, n_ctx)
}

/// Appends `n` positions, and gives what the first appending gave.
fn append(kv: &mut KvCache, id: SequenceId, n: u32) -> Appended {
    let appended: Vec<Appended> = (0..n).map(|_| kv.append(id).unwrap()).collect();
    appended[0].clone()
}

/// The blocks in layers of the last kind.
fn blocks(kv: &KvCache, id: SequenceId) -> Vec<u32> {
    kv.blocks(id).unwrap().last().unwrap().map(|(_, block)| block).collect()
}

/// Free blocks of the last kind.
fn free(kv: &KvCache) -> usize {
    kv.free_blocks().last().unwrap()
}

#[test]
fn positions_fill_blocks_in_order() {
    let mut kv = everything(4, 1, 4 * BLOCK);
    let a = kv.create().unwrap();
    assert_eq!(append(&mut kv, a, BLOCK + 1).position, 0);
    assert_eq!(append(&mut kv, a, 3).position, BLOCK + 1);
    assert_eq!(blocks(&kv, a), [0, 1]);
    assert_eq!(kv.append(a).unwrap().cells, [BLOCK + 4]);
    assert_eq!(free(&kv), 2);
}

#[test]
fn position_beyond_n_ctx_is_an_error() {
    let mut kv = everything(2, 1, 40);
    let a = kv.create().unwrap();
    append(&mut kv, a, 40);
    assert_eq!(kv.append(a), Err(KvError::ContextFull { position: 40, n_ctx: 40 }));
    assert_eq!(kv.len(a).unwrap(), 40, "a refused append changes nothing");
}

#[test]
fn a_cut_tail_is_free_again() {
    let mut kv = everything(3, 1, 3 * BLOCK);
    let a = kv.create().unwrap();
    append(&mut kv, a, 3 * BLOCK);
    kv.cut(a, BLOCK + 1).unwrap();
    assert_eq!((kv.len(a).unwrap(), free(&kv)), (BLOCK + 1, 1));
    assert!(matches!(kv.cut(a, BLOCK + 2), Err(KvError::BeyondEnd { .. })));
    append(&mut kv, a, BLOCK);
    assert_eq!(blocks(&kv, a).len(), 3);
}

/// What poisoning fills: cells of blocks that nobody has, and the end of a block that one sequence has alone.
#[test]
fn freed_cells_are_those_that_nobody_holds() {
    let cells = |freed: Result<Vec<FreedCells>, KvError>| {
        freed.unwrap().into_iter().flat_map(|freed| freed.cells).collect::<Vec<u32>>()
    };
    let range = |start: u32, end: u32| (start..end).collect::<Vec<u32>>();
    let mut kv = everything(4, 2, 4 * BLOCK);
    let a = kv.create().unwrap();
    append(&mut kv, a, 2 * BLOCK + 5);
    assert!(cells(kv.cut(a, 2 * BLOCK + 5)).is_empty());
    assert_eq!(cells(kv.cut(a, 2 * BLOCK + 2)), range(2 * BLOCK + 2, 2 * BLOCK + 5));
    assert_eq!(cells(kv.cut(a, BLOCK + 7)), range(BLOCK + 7, 3 * BLOCK));
    let b = kv.fork(a, BLOCK + 3).unwrap();
    assert!(cells(kv.cut(a, 5)).is_empty(), "both still hold the first block, b the second");
    assert_eq!(cells(kv.release(b)), range(BLOCK, 2 * BLOCK));
    assert_eq!(cells(kv.release(a)), range(0, BLOCK));
}

/// A shared prefix costs nothing until someone writes into its last block.
#[test]
fn forks_share_until_they_write() {
    let mut kv = everything(6, 3, 6 * BLOCK);
    let a = kv.create().unwrap();
    append(&mut kv, a, 2 * BLOCK + 5);
    let b = kv.fork(a, 2 * BLOCK + 3).unwrap();
    assert_eq!(free(&kv), 3, "nothing was copied");
    assert_eq!(blocks(&kv, a), blocks(&kv, b));

    let appended = kv.append(b).unwrap();
    assert_eq!((appended.position, appended.copies), (2 * BLOCK + 3, vec![BlockCopy { window: None, from: 2, to: 3 }]));
    assert_eq!(kv.append(a).unwrap().copies, [], "a is alone in its block now");
    assert_eq!(blocks(&kv, a)[..2], blocks(&kv, b)[..2], "whole blocks stay shared");

    kv.release(a).unwrap();
    assert_eq!(free(&kv), 3, "the prefix is b's");
    assert!(matches!(kv.len(a), Err(KvError::UnknownSequence(_))));
    kv.release(b).unwrap();
    assert_eq!(free(&kv), 6);
}

#[test]
fn a_fork_at_a_block_edge_copies_nothing() {
    let mut kv = everything(4, 2, 4 * BLOCK);
    let a = kv.create().unwrap();
    append(&mut kv, a, 2 * BLOCK);
    let b = kv.fork(a, BLOCK).unwrap();
    assert_eq!(kv.append(b).unwrap().copies, []);
    assert_eq!(blocks(&kv, b), [0, 2]);
}

#[test]
fn refusals_change_nothing() {
    let mut kv = everything(3, 2, 3 * BLOCK);
    let a = kv.create().unwrap();
    append(&mut kv, a, 2 * BLOCK + 1);
    let b = kv.create().unwrap();
    assert_eq!(kv.append(b), Err(KvError::NoBlocks { needed: 1, free: 0 }));
    assert_eq!(kv.create(), Err(KvError::NoSequence { limit: 2 }));
    assert_eq!(kv.fork(a, 1), Err(KvError::NoSequence { limit: 2 }));
    assert!(matches!(kv.fork(a, 3 * BLOCK), Err(KvError::BeyondEnd { .. })));
    // A copy that shared blocks need counts too.
    kv.release(b).unwrap();
    let b = kv.fork(a, 2 * BLOCK + 1).unwrap();
    assert_eq!(kv.append(b), Err(KvError::NoBlocks { needed: 1, free: 0 }));
    assert_eq!(blocks(&kv, a), blocks(&kv, b));
}

#[test]
fn a_released_id_never_means_its_successor() {
    let mut kv = everything(2, 1, 2 * BLOCK);
    let old = kv.create().unwrap();
    kv.release(old).unwrap();
    let new = kv.create().unwrap();
    append(&mut kv, new, 3);
    assert!(matches!(kv.cut(old, 0), Err(KvError::UnknownSequence(_))));
    assert!(matches!(kv.append(old), Err(KvError::UnknownSequence(_))));
    assert!(matches!(kv.release(old), Err(KvError::UnknownSequence(_))));
    assert_eq!(kv.len(new).unwrap(), 3);
}
