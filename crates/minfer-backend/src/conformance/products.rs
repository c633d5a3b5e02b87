//! Cases of plain products: every weight format with every row length it allows. Takes the suite; gives it cases.

use super::Suite;
use super::case::Case;
use super::rowwise::output_types;
use minfer_graph::{DType, Op, Rows, ValueType};

/// Batches: one token, below, at and above the register blocks of kernels.
pub const N_TOKENS: [usize; 9] = [1, 2, 3, 4, 5, 7, 8, 9, 33];

/// Row lengths: whole blocks of 32 or 256 or neither.
const COLS: [usize; 9] = [32, 64, 96, 160, 256, 288, 512, 896, 33];

/// Weight rows, few and many, odd and even.
const ROWS: [usize; 7] = [1, 5, 16, 31, 64, 96, 130];

pub fn run(suite: &mut Suite) {
    for (dtype, cols) in formats() {
        for x in [ValueType::F32, ValueType::Q8, ValueType::Q8x2] {
            for n in N_TOKENS {
                linear(suite, dtype, cols, x, n);
            }
        }
    }
}

/// Every format with every row length that is whole blocks.
pub fn formats() -> impl Iterator<Item = (DType, usize)> {
    let dtypes = DType::ALL.iter().copied().filter(|dtype| *dtype != DType::I32);
    dtypes.flat_map(|dtype| {
        COLS.into_iter().filter(move |&cols| dtype.row_bytes(cols).is_some()).map(move |k| (dtype, k))
    })
}

/// Activations: with a mean, so that no row of results is small by chance and judged too hard.
pub fn activations(suite: &mut Suite, n: usize, cols: usize) -> Vec<f32> {
    suite.random.floats(n * cols, 0.3, 1.0)
}

fn linear(suite: &mut Suite, dtype: DType, cols: usize, x: ValueType, n: usize) {
    if x.is_quantised() && !cols.is_multiple_of(32) {
        return;
    }
    let rows = suite.random.pick(&ROWS);
    for with_bias in [false, true] {
        for &ty in output_types(rows) {
            let mut case = Case::new(&mut suite.random, Op::Linear, n, rows, ty);
            case.floats(cols, x, &activations(suite, n, cols));
            case.weights.push(suite.weights.matrix(&mut suite.random, dtype, rows, cols));
            if with_bias {
                case.weights.push(suite.weights.vector(&mut suite.random, rows, 0.0));
            }
            suite.check(&case);
        }
    }
    for &ty in output_types(rows) {
        let mut case = Case::new(&mut suite.random, Op::LinearAdd, n, rows, ty);
        case.floats(cols, x, &activations(suite, n, cols));
        case.floats(rows, ValueType::F32, &suite.random.floats(n * rows, 0.0, 2.0));
        case.weights.push(suite.weights.matrix(&mut suite.random, dtype, rows, cols));
        suite.check_in_place_too(&case);
    }
    logits(suite, dtype, cols, x, n);
}

/// A product on output rows, of which a batch may want none.
fn logits(suite: &mut Suite, dtype: DType, cols: usize, x: ValueType, n: usize) {
    let n_outputs = suite.random.below(n + 1);
    let mut case = Case::new(&mut suite.random, Op::Linear, n, 37, ValueType::F32);
    case.output.shape.rows = Rows::Outputs;
    case.dims.n_outputs = n_outputs as u32;
    let values = activations(suite, n_outputs, cols);
    case.floats_of(Rows::Outputs, cols, x, &values);
    case.weights.push(suite.weights.matrix(&mut suite.random, dtype, 37, cols));
    suite.check(&case);
}
