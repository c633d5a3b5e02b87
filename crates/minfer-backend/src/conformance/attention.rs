//! Cases of attention: grouped heads, scattered blocks, several sequences, shared prefixes, sliding windows. Takes the
//! suite; gives it cases in which every cell that no token may see is NaN.

use super::Suite;
use super::case::{Case, Input, KvData};
use super::rowwise::{cache_types, empty_cells, output_types};
use crate::reference;
use minfer_graph::{Attention, KV_BLOCK_CELLS, KvSide, Op, Rows, ValueType};

const BLOCK: usize = KV_BLOCK_CELLS as usize;
/// Entries of a sequence's row in the block table.
const BLOCKS_PER_SEQUENCE: usize = 6;
const N_CELLS: usize = 24 * BLOCK;

/// Heads, KV heads, elements of a head.
const SHAPES: [(u32, u32, u32); 8] =
    [(1, 1, 64), (2, 1, 32), (4, 4, 64), (8, 2, 64), (8, 1, 128), (14, 2, 64), (3, 3, 80), (2, 1, 256)];

pub fn run(suite: &mut Suite) {
    for (n_head, n_kv_head, head_dim) in SHAPES {
        for cache in cache_types(head_dim) {
            for window in [None, Some(1), Some(5), Some(32), Some(100)] {
                for n in [1, 2, 7, 9, 33] {
                    let scale = 1.0 / (head_dim as f32).sqrt();
                    let a = Attention { layer: 0, n_head, n_kv_head, head_dim, scale, window };
                    let sequences = suite.random.pick(&[1, 2, 3]);
                    check(suite, &a, cache, sequences, n);
                }
            }
        }
    }
}

/// Where the tokens of a batch are.
pub struct Batch {
    pub positions: Vec<i32>,
    pub sequence_rows: Vec<i32>,
    /// `[sequences + 1, BLOCKS_PER_SEQUENCE]`; the entries of blocks not reached yet, and of the last row, point nowhere.
    pub table: Vec<i32>,
}

fn check(suite: &mut Suite, a: &Attention, cache: ValueType, sequences: usize, n: usize) {
    let batch = batch(suite, sequences, n);
    let kv = filled_cells(suite, a, cache, &batch);
    let cols = (a.n_head * a.head_dim) as usize;
    for &ty in output_types(cols) {
        let mut case = Case::new(&mut suite.random, Op::Attention(*a), n, cols, ty);
        let spread = suite.random.pick(&[1.0, 1.0, 20.0]); // the last makes scores that overflow a careless softmax
        case.floats(cols, ValueType::F32, &suite.random.floats(n * cols, 0.0, spread));
        inputs_after_q(&mut case, &batch);
        case.kv = Some(KvData { k: kv.k.clone(), v: kv.v.clone(), ..kv });
        suite.check_in_place_too(&case);
    }
}

/// Adds views, positions, sequence rows and block table.
pub fn inputs_after_q(case: &mut Case, batch: &Batch) {
    case.inputs.push(Input::View(KvSide::K));
    case.inputs.push(Input::View(KvSide::V));
    case.integers(Rows::Tokens, 1, &batch.positions);
    case.integers(Rows::Tokens, 1, &batch.sequence_rows);
    let rows = (batch.table.len() / BLOCKS_PER_SEQUENCE) as u32;
    case.integers(Rows::Fixed(rows), BLOCKS_PER_SEQUENCE, &batch.table);
}

/// Consecutive tokens of each sequence, after a random number of cached ones; sequences share their first block.
pub fn batch(suite: &mut Suite, sequences: usize, n: usize) -> Batch {
    let blocks = suite.random.distinct(sequences * BLOCKS_PER_SEQUENCE, N_CELLS / BLOCK);
    let mut table = vec![i32::MIN; (sequences + 1) * BLOCKS_PER_SEQUENCE];
    let (mut positions, mut sequence_rows) = (Vec::new(), Vec::new());
    for sequence in 0..sequences {
        let tokens = n / sequences + usize::from(sequence < n % sequences);
        let cached = suite.random.below(BLOCKS_PER_SEQUENCE * BLOCK - tokens);
        for position in cached..cached + tokens {
            positions.push(position as i32);
            sequence_rows.push(sequence as i32);
        }
        for block in 0..(cached + tokens).div_ceil(BLOCK) {
            let own = blocks[sequence * BLOCKS_PER_SEQUENCE + block];
            table[sequence * BLOCKS_PER_SEQUENCE + block] = if block == 0 { blocks[0] } else { own } as i32;
        }
    }
    Batch { positions, sequence_rows, table }
}

/// Random keys and values in the cells that some token sees, NaN in all others.
fn filled_cells(suite: &mut Suite, a: &Attention, cache: ValueType, batch: &Batch) -> KvData {
    let cols = (a.n_kv_head * a.head_dim) as usize;
    let mut kv = empty_cells(cache, cols, N_CELLS);
    let row_bytes = cache.row_bytes(cols as u32) as usize;
    for (&position, &sequence) in batch.positions.iter().zip(&batch.sequence_rows) {
        let first = a.window.map_or(0, |window| (position + 1 - window as i32).max(0));
        for i in first as usize..=position as usize {
            let block = batch.table[sequence as usize * BLOCKS_PER_SEQUENCE + i / BLOCK] as usize;
            let start = (block * BLOCK + i % BLOCK) * row_bytes;
            if kv.k[start..start + row_bytes].iter().all(|&byte| byte == 0xFF) {
                for side in [&mut kv.k, &mut kv.v] {
                    let row = suite.random.floats(cols, 0.1, 1.0);
                    let bytes = match cache {
                        ValueType::F16 => {
                            let halves: Vec<half::f16> = row.iter().map(|&v| half::f16::from_f32(v)).collect();
                            bytemuck::cast_slice(&halves).to_vec()
                        }
                        ValueType::Q8_0 => {
                            let mut bytes = vec![0; row_bytes];
                            reference::cells::encode(&row, &mut bytes);
                            bytes
                        }
                        _ => bytemuck::cast_slice(&row).to_vec(),
                    };
                    side[start..start + row_bytes].copy_from_slice(&bytes);
                }
            }
        }
    }
    kv
}
