//! Layers with a window: what is held is what is seen, whatever is appended, cut, forked and released.

use super::*;
use minfer_graph::{CacheType, Fusion, GraphKind, GraphParams, KV_BLOCK_CELLS};
use std::collections::HashMap;

const BLOCK: u32 = KV_BLOCK_CELLS;

fn params(n_ctx: u32, batch: u32, n_sequences: u32) -> GraphParams {
    GraphParams {
        kind: GraphKind::Prefill,
        token_capacity: batch,
        batch_capacity: batch,
        output_capacity: 1,
        sequence_capacity: n_sequences,
        n_ctx,
        n_cells: n_ctx.next_multiple_of(BLOCK) * n_sequences,
        cache_type: CacheType::F16,
        fusion: Fusion::ALL,
        weights_version: 0,
    }
}

/// Layers that see everything, and layers with a window.
fn cache(window: u32, params: &GraphParams) -> KvCache {
    let kinds = [None, Some(window)].map(|window| KvKind::new(params, window));
    KvCache::new(kinds, params.sequence_capacity, params.n_ctx)
}

/// Numbers that look random: SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % u64::from(n)) as u32
    }
}

/// A cache with what its cells hold: a number per token that was ever written.
struct Lab {
    window: u32,
    batch: u32,
    kv: KvCache,
    cells: HashMap<(Option<u32>, u32), u32>,
    /// Per sequence its tokens, and the greatest length since it was empty or forked.
    sequences: Vec<(SequenceId, Vec<u32>, u32)>,
    written: u32,
}

impl Lab {
    fn forget(&mut self, freed: Vec<FreedCells>) {
        for FreedCells { window, cells } in freed {
            for cell in cells {
                self.cells.remove(&(window, cell));
            }
        }
    }

    /// Writes a batch to the end of a sequence; then each of its tokens looks at all that it sees.
    fn step(&mut self, at: usize, n: u32) {
        let id = self.sequences[at].0;
        let kinds = [None, Some(self.window)];
        for _ in 0..n {
            let appended = self.kv.append(id).unwrap();
            self.forget(appended.freed);
            for BlockCopy { window, from, to } in appended.copies {
                for i in 0..BLOCK {
                    let content = self.cells.get(&(window, from * BLOCK + i)).copied();
                    content.and_then(|content| self.cells.insert((window, to * BLOCK + i), content));
                }
            }
            self.written += 1;
            for (window, cell) in kinds.into_iter().zip(appended.cells) {
                self.cells.insert((window, cell), self.written);
            }
            self.sequences[at].1.push(self.written);
        }
        let (_, tokens, greatest) = &mut self.sequences[at];
        let len = tokens.len() as u32;
        *greatest = len.max(*greatest);
        for (window, blocks) in kinds.into_iter().zip(self.kv.blocks(id).unwrap()) {
            let table: HashMap<u32, u32> = blocks.collect();
            for position in len - n..len {
                let first = window.map_or(0, |window| (position + 1).saturating_sub(window));
                for seen in first..=position {
                    let cell = table[&(seen / BLOCK)] * BLOCK + seen % BLOCK;
                    assert_eq!(self.cells.get(&(window, cell)), Some(&tokens[seen as usize]), "{position} sees {seen}");
                }
            }
        }
    }

