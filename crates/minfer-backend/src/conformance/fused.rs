//! Cases of the fused products: gated feed-forward, and projections with bias, norms, rope and KV store. Takes the suite;
//! gives it cases.

use super::Suite;
use super::case::{Case, WeightData};
use super::products::{N_TOKENS, activations, formats};
use super::rowwise::{empty_cells, output_types, rope_rows};
use minfer_graph::{Activation, DType, Op, Qkv, RopeStyle, Rows, ValueType};

pub fn run(suite: &mut Suite) {
    let formats: Vec<_> = formats().filter(|(_, cols)| [32, 96, 256, 896].contains(cols)).collect();
    for (dtype, cols) in formats {
        for x in [ValueType::F32, ValueType::Q8, ValueType::Q8x2] {
            for n in N_TOKENS {
                gated(suite, [dtype, dtype], cols, x, n);
                qkv(suite, [dtype, dtype, dtype], cols, x, n);
            }
            // As files mix them: some rows of a layer in a wider format.
            let wider = [DType::Q6_K, DType::Q8_0, DType::Q5_0, DType::F16].into_iter();
            for other in wider.filter(|wider| wider.row_bytes(cols).is_some() && *wider != dtype) {
                let n = suite.random.pick(&N_TOKENS);
                gated(suite, [dtype, other], cols, x, n);
                qkv(suite, [dtype, dtype, other], cols, x, n);
            }
        }
    }
}

fn matrix(suite: &mut Suite, dtype: DType, rows: usize, cols: usize) -> WeightData {
    suite.weights.matrix(&mut suite.random, dtype, rows, cols)
}

fn gated(suite: &mut Suite, dtypes: [DType; 2], cols: usize, x: ValueType, n: usize) {
    let rows = suite.random.pick(&[1, 16, 33, 64, 160]);
    let activation = suite.random.pick(&[Activation::Silu, Activation::GeluTanh]);
    for &ty in output_types(rows) {
        let mut case = Case::new(&mut suite.random, Op::GatedLinear { activation }, n, rows, ty);
        // Small values: a gate is most sensitive around zero.
        let values: Vec<f32> = activations(suite, n, cols).into_iter().map(|v| v * 0.2).collect();
        case.floats(cols, x, &values);
        case.weights.extend(dtypes.map(|dtype| matrix(suite, dtype, rows, cols)));
        suite.check(&case);
    }
}

fn qkv(suite: &mut Suite, dtypes: [DType; 3], cols: usize, x: ValueType, n: usize) {
    let (n_head, n_kv_head) = suite.random.pick(&[(1, 1), (2, 1), (4, 4), (6, 2)]);
    let (head_dim, rope_dims) = suite.random.pick(&[(16, 16), (32, 32), (32, 8), (24, 24)]);
    let op = Qkv {
        layer: 0,
        n_head,
        n_kv_head,
        head_dim,
        bias: suite.random.coin(),
        head_norm_eps: suite.random.coin().then_some(1e-6),
        rope: suite.random.pick(&[RopeStyle::Adjacent, RopeStyle::Halves]),
        rope_dims,
    };
    let (q_cols, kv_cols) = ((n_head * head_dim) as usize, (n_kv_head * head_dim) as usize);
    let cache = suite.random.pick(&[ValueType::F32, ValueType::F16]);
    for &ty in output_types(q_cols) {
        let mut case = Case::new(&mut suite.random, Op::QkvStore(op), n, q_cols, ty);
        case.floats(cols, x, &activations(suite, n, cols));
        case.floats(rope_dims as usize, ValueType::F32, &rope_rows(suite, n, rope_dims as usize));
        let cells: Vec<i32> = suite.random.distinct(n, 64).into_iter().map(|cell| cell as i32).collect();
        case.integers(Rows::Tokens, 1, &cells);
        let widths = [q_cols, kv_cols, kv_cols];
        case.weights.extend(dtypes.iter().zip(widths).map(|(&dtype, rows)| matrix(suite, dtype, rows, cols)));
        if op.bias {
            case.weights.extend(widths.map(|width| suite.weights.vector(&mut suite.random, width, 0.0)));
        }
        if op.head_norm_eps.is_some() {
            case.weights
                .extend([1.0, 1.0].map(|mean| suite.weights.vector(&mut suite.random, head_dim as usize, mean)));
        }
        case.kv = Some(empty_cells(cache, kv_cols, 64));
        suite.check(&case);
    }
}
