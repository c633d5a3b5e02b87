//! Matrix products of every format on every level, against double precision.

mod support;

use minfer_graph::{Activation, DType, Op, ValueType};
use support::*;

const COLS: [usize; 9] = [32, 64, 96, 160, 256, 288, 512, 896, 2880];
const ROWS: [usize; 5] = [1, 2, 31, 64, 65];
const TOKENS: [usize; 10] = [1, 2, 3, 4, 5, 7, 8, 9, 33, 64];

fn products_of(dtype: DType, cols_list: &[usize]) {
    products_with(dtype, cols_list, &ROWS, &TOKENS);
}

fn products_with(dtype: DType, cols_list: &[usize], rows_list: &[usize], tokens_list: &[usize]) {
    let mut random = Random::new(7);
    for level in levels() {
        let mut machine = Machine::new(level, 2);
        for &cols in cols_list {
            if dtype.row_bytes(cols).is_none() {
                continue;
            }
            let most_rows = *rows_list.last().unwrap();
            let bytes = random.weight(dtype, most_rows, cols);
            let decoded = decode(dtype, &bytes, cols);
            for &tokens in tokens_list {
                let mut x = random.floats(tokens * cols);
                // Some all of one sign, some of very different sizes.
                x[..cols].iter_mut().for_each(|x| *x = x.abs());
                x[(tokens - 1) * cols..].iter_mut().for_each(|x| *x = x.powi(9) * 100.0);
                let x = machine.floats(tokens, cols, &x);
                let x = if dtype.is_quantized() { machine.quantise(x) } else { x };
                let x_floats = machine.read(&x);
                for &rows in rows_list {
                    let row_bytes = dtype.row_bytes(cols).unwrap();
                    let weight = machine.weight(dtype, rows, cols, &bytes[..rows * row_bytes]);
                    let out = machine.empty(tokens, rows, ValueType::F32);
                    machine.run(&[step(Op::Linear, &[x], &[weight], out)]).unwrap();
                    let (expected, scale) = multiply(&x_floats, &decoded[..rows * cols], cols);
                    let what = format!("{dtype} {level} cols {cols} rows {rows} tokens {tokens}");
                    assert_close(&machine.read(&out), &expected, &scale, 2e-6, &what);
                }
            }
        }
    }
}

macro_rules! products {
    ($($name:ident: $dtype:ident),*) => {$(
        #[test]
        fn $name() {
            products_of(DType::$dtype, &COLS);
        }
    )*};
}

products! {
    q4_0: Q4_0, q4_1: Q4_1, q5_0: Q5_0, q5_1: Q5_1, q8_0: Q8_0, q2_k: Q2_K, q3_k: Q3_K, q4_k: Q4_K, q5_k: Q5_K, q6_k: Q6_K,
    iq4_nl: IQ4_NL, iq4_xs: IQ4_XS
}

#[test]
fn unquantised() {
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        products_of(dtype, &[1, 5, 32, 100, 257, 896, 2881]);
    }
}

/// Rows longer than what is prepared at a time.
#[test]
fn long_rows() {
    for dtype in QUANTISED {
        products_with(dtype, &[(16 << 10) + 256, (32 << 10) + 96], &[3], &[1, 2, 3]);
    }
}

/// Extreme levels: -128 in Q8_0, and activations at both ends.
#[test]
fn extreme_levels_do_not_saturate() {
    for level in levels() {
        let mut machine = Machine::new(level, 1);
        for dtype in QUANTISED {
            for fill in [0x00, 0x80, 0x7f, 0xff] {
                let (rows, cols) = (3, 256);
                let mut bytes = Random::new(1).weight(dtype, rows, cols);
                let scales = bytes.clone();
                bytes.fill(fill);
                for (block, scales) in bytes.chunks_mut(dtype.block_bytes()).zip(scales.chunks(dtype.block_bytes())) {
                    let at = match dtype {
                        DType::Q2_K => 80..84,
                        DType::Q3_K => 108..110,
                        DType::Q6_K => 208..210,
                        DType::Q4_1 | DType::Q5_1 | DType::Q4_K | DType::Q5_K => 0..4,
                        _ => 0..2,
                    };
                    block[at.clone()].copy_from_slice(&scales[at]);
                }
                for tokens in [1, 20] {
                    for sign in [1.0, -1.0] {
                        let x = machine.floats(tokens, cols, &vec![sign; tokens * cols]);
                        let x = machine.quantise(x);
                        let weight = machine.weight(dtype, rows, cols, &bytes);
                        let out = machine.empty(tokens, rows, ValueType::F32);
                        machine.run(&[step(Op::Linear, &[x], &[weight], out)]).unwrap();
                        let decoded = decode(dtype, &bytes, cols);
                        let (expected, scale) = multiply(&machine.read(&x), &decoded, cols);
                        // An offset may cancel all but a tiny rest, which then has the rounding of the whole.
                        let scale: Vec<f64> = scale.iter().map(|s| s + cols as f64).collect();
                        let what = format!("{dtype} {level} fill {fill} tokens {tokens}");
                        assert_close(&machine.read(&out), &expected, &scale, 2e-6, &what);
                    }
                }
            }
        }
    }
}