    /// Cuts, if it can be done; it must be possible within a batch of the greatest length.
    fn cut(&mut self, at: usize, len: u32) {
        let (id, ref tokens, greatest) = self.sequences[at];
        match self.kv.cut(id, len) {
            Ok(freed) => {
                self.forget(freed);
                let kept = &mut self.sequences[at];
                kept.1.truncate(len as usize);
                kept.2 = if len == 0 { 0 } else { greatest };
            }
            Err(KvError::WindowPassed { least, got, .. }) => {
                assert!(got == len && len < least && len > 0 && len + self.batch < greatest, "{len} of {greatest}");
                assert_eq!(self.kv.len(id).unwrap(), tokens.len() as u32, "a refused cut changes nothing");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Windows and batches of all alignments, one of them larger than the context.
#[test]
fn what_a_token_sees_is_held() {
    let mut refused = 0;
    for (round, (window, batch)) in
        [(1, 1), (1, 40), (2, 7), (31, 2), (32, 1), (33, 64), (70, 5), (100, 33), (400, 64)].into_iter().enumerate()
    {
        let params = params(300, batch, 3);
        let kv = cache(window, &params);
        let mut lab = Lab { window, batch, kv, cells: HashMap::new(), sequences: Vec::new(), written: 0 };
        let mut dice = Dice(round as u64);
        for _ in 0..600 {
            let n_sequences = lab.sequences.len() as u32;
            if n_sequences == 0 {
                lab.sequences.push((lab.kv.create().unwrap(), Vec::new(), 0));
                continue;
            }
            let at = dice.below(n_sequences) as usize;
            let len = lab.sequences[at].1.len() as u32;
            match dice.below(10) {
                0 if n_sequences < 3 => {
                    let keep = len.saturating_sub(dice.below(1 + len.min(2 * batch + 40)));
                    match lab.kv.fork(lab.sequences[at].0, keep) {
                        Ok(fork) => {
                            let (_, tokens, greatest) = &lab.sequences[at];
                            let fork = (fork, tokens[..keep as usize].to_vec(), if keep == 0 { 0 } else { *greatest });
                            lab.sequences.push(fork);
                        }
                        Err(error) => {
                            assert!(matches!(error, KvError::WindowPassed { .. }), "{error}");
                            refused += 1;
                        }
                    }
                }
                1 if n_sequences > 1 => {
                    let (id, ..) = lab.sequences.swap_remove(at);
                    let freed = lab.kv.release(id).unwrap();
                    lab.forget(freed);
                }
                2 => lab.cut(at, len.saturating_sub(dice.below(1 + len.min(3 * batch + 40)))),
                3 if len > 250 => lab.cut(at, 0),
                _ => {
                    let n = (1 + dice.below(batch)).min(300 - len);
                    if n > 0 {
                        lab.step(at, n);
                    }
                }
            }
        }
        for (id, ..) in std::mem::take(&mut lab.sequences) {
            lab.kv.release(id).unwrap();
        }
        let free: Vec<usize> = lab.kv.free_blocks().collect();
        let all = [None, Some(window)].map(|window| (params.n_cells_of(window) / BLOCK) as usize);
        assert_eq!(free, all, "everything came back");
    }
    assert!(refused > 0, "some forks came too late");
}

/// The promise of [`KvCache::cut`] is tight: a batch back is always possible, at some lengths not a position more.
#[test]
fn a_sequence_can_be_cut_back_by_a_batch() {
    let (window, batch) = (50, 48);
    let params = params(2000, batch, 1);
    let mut reach = Vec::new();
    for len in 300..300 + 2 * BLOCK {
        let mut kv = cache(window, &params);
        let id = kv.create().unwrap();
        for _ in 0..len {
            kv.append(id).unwrap();
        }
        let Err(KvError::WindowPassed { least, .. }) = kv.cut(id, 1) else { panic!("the first positions are gone") };
        kv.cut(id, least).unwrap();
        assert_eq!(kv.cut(id, least - 1), Err(KvError::WindowPassed { sequence: 0, least, got: least - 1 }));
        assert!(matches!(kv.fork(id, least - 1), Err(KvError::WindowPassed { .. })));
        reach.push(len - least);
        // And the way from there on is open again.
        for _ in 0..batch + BLOCK {
            kv.append(id).unwrap();
        }
        kv.cut(id, 0).unwrap();
        assert_eq!(kv.append(id).unwrap().position, 0);
    }
    assert_eq!(reach.iter().min(), Some(&batch));
}

#[test]
fn forks_keep_what_one_of_them_gave_back() {
    let params = params(10 * BLOCK, 1, 2);
    let mut kv = cache(BLOCK, &params);
    let held = |kv: &KvCache, id| kv.blocks(id).unwrap().last().unwrap().collect::<Vec<_>>();
    assert_eq!(params.blocks_held(Some(BLOCK)), 2);
    let a = kv.create().unwrap();
    for _ in 0..2 * BLOCK {
        kv.append(a).unwrap();
    }
    let b = kv.fork(a, 2 * BLOCK).unwrap();
    // `a` goes on and gives the first block back: `b` still has it, so that its cells are not freed.
    assert_eq!(kv.append(a).unwrap().freed, []);
    assert_eq!((held(&kv, a), held(&kv, b)), (vec![(1, 1), (2, 2)], vec![(0, 0), (1, 1)]));
    let freed = kv.append(b).unwrap().freed;
    assert_eq!(freed, [FreedCells { window: Some(BLOCK), cells: 0..BLOCK }]);
    assert_eq!(held(&kv, b), [(1, 1), (2, 0)], "the cells are in use again");
    // A fork of nothing begins anew.
    kv.release(b).unwrap();
    let c = kv.fork(a, 0).unwrap();
    kv.append(c).unwrap();
    assert_eq!(held(&kv, c), [(0, 0)]);
}
