//! Operations that are no products, against plain formulas; in place as out of place.

mod support;

use minfer_backend::BackendError;
use minfer_graph::{Activation, DType, Op, RopeStyle, ValueType};
use support::*;

#[test]
fn quantised_activations_are_within_half_a_step() {
    let mut random = Random::new(5);
    for level in levels() {
        let mut machine = Machine::new(level, 2);
        for cols in [32, 96, 2048, 4096 + 32] {
            let mut x: Vec<f32> = random.floats(3 * cols).iter().map(|x| x.powi(5) * 50.0).collect();
            x[..32].fill(0.0);
            let value = machine.floats(3, cols, &x);
            let out = machine.quantise(value);
            let back = machine.read(&out);
            for (block, back) in x.chunks(32).zip(back.chunks(32)) {
                let greatest = block.iter().fold(0.0f32, |m, x| m.max(x.abs()));
                for (x, back) in block.iter().zip(back) {
                    assert!((x - back).abs() <= greatest / 254.0 * 1.0001, "{level}: {x} became {back}");
                }
            }
        }
        let mut x = vec![1.0f32; 64];
        x[3] = f32::NAN;
        let value = machine.floats(1, 64, &x);
        let out = machine.quantise(value);
        let back = machine.read(&out);
        assert!(back[0].is_nan() && back[32] == 1.0, "{level}: what is not finite shows");
    }
}

#[test]
fn embed_every_format() {
    let mut random = Random::new(6);
    let plain = [DType::F32, DType::F16, DType::BF16];
    for dtype in QUANTISED.into_iter().chain(plain) {
        let (vocab, cols) = (10, 512);
        let bytes = random.weight(dtype, vocab, cols);
        let decoded = decode(dtype, &bytes, cols);
        let mut machine = Machine::new(levels()[0], 2);
        let table = machine.weight(dtype, vocab, cols, &bytes);
        let ids = machine.ints(&[3, 0, 9, 3]);
        let out = machine.empty(4, cols, ValueType::F32);
        machine.run(&[step(Op::Embed { scale: 2.0 }, &[ids], &[table], out)]).unwrap();
        let expected: Vec<f32> =
            [3, 0, 9, 3].iter().flat_map(|id| decoded[id * cols..][..cols].iter().map(|x| x * 2.0)).collect();
        assert_eq!(machine.read(&out), expected, "{dtype}");

        for id in [10, -1, i32::MIN] {
            let ids = machine.ints(&[0, id]);
            let out = machine.empty(2, cols, ValueType::F32);
            let error = machine.run(&[step(Op::Embed { scale: 1.0 }, &[ids], &[table], out)]).unwrap_err();
            assert!(matches!(error, BackendError::OutOfRange { what: "token id", limit: 10, .. }), "{error}");
        }
    }
}

#[test]
fn rms_norm() {
    let mut random = Random::new(8);
    for level in levels() {
        let mut machine = Machine::new(level, 2);
        for (cols, group) in [(64, 64), (896, 896), (100, 100), (256, 64), (5, 5), (90, 18)] {
            let (rows, eps) = (3, 1e-5f32);
            let x = random.floats(rows * cols);
            let w = random.floats(group);
            let mut expected = Vec::new();
            for run in x.chunks(group) {
                let mean = run.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / group as f64;
                let factor = 1.0 / (mean + f64::from(eps)).sqrt();
                expected.extend(run.iter().zip(&w).map(|(x, w)| f64::from(*x) * factor * f64::from(*w)));
            }
            let (value, weight) = (machine.floats(rows, cols, &x), machine.vector(&w));
            let out = machine.empty(rows, cols, ValueType::F32);
            let op = Op::RmsNorm { eps, group: group as u32 };
            machine.run(&[step(op, &[value], &[weight], out)]).unwrap();
            assert_close(&machine.read(&out), &expected, &[1.0], 2e-6, &format!("{level} {cols} {group}"));
            if group % 32 == 0 {
                let quantised = machine.quantise(out);
                let fused = machine.empty(rows, cols, ValueType::Q8);
                machine.run(&[step(op, &[value], &[weight], fused)]).unwrap();
                assert_eq!(machine.read_bytes(fused.buf), machine.read_bytes(quantised.buf), "{level} {cols}");
            }
            machine.run(&[step(op, &[value], &[weight], value)]).unwrap();
            assert_eq!(machine.read(&value), machine.read(&out), "{level} {cols} in place");
        }
    }
}

