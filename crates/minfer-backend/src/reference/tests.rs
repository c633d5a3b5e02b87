//! The reference backend against the formulas of `op.rs`, written once more in f64 and without any of its code.

use super::*;
use crate::conformance::case::{Case, Input, KvData, WeightData};
use crate::conformance::random::{Random, RandomWeights};
use crate::conformance::rig;
use minfer_graph::{Activation, Attention, DType, KvSide, Qkv, RopeStyle, Rows};

fn run(case: &Case) -> Vec<f32> {
    let outcome = rig::run(&mut ReferenceBackend::new(), case, None).unwrap();
    bytemuck::pod_collect_to_vec(&outcome.value)
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| f64::from(v)).collect()
}

fn assert_close(got: &[f32], expected: &[f64]) {
    assert_eq!(got.len(), expected.len());
    let largest = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    for (i, (&got, expected)) in got.iter().zip(expected).enumerate() {
        assert!((f64::from(got) - expected).abs() <= 3e-7 * largest, "element {i}: {got}, expected {expected}");
    }
}

fn f32_matrix(random: &mut Random, rows: usize, cols: usize) -> (WeightData, Vec<f64>) {
    let weight = RandomWeights::new().matrix(random, DType::F32, rows, cols);
    let values: Vec<f32> = bytemuck::pod_collect_to_vec(&weight.bytes);
    (weight, wide(&values))
}

#[test]
fn linear_is_x_w_transposed_plus_bias() {
    let mut random = Random::new(5);
    let (n, k, out) = (3, 4864, 7);
    let x = random.floats(n * k, 0.1, 1.0);
    let (weight, w) = f32_matrix(&mut random, out, k);
    let (bias, b) = f32_matrix(&mut random, 1, out);
    let mut case = Case::new(&mut random, Op::Linear, n, out, ValueType::F32);
    case.floats(k, ValueType::F32, &x);
    case.weights = vec![weight, bias];
    let x = wide(&x);
    let y = |t: usize, o: usize| (0..k).map(|i| x[t * k + i] * w[o * k + i]).sum::<f64>() + b[o];
    assert_close(&run(&case), &(0..n * out).map(|i| y(i / out, i % out)).collect::<Vec<_>>());
}

#[test]
fn rms_norm_divides_each_group_by_its_root_mean_square() {
    let mut random = Random::new(6);
    let (n, cols, group) = (2, 96, 32);
    let x = random.floats(n * cols, 0.3, 2.0);
    let (weight, w) = f32_matrix(&mut random, 1, group);
    let op = Op::RmsNorm { eps: 1e-5, group: group as u32 };
    let mut case = Case::new(&mut random, op, n, cols, ValueType::F32);
    case.floats(cols, ValueType::F32, &x);
    case.weights = vec![weight];
    let x = wide(&x);
    let mut expected = vec![];
    for run in x.chunks(group) {
        let mean = run.iter().map(|v| v * v).sum::<f64>() / group as f64;
        expected.extend(run.iter().zip(&w).map(|(v, w)| v / (mean + f64::from(1e-5f32)).sqrt() * w));
    }
    assert_close(&run(&case), &expected);
}

