//! Random numbers and weights. Takes seeds; gives the same values on every machine. Must not know block layouts: a random
//! block is one that decodes to sensible numbers.

use super::case::WeightData;
use minfer_gguf::{decode_row, encode_row};
use minfer_graph::DType;
use std::collections::HashMap;

/// SplitMix64 (Steele, Lea and Flood 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn coin(&mut self) -> bool {
        self.bits() & 1 == 1
    }

    /// In `-1..1`, dense enough that sums round.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// `n` floats around `mean`, mostly within `spread`; one in 16 is larger, as in real activations.
    pub fn floats(&mut self, n: usize, mean: f32, spread: f32) -> Vec<f32> {
        (0..n).map(|_| mean + spread * self.unit() * if self.below(16) == 0 { 4.0 } else { 1.0 }).collect()
    }

    /// `n` distinct numbers in `0..below`, in random order.
    pub fn distinct(&mut self, n: usize, below: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..below).collect();
        for i in 0..n {
            let j = i + self.below(below - i);
            all.swap(i, j);
        }
        all.truncate(n);
        all
    }
}

/// Random weight rows in every format.
pub struct RandomWeights {
    blocks: HashMap<DType, Vec<Vec<u8>>>,
}

impl RandomWeights {
    pub fn new() -> Self {
        Self { blocks: HashMap::new() }
    }

    /// A matrix of valid blocks whose values are of the order of one.
    pub fn matrix(&mut self, random: &mut Random, dtype: DType, rows: usize, cols: usize) -> WeightData {
        let mut bytes = Vec::new();
        if dtype.is_quantized() {
            let pool = self.blocks.entry(dtype).or_insert_with(|| valid_blocks(dtype));
            for _ in 0..rows * cols / dtype.block_elems() {
                bytes.extend(&pool[random.below(pool.len())]);
            }
        } else {
            encode_row(dtype, &random.floats(rows * cols, 0.0, 1.0), &mut bytes).expect("plain formats take any value");
        }
        WeightData { dtype, rows, cols, bytes }
    }

    /// A vector of floats around `mean`.
    pub fn vector(&mut self, random: &mut Random, cols: usize, mean: f32) -> WeightData {
        let mut bytes = Vec::new();
        encode_row(DType::F32, &random.floats(cols, mean, 0.5), &mut bytes).expect("plain formats take any value");
        WeightData { dtype: DType::F32, rows: 1, cols, bytes }
    }
}

/// Blocks of random bytes, kept where all their values are finite and the largest is between 0.05 and 4.
fn valid_blocks(dtype: DType) -> Vec<Vec<u8>> {
    let mut random = Random::new(u64::from(dtype.ggml_id()) + 100);
    let mut values = vec![0.0; dtype.block_elems()];
    let mut kept = Vec::new();
    while kept.len() < 96 {
        let bytes: Vec<u8> = (0..dtype.block_bytes()).map(|_| random.bits() as u8).collect();
        decode_row(dtype, &bytes, &mut values).expect("a whole block decodes");
        let largest = values.iter().fold(0.0f32, |m, v| if v.is_finite() { m.max(v.abs()) } else { f32::INFINITY });
        if (0.05..4.0).contains(&largest) {
            kept.push(bytes);
        }
    }
    kept
}