#[test]
fn rope() {
    let mut random = Random::new(9);
    for level in levels() {
        let mut machine = Machine::new(level, 2);
        for (style, head_dim, n_dims) in [
            (RopeStyle::Adjacent, 64, 64),
            (RopeStyle::Halves, 64, 64),
            (RopeStyle::Halves, 80, 20),
            (RopeStyle::Adjacent, 6, 4),
        ] {
            let positions = [0, 7, 131_071];
            let factors: Vec<f32> = random.floats(n_dims / 2).iter().map(|x| x.abs() + 0.5).collect();
            let (base, freq_scale) = (10_000.0f32, 0.25f32);
            let ids = machine.ints(&positions);
            let weight = machine.vector(&factors);
            let table = machine.empty(3, n_dims, ValueType::F32);
            let op = Op::RopeTable { n_dims: n_dims as u32, base, freq_scale };
            machine.run(&[step(op, &[ids], &[weight], table)]).unwrap();
            let angle = |position: i32, i: usize| {
                let frequency = f64::from(base).powf(-2.0 * i as f64 / n_dims as f64) / f64::from(factors[i]);
                f64::from(position) * f64::from(freq_scale) * frequency
            };
            let mut expected = Vec::new();
            for position in positions {
                expected.extend((0..n_dims / 2).map(|i| angle(position, i).cos()));
                expected.extend((0..n_dims / 2).map(|i| angle(position, i).sin()));
            }
            assert_close(&machine.read(&table), &expected, &[1.0], 1e-7, "table");

            let cols = 3 * head_dim;
            let x = random.floats(3 * cols);
            let mut expected: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
            for (token, row) in expected.chunks_mut(cols).enumerate() {
                for head in row.chunks_mut(head_dim) {
                    for i in 0..n_dims / 2 {
                        let (a, b) = match style {
                            RopeStyle::Adjacent => (2 * i, 2 * i + 1),
                            RopeStyle::Halves => (i, i + n_dims / 2),
                        };
                        let (sin, cos) = angle(positions[token], i).sin_cos();
                        (head[a], head[b]) = (head[a] * cos - head[b] * sin, head[a] * sin + head[b] * cos);
                    }
                }
            }
            let value = machine.floats(3, cols, &x);
            let out = machine.empty(3, cols, ValueType::F32);
            let op = Op::Rope { style, head_dim: head_dim as u32, n_dims: n_dims as u32 };
            machine.run(&[step(op, &[value, table], &[], out)]).unwrap();
            assert_close(&machine.read(&out), &expected, &[1.0], 5e-7, "rotated");
            machine.run(&[step(op, &[value, table], &[], value)]).unwrap();
            assert_eq!(machine.read(&value), machine.read(&out), "in place");
        }
    }
}

type Formula = fn(f64, f64) -> f64;

#[test]
fn elementwise() {
    let mut random = Random::new(10);
    for level in levels() {
        let mut machine = Machine::new(level, 3);
        for (rows, cols) in [(1, 1), (3, 37), (5, 4096)] {
            let x: Vec<f32> = random.floats(rows * cols).iter().map(|x| x * 20.0).collect();
            let y = random.floats(rows * cols);
            let formulas: [(Op, Formula); 4] = [
                (Op::Activate(Activation::Silu), |x, _| x / (1.0 + (-x).exp())),
                (Op::Activate(Activation::GeluTanh), |x, _| {
                    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
                }),
                (Op::Add, |x, y| x + y),
                (Op::Mul, |x, y| x * y),
            ];
            for (op, formula) in formulas {
                let n = if matches!(op, Op::Activate(_)) { 1 } else { 2 };
                let pairs = || x.iter().zip(&y).map(|(x, y)| (f64::from(*x), f64::from(*y)));
                let expected: Vec<f64> = pairs().map(|(x, y)| formula(x, y)).collect();
                let scale: Vec<f64> = pairs().zip(&expected).map(|((x, _), e)| e.abs() + 1e-7 * x.abs()).collect();
                let operands = [machine.floats(rows, cols, &x), machine.floats(rows, cols, &y)];
                let out = machine.empty(rows, cols, ValueType::F32);
                machine.run(&[step(op, &operands[..n], &[], out)]).unwrap();
                assert_close(&machine.read(&out), &expected, &scale, 2e-5, &format!("{op} {level}"));
                for place in 0..n {
                    let operands = [machine.floats(rows, cols, &x), machine.floats(rows, cols, &y)];
                    machine.run(&[step(op, &operands[..n], &[], operands[place])]).unwrap();
                    assert_eq!(machine.read(&operands[place]), machine.read(&out), "{op} {level} in place of {place}");
                }
            }
        }
    }
}

#[test]
fn select_rows() {
    let mut machine = Machine::new(levels()[0], 2);
    let x = machine.floats(3, 2, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let rows = machine.ints(&[2, 0]);
    let out = machine.empty(2, 2, ValueType::F32);
    machine.run(&[step(Op::SelectRows, &[x, rows], &[], out)]).unwrap();
    assert_eq!(machine.read(&out), [4.0, 5.0, 0.0, 1.0]);
    let rows = machine.ints(&[2, 3]);
    let error = machine.run(&[step(Op::SelectRows, &[x, rows], &[], out)]).unwrap_err();
    assert!(matches!(error, BackendError::OutOfRange { what: "output row", got: 3, limit: 3, .. }), "{error}");
}
