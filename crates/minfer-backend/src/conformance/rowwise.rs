//! Cases of the operations that are no products: embedding, rope, norms, gates, sums, selection, stores, conversions.
//! Takes the suite; gives it cases of odd sizes.

use super::Suite;
use super::case::{Case, KvData};
use super::products::N_TOKENS;
use minfer_graph::{Activation, DType, Op, RopeStyle, Rows, ValueType};

/// Value types to ask for: quantised ones only where a row is whole blocks.
pub fn output_types(cols: usize) -> &'static [ValueType] {
    if cols.is_multiple_of(32) { &[ValueType::F32, ValueType::Q8, ValueType::Q8x2] } else { &[ValueType::F32] }
}

pub fn run(suite: &mut Suite) {
    for n in N_TOKENS {
        embed(suite, n);
        rope_table(suite, n);
        rms_norm(suite, n);
        rope(suite, n);
        elementwise(suite, n);
        select_rows(suite, n);
        kv_store(suite, n);
        conversions(suite, n);
    }
}

fn embed(suite: &mut Suite, n: usize) {
    for &dtype in DType::ALL.iter().filter(|dtype| **dtype != DType::I32) {
        for cols in [32, 96, 256, 896, 1024].into_iter().filter(|&cols| dtype.row_bytes(cols).is_some()) {
            for &ty in output_types(cols) {
                let scale = suite.random.pick(&[1.0, 25.298_222]);
                let mut case = Case::new(&mut suite.random, Op::Embed { scale }, n, cols, ty);
                let ids: Vec<i32> = (0..n).map(|_| suite.random.below(7) as i32).collect();
                case.integers(Rows::Tokens, 1, &ids);
                case.weights.push(suite.weights.matrix(&mut suite.random, dtype, 7, cols));
                suite.check(&case);
            }
        }
    }
}

fn rope_table(suite: &mut Suite, n: usize) {
    for n_dims in [2u32, 32, 80, 128, 256] {
        for (base, freq_scale, with_factors) in [(1e4, 1.0, false), (1e6, 0.25, false), (5e5, 1.0, true)] {
            let op = Op::RopeTable { n_dims, base, freq_scale };
            let mut case = Case::new(&mut suite.random, op, n, n_dims as usize, ValueType::F32);
            let positions: Vec<i32> = (0..n).map(|_| suite.random.below(40_000) as i32).collect();
            case.integers(Rows::Tokens, 1, &positions);
            if with_factors {
                case.weights.push(suite.weights.vector(&mut suite.random, n_dims as usize / 2, 4.0));
            }
            suite.check(&case);
        }
    }
}

fn rms_norm(suite: &mut Suite, n: usize) {
    for (cols, group) in [(5, 5), (64, 64), (96, 32), (256, 64), (288, 288), (576, 576), (896, 896), (1024, 256)] {
        for &ty in output_types(cols) {
            let op = Op::RmsNorm { eps: suite.random.pick(&[1e-5, 1e-6]), group: group as u32 };
            let mut case = Case::new(&mut suite.random, op, n, cols, ty);
            let spread = suite.random.pick(&[1e-3, 1.0, 300.0]);
            case.floats(cols, ValueType::F32, &suite.random.floats(n * cols, 0.0, spread));
            case.weights.push(suite.weights.vector(&mut suite.random, group, 1.0));
            suite.check_in_place_too(&case);
        }
    }
}

fn rope(suite: &mut Suite, n: usize) {
    for style in [RopeStyle::Adjacent, RopeStyle::Halves] {
        for (head_dim, n_dims, n_head) in
            [(64, 64, 3), (128, 64, 2), (80, 80, 5), (96, 32, 1), (256, 256, 4), (6, 2, 3)]
        {
            let cols = head_dim * n_head;
            for &ty in output_types(cols) {
                let op = Op::Rope { style, head_dim: head_dim as u32, n_dims: n_dims as u32 };
                let mut case = Case::new(&mut suite.random, op, n, cols, ty);
                case.floats(cols, ValueType::F32, &suite.random.floats(n * cols, 0.0, 1.0));
                case.floats(n_dims, ValueType::F32, &rope_rows(suite, n, n_dims));
                suite.check_in_place_too(&case);
            }
        }
    }
}