/// What an earlier, larger batch of another format left in a worker's buffers reaches no result.
#[test]
fn a_shrinking_batch_is_as_a_fresh_one() {
    let rows = 40;
    for level in levels() {
        let mut used = Machine::new(level, 1);
        for (dtype, cols) in QUANTISED.into_iter().flat_map(|dtype| [(dtype, 512), (dtype, 288)]) {
            if dtype.row_bytes(cols).is_none() {
                continue;
            }
            let bytes = Random::new(5).weight(dtype, rows, cols);
            for tokens in [8, 5, 3, 2, 1] {
                let linear = |machine: &mut Machine| {
                    let x = machine.floats(tokens, cols, &Random::new(9).floats(tokens * cols));
                    let x = machine.quantise(x);
                    let weight = machine.weight(dtype, rows, cols, &bytes);
                    let out = machine.empty(tokens, rows, ValueType::F32);
                    machine.run(&[step(Op::Linear, &[x], &[weight], out)]).unwrap();
                    machine.read(&out)
                };
                let fresh = linear(&mut Machine::new(level, 1));
                assert_eq!(linear(&mut used), fresh, "{dtype} {level} cols {cols} tokens {tokens}");
            }
        }
    }
}

fn act(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::GeluTanh => {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
        }
    }
}

#[test]
fn bias_residual_and_gate() {
    let mut random = Random::new(3);
    for level in levels() {
        let mut machine = Machine::new(level, 2);
        for dtype in [DType::Q4_K, DType::Q8_0, DType::F16] {
            for (rows, cols, tokens) in [(96, 256, 1), (64, 512, 5), (96, 256, 40), (70, 256, 2), (70, 256, 17)] {
                let x = random.floats(tokens * cols);
                let x = machine.floats(tokens, cols, &x);
                let x = if dtype.is_quantized() { machine.quantise(x) } else { x };
                let x_floats = machine.read(&x);
                let (a, b) = (random.weight(dtype, rows, cols), random.weight(dtype, rows, cols));
                let (wa, wb) = (machine.weight(dtype, rows, cols, &a), machine.weight(dtype, rows, cols, &b));
                let (ya, scale) = multiply(&x_floats, &decode(dtype, &a, cols), cols);
                let (yb, _) = multiply(&x_floats, &decode(dtype, &b, cols), cols);
                let what = format!("{dtype} {level} {rows} {cols} {tokens}");

                let bias = random.floats(rows);
                let weights = [wa, machine.vector(&bias)];
                let out = machine.empty(tokens, rows, ValueType::F32);
                machine.run(&[step(Op::Linear, &[x], &weights, out)]).unwrap();
                let expected: Vec<f64> = ya.iter().enumerate().map(|(i, y)| y + f64::from(bias[i % rows])).collect();
                assert_close(&machine.read(&out), &expected, &scale, 1e-5, &format!("bias {what}"));

                let residual = random.floats(tokens * rows);
                let residual_value = machine.floats(tokens, rows, &residual);
                machine.run(&[step(Op::LinearAdd, &[x, residual_value], &[wa], out)]).unwrap();
                let expected: Vec<f64> = ya.iter().zip(&residual).map(|(y, r)| y + f64::from(*r)).collect();
                let apart = machine.read(&out);
                assert_close(&apart, &expected, &scale, 1e-5, &format!("residual {what}"));
                machine.run(&[step(Op::LinearAdd, &[x, residual_value], &[wa], residual_value)]).unwrap();
                assert_eq!(apart, machine.read(&residual_value), "in place {what}");

                for activation in [Activation::Silu, Activation::GeluTanh] {
                    let op = Op::GatedLinear { activation };
                    machine.run(&[step(op, &[x], &[wa, wb], out)]).unwrap();
                    let expected: Vec<f64> = ya.iter().zip(&yb).map(|(a, b)| act(activation, *a) * b).collect();
                    let scale: Vec<f64> = scale.iter().map(|s| s * s).collect();
                    assert_close(&machine.read(&out), &expected, &scale, 1e-5, &format!("gate {what}"));
                    if rows % 32 == 0 {
                        let quantised = machine.quantise(out);
                        let fused = machine.empty(tokens, rows, ValueType::Q8);
                        machine.run(&[step(op, &[x], &[wa, wb], fused)]).unwrap();
                        let same = machine.read_bytes(fused.buf) == machine.read_bytes(quantised.buf);
                        assert!(same, "quantised gate {what}");
                    }
                }
            }
        }
    }
}