#[test]
fn rope_rotates_by_position_times_frequency() {
    let mut random = Random::new(7);
    let (base, freq_scale, n_dims, head_dim) = (1e4f32, 0.5f32, 32u32, 48usize);
    let positions = [0, 1, 31_999];
    let mut table = Case::new(
        &mut random,
        Op::RopeTable { n_dims, base, freq_scale },
        positions.len(),
        n_dims as usize,
        ValueType::F32,
    );
    table.integers(Rows::Tokens, 1, &positions);
    let table = run(&table);
    let x = random.floats(3 * 2 * head_dim, 0.0, 1.0);
    for style in [RopeStyle::Adjacent, RopeStyle::Halves] {
        let op = Op::Rope { style, head_dim: head_dim as u32, n_dims };
        let mut case = Case::new(&mut random, op, 3, 2 * head_dim, ValueType::F32);
        case.floats(2 * head_dim, ValueType::F32, &x);
        case.floats(n_dims as usize, ValueType::F32, &table);
        let mut expected = wide(&x);
        for (token, position) in positions.into_iter().enumerate() {
            for head in 0..2 {
                let start = token * 2 * head_dim + head * head_dim;
                for i in 0..16 {
                    let angle = f64::from(position) * 0.5 / 1e4f64.powf(2.0 * i as f64 / 32.0);
                    let (a, b) = if style == RopeStyle::Adjacent { (2 * i, 2 * i + 1) } else { (i, i + 16) };
                    let (x, y) = (expected[start + a], expected[start + b]);
                    expected[start + a] = x * angle.cos() - y * angle.sin();
                    expected[start + b] = x * angle.sin() + y * angle.cos();
                }
            }
        }
        assert_close(&run(&case), &expected);
    }
}

#[test]
fn gates_follow_their_formulas() {
    let mut random = Random::new(8);
    let x = random.floats(64, 0.0, 6.0);
    for activation in [Activation::Silu, Activation::GeluTanh] {
        let mut case = Case::new(&mut random, Op::Activate(activation), 2, 32, ValueType::F32);
        case.floats(32, ValueType::F32, &x);
        let formula = |x: &f64| match activation {
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::GeluTanh => {
                0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
            }
        };
        assert_close(&run(&case), &wide(&x).iter().map(formula).collect::<Vec<_>>());
    }
}

/// Two sequences that share their first block, in scattered blocks; `rows` are the tokens asked for.
struct Cache {
    k: Vec<f32>,
    v: Vec<f32>,
    table: Vec<i32>,
}

