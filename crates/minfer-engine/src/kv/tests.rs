//! Cells, blocks and sequences.

use super::*;

const BLOCK: u32 = KV_BLOCK_CELLS;

#[test]
fn positions_fill_blocks_in_order() {
    let mut kv = KvCache::new(4 * BLOCK, 1, 4 * BLOCK);
    let a = kv.create().unwrap();
    assert_eq!(kv.append(a, BLOCK + 1).unwrap().position, 0);
    assert_eq!(kv.append(a, 3).unwrap().position, BLOCK + 1);
    assert_eq!(kv.blocks(a).unwrap(), [0, 1]);
    assert_eq!(kv.cell(a, BLOCK + 2).unwrap(), BLOCK + 2);
    assert_eq!(kv.free_blocks(), 2);
}

#[test]
fn position_beyond_n_ctx_is_an_error() {
    let mut kv = KvCache::new(2 * BLOCK, 1, 40);
    let a = kv.create().unwrap();
    kv.append(a, 40).unwrap();
    assert_eq!(kv.append(a, 1), Err(KvError::ContextFull { position: 40, n_ctx: 40 }));
    assert_eq!(kv.append(a, u32::MAX), Err(KvError::ContextFull { position: 40, n_ctx: 40 }));
    assert_eq!(kv.len(a).unwrap(), 40, "a refused append changes nothing");
    assert!(matches!(kv.cell(a, 40), Err(KvError::BeyondEnd { .. })));
}

#[test]
fn a_cut_tail_is_free_again() {
    let mut kv = KvCache::new(3 * BLOCK, 1, 3 * BLOCK);
    let a = kv.create().unwrap();
    kv.append(a, 3 * BLOCK).unwrap();
    kv.cut(a, BLOCK + 1).unwrap();
    assert_eq!((kv.len(a).unwrap(), kv.free_blocks()), (BLOCK + 1, 1));
    assert!(matches!(kv.cut(a, BLOCK + 2), Err(KvError::BeyondEnd { .. })));
    kv.append(a, BLOCK).unwrap();
    assert_eq!(kv.blocks(a).unwrap().len(), 3);
}

/// What poisoning fills: cells of blocks that nobody has, and the end of a block that one sequence has alone.
#[test]
fn freed_cells_are_those_that_nobody_holds() {
    let cells = |freed: Result<Vec<Range<u32>>, KvError>| freed.unwrap().into_iter().flatten().collect::<Vec<u32>>();
    let range = |start: u32, end: u32| (start..end).collect::<Vec<u32>>();
    let mut kv = KvCache::new(4 * BLOCK, 2, 4 * BLOCK);
    let a = kv.create().unwrap();
    kv.append(a, 2 * BLOCK + 5).unwrap();
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
    let mut kv = KvCache::new(6 * BLOCK, 3, 6 * BLOCK);
    let a = kv.create().unwrap();
    kv.append(a, 2 * BLOCK + 5).unwrap();
    let b = kv.fork(a, 2 * BLOCK + 3).unwrap();
    assert_eq!(kv.free_blocks(), 3, "nothing was copied");
    assert_eq!(kv.blocks(a).unwrap(), kv.blocks(b).unwrap());

    let appended = kv.append(b, 1).unwrap();
    assert_eq!((appended.position, appended.copies), (2 * BLOCK + 3, vec![BlockCopy { from: 2, to: 3 }]));
    assert_eq!(kv.append(a, 1).unwrap().copies, [], "a is alone in its block now");
    assert_eq!(kv.blocks(a).unwrap()[..2], kv.blocks(b).unwrap()[..2], "whole blocks stay shared");

    kv.release(a).unwrap();
    assert_eq!(kv.free_blocks(), 3, "the prefix is b's");
    assert!(matches!(kv.len(a), Err(KvError::UnknownSequence(_))));
    kv.release(b).unwrap();
    assert_eq!(kv.free_blocks(), 6);
}

#[test]
fn a_fork_at_a_block_edge_copies_nothing() {
    let mut kv = KvCache::new(4 * BLOCK, 2, 4 * BLOCK);
    let a = kv.create().unwrap();
    kv.append(a, 2 * BLOCK).unwrap();
    let b = kv.fork(a, BLOCK).unwrap();
    assert_eq!(kv.append(b, 1).unwrap().copies, []);
    assert_eq!(kv.blocks(b).unwrap(), [0, 2]);
}

#[test]
fn refusals_change_nothing() {
    let mut kv = KvCache::new(3 * BLOCK, 2, 3 * BLOCK);
    let a = kv.create().unwrap();
    kv.append(a, 2 * BLOCK + 1).unwrap();
    let b = kv.create().unwrap();
    assert_eq!(kv.append(b, 1), Err(KvError::NoBlocks { needed: 1, free: 0 }));
    assert_eq!(kv.create(), Err(KvError::NoSequence { limit: 2 }));
    assert_eq!(kv.fork(a, 1), Err(KvError::NoSequence { limit: 2 }));
    assert!(matches!(kv.fork(a, 3 * BLOCK), Err(KvError::BeyondEnd { .. })));
    // A copy that shared blocks need counts too.
    kv.release(b).unwrap();
    let b = kv.fork(a, 2 * BLOCK + 1).unwrap();
    assert_eq!(kv.append(b, 1), Err(KvError::NoBlocks { needed: 1, free: 0 }));
    assert_eq!(kv.blocks(a).unwrap(), kv.blocks(b).unwrap());
}

#[test]
fn a_released_id_never_means_its_successor() {
    let mut kv = KvCache::new(2 * BLOCK, 1, 2 * BLOCK);
    let old = kv.create().unwrap();
    kv.release(old).unwrap();
    let new = kv.create().unwrap();
    kv.append(new, 3).unwrap();
    assert!(matches!(kv.cut(old, 0), Err(KvError::UnknownSequence(_))));
    assert!(matches!(kv.append(old, 1), Err(KvError::UnknownSequence(_))));
    assert!(matches!(kv.release(old), Err(KvError::UnknownSequence(_))));
    assert_eq!(kv.len(new).unwrap(), 3);
}