/// Cosines and sines of random angles, `[n, n_dims]`.
pub fn rope_rows(suite: &mut Suite, n: usize, n_dims: usize) -> Vec<f32> {
    let mut table = Vec::with_capacity(n * n_dims);
    for _ in 0..n {
        let angles: Vec<f32> = (0..n_dims / 2).map(|_| suite.random.unit() * 3.0).collect();
        table.extend(angles.iter().map(|angle| angle.cos()));
        table.extend(angles.iter().map(|angle| angle.sin()));
    }
    table
}

fn elementwise(suite: &mut Suite, n: usize) {
    let gates = [Activation::Silu, Activation::GeluTanh].map(Op::Activate);
    for op in gates.into_iter().chain([Op::Add, Op::Mul]) {
        for cols in [1, 5, 32, 33, 288, 896, 1001] {
            for &ty in output_types(cols) {
                let mut case = Case::new(&mut suite.random, op, n, cols, ty);
                let spread = suite.random.pick(&[1.0, 8.0]);
                let n_inputs = if matches!(op, Op::Activate(_)) { 1 } else { 2 };
                for _ in 0..n_inputs {
                    case.floats(cols, ValueType::F32, &suite.random.floats(n * cols, 0.0, spread));
                }
                suite.check_in_place_too(&case);
            }
        }
    }
}

fn select_rows(suite: &mut Suite, n: usize) {
    for cols in [3, 64, 896] {
        for n_outputs in [0, 1, n] {
            for &ty in output_types(cols) {
                let mut case = Case::new(&mut suite.random, Op::SelectRows, n, cols, ty);
                case.output.shape.rows = Rows::Outputs;
                case.dims.n_outputs = n_outputs as u32;
                case.floats(cols, ValueType::F32, &suite.random.floats(n * cols, 0.0, 1.0));
                let rows: Vec<i32> = (0..n_outputs).map(|_| suite.random.below(n) as i32).collect();
                case.integers(Rows::Outputs, 1, &rows);
                suite.check(&case);
            }
        }
    }
}

fn kv_store(suite: &mut Suite, n: usize) {
    for ty in [ValueType::F32, ValueType::F16] {
        for cols in [32, 80, 192] {
            let n_cells = 96;
            let mut case = Case::new(&mut suite.random, Op::KvStore { layer: 0 }, n, cols, ty);
            case.output.shape.rows = Rows::Fixed(n_cells as u32);
            for _ in 0..2 {
                case.floats(cols, ValueType::F32, &suite.random.floats(n * cols, 0.0, 2.0));
            }
            let cells: Vec<i32> = suite.random.distinct(n, n_cells).into_iter().map(|cell| cell as i32).collect();
            case.integers(Rows::Tokens, 1, &cells);
            case.kv = Some(empty_cells(ty, cols, n_cells));
            suite.check(&case);
        }
    }
}

/// KV regions in which nothing was stored: NaN everywhere.
pub fn empty_cells(ty: ValueType, cols: usize, n_cells: usize) -> KvData {
    let bytes = vec![0xFF; n_cells * ty.row_bytes(cols as u32) as usize];
    KvData { k: bytes.clone(), v: bytes, ty, cols, n_cells }
}

fn conversions(suite: &mut Suite, n: usize) {
    for cols in [32, 96, 896] {
        let spread = suite.random.pick(&[1e-4, 1.0, 1e4]);
        let mut values = suite.random.floats(n * cols, 0.1 * spread, spread);
        values[..32].fill(0.0); // a block without a scale
        for ty in [ValueType::Q8, ValueType::Q8x2] {
            let mut case = Case::new(&mut suite.random, Op::Quantize, n, cols, ty);
            case.floats(cols, ValueType::F32, &values);
            suite.check(&case);
        }
    }
    let mut case = Case::new(&mut suite.random, Op::Copy, n, 7, ValueType::I32);
    let bits: Vec<i32> = (0..n * 7).map(|_| suite.random.bits() as i32).collect();
    case.integers(Rows::Tokens, 7, &bits);
    suite.check(&case);
}