fn attend(cache: &Cache, a: Attention, q: &[f32], tokens: &[(i32, i32)]) -> (Vec<f32>, Vec<f64>) {
    let cols = (a.n_kv_head * a.head_dim) as usize;
    let width = (a.n_head * a.head_dim) as usize;
    let mut case = Case::new(&mut Random::new(1), Op::Attention(a), tokens.len(), width, ValueType::F32);
    case.floats(width, ValueType::F32, q);
    case.inputs.extend([Input::View(KvSide::K), Input::View(KvSide::V)]);
    case.integers(Rows::Tokens, 1, &tokens.iter().map(|t| t.1).collect::<Vec<_>>());
    case.integers(Rows::Tokens, 1, &tokens.iter().map(|t| t.0).collect::<Vec<_>>());
    case.integers(Rows::Fixed(2), cache.table.len() / 2, &cache.table);
    case.kv = Some(KvData {
        k: bytemuck::cast_slice(&cache.k).to_vec(),
        v: bytemuck::cast_slice(&cache.v).to_vec(),
        ty: ValueType::F32,
        cols,
        n_cells: cache.k.len() / cols,
    });
    let dim = a.head_dim as usize;
    let mut expected = vec![0.0; q.len()];
    for (t, &(sequence, position)) in tokens.iter().enumerate() {
        let seen: Vec<usize> = (0..=position)
            .filter(|i| a.window.is_none_or(|window| position - i < window as i32))
            .map(|i| {
                cache.table[sequence as usize * cache.table.len() / 2 + i as usize / 32] as usize * 32 + i as usize % 32
            })
            .collect();
        for head in 0..a.n_head as usize {
            let column = head / (a.n_head / a.n_kv_head) as usize * dim;
            let dot = |cell: usize| -> f64 {
                (0..dim)
                    .map(|i| f64::from(q[t * width + head * dim + i]) * f64::from(cache.k[cell * cols + column + i]))
                    .sum()
            };
            let weights: Vec<f64> = seen.iter().map(|&cell| (dot(cell) * f64::from(a.scale)).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for i in 0..dim {
                let mixed = seen.iter().zip(&weights).map(|(cell, w)| w * f64::from(cache.v[cell * cols + column + i]));
                expected[t * width + head * dim + i] = mixed.sum::<f64>() / sum;
            }
        }
    }
    (run(&case), expected)
}

#[test]
fn attention_with_groups_windows_and_shared_prefixes() {
    let mut random = Random::new(9);
    for (n_head, n_kv_head, window) in [(4, 2, None), (8, 1, Some(7)), (3, 3, Some(40)), (2, 2, Some(1))] {
        let a = Attention { layer: 0, n_head, n_kv_head, head_dim: 16, scale: 0.25, window };
        let cols = (n_kv_head * 16) as usize;
        let cache = Cache {
            k: random.floats(8 * 32 * cols, 0.0, 1.0),
            v: random.floats(8 * 32 * cols, 0.0, 1.0),
            table: vec![6, 1, 3, 6, 0, -1], // block 6 is the prefix of both
        };
        let q = random.floats(4 * (n_head * 16) as usize, 0.0, 1.0);
        let (got, expected) = attend(&cache, a, &q, &[(0, 0), (0, 70), (1, 31), (1, 50)]);
        assert_close(&got, &expected);
        // The same query at the same place of the shared block sees the same keys.
        let twice = [&q[..q.len() / 4], &q[..q.len() / 4]].concat();
        let (got, _) = attend(&cache, a, &twice, &[(0, 20), (1, 20)]);
        assert_eq!(got[..got.len() / 2], got[got.len() / 2..]);
    }
}

#[test]
fn fused_operations_equal_their_parts_bitwise() {
    let mut random = Random::new(10);
    let (n, k, rows) = (5, 96, 64);
    let x = random.floats(n * k, 0.1, 1.0);
    let mut weights = RandomWeights::new();
    let mut matrix = |random: &mut Random| weights.matrix(random, DType::Q5_0, rows, k);
    let [gate, up] = [matrix(&mut random), matrix(&mut random)];
    let copy = |w: &WeightData| WeightData { bytes: w.bytes.clone(), ..*w };
    let linear = |weight: &WeightData| {
        let mut case = Case::new(&mut Random::new(2), Op::Linear, n, rows, ValueType::F32);
        case.floats(k, ValueType::F32, &x);
        case.weights = vec![copy(weight)];
        run(&case)
    };
    let binary = |op: Op, a: &[f32], b: &[f32]| {
        let mut case = Case::new(&mut Random::new(2), op, n, rows, ValueType::F32);
        case.floats(rows, ValueType::F32, a);
        if !matches!(op, Op::Activate(_)) {
            case.floats(rows, ValueType::F32, b);
        }
        run(&case)
    };
    let mut case = Case::new(&mut random, Op::GatedLinear { activation: Activation::Silu }, n, rows, ValueType::F32);
    case.floats(k, ValueType::F32, &x);
    case.weights = vec![copy(&gate), copy(&up)];
    let gated = binary(Op::Activate(Activation::Silu), &linear(&gate), &[]);
    assert_eq!(run(&case), binary(Op::Mul, &gated, &linear(&up)));

    let residual = random.floats(n * rows, 0.0, 1.0);
    let mut case = Case::new(&mut random, Op::LinearAdd, n, rows, ValueType::F32);
    case.floats(k, ValueType::F32, &x);
    case.floats(rows, ValueType::F32, &residual);
    case.weights = vec![copy(&up)];
    assert_eq!(run(&case), binary(Op::Add, &residual, &linear(&up)));
}

#[test]
fn qkv_store_is_projection_norm_rope_and_store() {
    let mut random = Random::new(11);
    let (n, k, head_dim) = (3, 64, 16);
    let x = random.floats(n * k, 0.1, 1.0);
    let table = random.floats(n * 16, 0.0, 1.0); // any numbers will do for cosines and sines
    let (eps, rope, rope_dims) = (1e-6, RopeStyle::Halves, 16);
    let qkv =
        Qkv { layer: 0, n_head: 4, n_kv_head: 2, head_dim, bias: true, head_norm_eps: Some(eps), rope, rope_dims };
    let (q_cols, kv_cols) = (64, 32);
    let mut case = Case::new(&mut random, Op::QkvStore(qkv), n, q_cols, ValueType::F32);
    case.floats(k, ValueType::F32, &x);
    case.floats(16, ValueType::F32, &table);
    case.integers(Rows::Tokens, 1, &[5, 0, 63]);
    let mut expected = vec![];
    let norms: Vec<_> = (0..2).map(|_| f32_matrix(&mut random, 1, 16)).collect();
    let parts: Vec<_> = [q_cols, kv_cols, kv_cols]
        .map(|rows| (f32_matrix(&mut random, rows, k), f32_matrix(&mut random, 1, rows)))
        .into();
    for (side, ((_, w), (_, b))) in parts.iter().enumerate() {
        let cols = b.len();
        let mut y: Vec<f64> = (0..n * cols)
            .map(|i| (0..k).map(|j| f64::from(x[i / cols * k + j]) * w[i % cols * k + j]).sum::<f64>() + b[i % cols])
            .collect();
        for (index, head) in y.chunks_mut(16).enumerate().filter(|_| side < 2) {
            let mean = head.iter().map(|v| v * v).sum::<f64>() / 16.0 + f64::from(eps);
            head.iter_mut().zip(&norms[side].1).for_each(|(v, w)| *v = *v / mean.sqrt() * w);
            let row = &table[index / (cols / 16) * 16..];
            for i in 0..8 {
                let (a, b, c, s) = (head[i], head[i + 8], f64::from(row[i]), f64::from(row[i + 8]));
                (head[i], head[i + 8]) = (a * c - b * s, a * s + b * c);
            }
        }
        expected.push(y);
    }
    let (matrices, biases): (Vec<_>, Vec<_>) = parts.into_iter().map(|((w, _), (b, _))| (w, b)).unzip();
    case.weights = matrices.into_iter().chain(biases).chain(norms.into_iter().map(|(w, _)| w)).collect();
    let empty = vec![0xFF; 64 * kv_cols * 4];
    case.kv = Some(KvData { k: empty.clone(), v: empty, ty: ValueType::F32, cols: kv_cols, n_cells: 64 });
    let outcome = rig::run(&mut ReferenceBackend::new(), &case, None).unwrap();
    assert_close(&bytemuck::pod_collect_to_vec(&outcome.value), &expected[0]);
    for (side, bytes) in [(1, outcome.k), (2, outcome.v)] {
        let cells: Vec<f32> = bytemuck::pod_collect_to_vec(&bytes);
        let stored: Vec<f32> =
            [5, 0, 63].iter().flat_map(|cell| &cells[cell * kv_cols..][..kv_cols]).copied().collect();
        assert_close(&stored, &expected[side]);
        assert_eq!(cells.iter().filter(|v| !v.is_nan()).count(), 3 * kv_cols, "no other cell was written");
    }
}

#[test]
fn contradicting_operands_are_errors_not_panics() {
    let mut random = Random::new(12);
    let mut case = Case::new(&mut random, Op::Linear, 2, 8, ValueType::F32);
    case.floats(33, ValueType::F32, &[0.0; 66]);
    let (weight, _) = f32_matrix(&mut random, 8, 33);
    for (rows, cols, dtype, expected) in [
        (8, 32, DType::F32, "x is 33, expected 32"),
        (9, 33, DType::F32, "a weight is 1056, expected at least 1188 bytes"),
        (8, 33, DType::Q4_0, "columns of a weight is 33"),
        (7, 33, DType::F32, "elements of the value is 14, expected 16"),
    ] {
        case.weights = vec![WeightData { rows, cols, dtype, bytes: weight.bytes.clone() }];
        let error = rig::run(&mut ReferenceBackend::new(), &case, None).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
