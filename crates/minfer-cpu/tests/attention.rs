//! Attention over the KV cache and what fills it, against plain formulas.

mod support;

use half::f16;
use minfer_backend::{BackendError, KvPair, Operand, Step};
use minfer_cpu::SimdLevel;
use minfer_graph::{Attention, CacheType, DType, Op, Qkv, RopeStyle, ValueType};
use support::*;

const BLOCK: usize = 32;

/// A cache full of random cells, and sequences whose blocks lie in it in no order.
struct Case {
    attention: Attention,
    cache: CacheType,
    n_ctx: usize,
    /// Sequence row and position of each token.
    tokens: Vec<(usize, usize)>,
}

struct Prepared {
    step: Step,
    expected: Vec<f64>,
}

const N_SEQUENCES: usize = 4;

impl Case {
    fn prepare(&self, machine: &mut Machine, random: &mut Random, split: bool, out_type: ValueType) -> Prepared {
        let Attention { n_head, n_kv_head, head_dim, scale, window, .. } = self.attention;
        let (n_head, n_kv_head, head_dim) = (n_head as usize, n_kv_head as usize, head_dim as usize);
        let (kv_cols, n_cells) = (n_kv_head * head_dim, N_SEQUENCES * self.n_ctx);
        let blocks = self.n_ctx / BLOCK;
        let mut table: Vec<i32> = (0..(N_SEQUENCES * blocks) as i32).collect();
        for i in (1..table.len()).rev() {
            table.swap(i, random.below(i + 1));
        }
        let mut side = || {
            let cells = random.floats(n_cells * kv_cols);
            rounded(self.cache, &cells)
        };
        let (mut k, mut v) = (side(), side());
        // What nobody may see is not a number.
        let cell_of = |s: usize, p: usize| table[s * blocks + p / BLOCK] as usize * BLOCK + p % BLOCK;
        for s in 0..N_SEQUENCES {
            let last = self.tokens.iter().filter(|t| t.0 == s).map(|t| t.1 + 1).max().unwrap_or(0);
            for p in last..self.n_ctx {
                let at = cell_of(s, p) * kv_cols;
                k[at..at + kv_cols].fill(f32::NAN);
                v[at..at + kv_cols].fill(f32::NAN);
            }
        }
        let keys = turned(self.cache, &k, head_dim);
        let n_tokens = self.tokens.len();
        let q = random.floats(n_tokens * n_head * head_dim);

        let mut expected = Vec::new();
        for (t, &(s, p)) in self.tokens.iter().enumerate() {
            let first = window.map_or(0, |w| (p + 1).saturating_sub(w as usize));
            for head in 0..n_head {
                let kv_head = head / (n_head / n_kv_head);
                let q = &q[(t * n_head + head) * head_dim..][..head_dim];
                let row = |side: &'_ [f32], i: usize| {
                    side[cell_of(s, i) * kv_cols + kv_head * head_dim..][..head_dim].to_vec()
                };
                let dot =
                    |i: usize| row(&keys, i).iter().zip(q).map(|(k, q)| f64::from(*k) * f64::from(*q)).sum::<f64>();
                let scores: Vec<f64> = (first..=p).map(|i| dot(i) * f64::from(scale)).collect();
                let greatest = scores.iter().fold(f64::NEG_INFINITY, |m, s| m.max(*s));
                let weights: Vec<f64> = scores.iter().map(|s| (s - greatest).exp()).collect();
                let total: f64 = weights.iter().sum();
                let mut out = vec![0.0; head_dim];
                for (i, weight) in (first..=p).zip(&weights) {
                    out.iter_mut().zip(row(&v, i)).for_each(|(o, v)| *o += weight / total * f64::from(v));
                }
                expected.extend(out);
            }
        }

        let kv = make_kv(machine, self.cache, n_cells, kv_cols, &k, &v);
        let q = machine.floats(n_tokens, n_head * head_dim, &q);
        let column = |machine: &mut Machine, f: fn(&(usize, usize)) -> usize| {
            machine.ints(&self.tokens.iter().map(|t| f(t) as i32).collect::<Vec<_>>())
        };
        let inputs = [
            q,
            machine.view(&kv, kv.k),
            machine.view(&kv, kv.v),
            column(machine, |t| t.1),
            column(machine, |t| t.0),
            machine.int_rows(N_SEQUENCES, blocks, &table),
        ];
        let out = machine.empty(n_tokens, n_head * head_dim, out_type);
        let mut step = step(Op::Attention(self.attention), &inputs, &[], out);
        step.kv = Some(kv);
        if split {
            step.workspace = workspace(machine, &step, &params(self.n_ctx as u32, n_tokens as u32, self.cache));
        }
        Prepared { step, expected }
    }
}

fn make_kv(machine: &mut Machine, cache: CacheType, n_cells: usize, cols: usize, k: &[f32], v: &[f32]) -> KvPair {
    machine.kv(cache.value_type(), n_cells, cols, &encoded(cache, k), &encoded(cache, v))
}

/// Floats as the bytes of cells; blocks of `q8_0` with a NaN are NaN.
fn encoded(cache: CacheType, side: &[f32]) -> Vec<u8> {
    match cache {
        CacheType::F32 => side.iter().flat_map(|x| x.to_le_bytes()).collect(),
        CacheType::F16 => side.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect(),
        CacheType::Q8_0 => {
            let mut bytes = Vec::new();
            for block in side.chunks(32) {
                if minfer_gguf::encode_row(DType::Q8_0, block, &mut bytes).is_err() {
                    bytes.extend([0xFF; 34]);
                }
            }
            bytes
        }
    }
}

/// Floats as they come back from cells.
fn rounded(cache: CacheType, side: &[f32]) -> Vec<f32> {
    match cache {
        CacheType::F32 => side.to_vec(),
        CacheType::F16 => side.iter().map(|x| f16::from_f32(*x).to_f32()).collect(),
        CacheType::Q8_0 => decode(DType::Q8_0, &encoded(cache, side), side.len()),
    }
}

/// Keys as they are stored, or back: by the definition of the matrix, `(-1)^(bits that i and j share) / √n`.
fn turned(cache: CacheType, keys: &[f32], head_dim: usize) -> Vec<f32> {
    if cache != CacheType::Q8_0 {
        return keys.to_vec();
    }
    let n = CacheType::turned_elems(head_dim as u32) as usize;
    let sign = |i: usize, j: usize| if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
    let row = |run: &[f32], i| run.iter().enumerate().map(|(j, k)| sign(i, j) * f64::from(*k)).sum::<f64>();
    keys.chunks(n).flat_map(|run| (0..n).map(move |i| (row(run, i) / (n as f64).sqrt()) as f32)).collect()
}

fn attention(n_head: u32, n_kv_head: u32, head_dim: u32, window: Option<u32>) -> Attention {
    Attention { layer: 0, n_head, n_kv_head, head_dim, scale: 2.0 / (head_dim as f32).sqrt(), window }
}

/// `n` tokens of a sequence from a position on.
fn run_of(sequence: usize, first: usize, n: usize) -> impl Iterator<Item = (usize, usize)> {
    (first..first + n).map(move |position| (sequence, position))
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut case = |attention, cache, n_ctx, tokens| cases.push(Case { attention, cache, n_ctx, tokens });
    let shapes = [(4, 2, 64), (9, 3, 64), (2, 2, 80), (3, 1, 20), (4, 1, 256), (40, 1, 32)];
    for cache in [CacheType::F32, CacheType::F16, CacheType::Q8_0] {
        for shape in shapes.into_iter().filter(|shape| cache.fits(shape.2)) {
            for window in [None, Some(50)] {
                let attention = attention(shape.0, shape.1, shape.2, window);
                // Decode at many lengths, a prompt, a prompt behind a prefix, sequences side by side.
                case(attention, cache, 1120, vec![(0, 0), (1, 31), (2, 32), (3, 1119)]);
                case(attention, cache, 96, run_of(1, 0, 70).collect());
                case(attention, cache, 640, run_of(2, 500, 30).collect());
                case(attention, cache, 64, run_of(3, 3, 20).chain(run_of(0, 0, 1)).chain(run_of(1, 7, 40)).collect());
            }
        }
    }
    // A window of one sees itself alone.
    cases.push(Case {
        attention: attention(4, 2, 64, Some(1)),
        cache: CacheType::F16,
        n_ctx: 96,
        tokens: run_of(1, 20, 40).collect(),
    });
    cases
}

#[test]
fn attention_is_softmax_of_scores_times_values() {
    let mut random = Random::new(11);
    for level in levels() {
        for case in cases() {
            let mut machine = Machine::new(level, 2);
            for split in [false, true] {
                let Prepared { step, expected } = case.prepare(&mut machine, &mut random, split, ValueType::F32);
                machine.run(std::slice::from_ref(&step)).unwrap();
                let what = format!("{level} {:?} {:?} split {split}", case.attention, case.tokens.len());
                assert_close(&machine.read(&step.output), &expected, &[1.0], 1e-5, &what);
            }
        }
    }
}

#[test]
fn splitting_in_place_and_quantising_change_nothing() {
    let mut random = Random::new(12);
    for level in levels() {
        for case in cases() {
            let mut machine = Machine::new(level, 2);
            let Prepared { step, .. } = case.prepare(&mut machine, &mut random, true, ValueType::F32);
            machine.run(std::slice::from_ref(&step)).unwrap();
            let expected = machine.read(&step.output);

            let whole = Step { workspace: None, output: machine.empty_like(&step.output), ..step.clone() };
            machine.run(std::slice::from_ref(&whole)).unwrap();
            assert_eq!(machine.read(&whole.output), expected, "{level} {:?} without splitting", case.attention);

            if case.attention.head_dim % 32 == 0 {
                let quantised = machine.quantise(step.output);
                let shape = step.output.shape;
                let mut fused = step.clone();
                let rows = machine.dims.rows(shape.rows) as usize;
                fused.output = machine.empty(rows, shape.cols as usize, ValueType::Q8);
                fused.kernel.output = ValueType::Q8;
                machine.run(std::slice::from_ref(&fused)).unwrap();
                assert_eq!(
                    machine.read_bytes(fused.output.buf),
                    machine.read_bytes(quantised.buf),
                    "{level} quantised"
                );
            }

            let in_place = Step { output: step.inputs[0], ..step.clone() };
            machine.run(std::slice::from_ref(&in_place)).unwrap();
            assert_eq!(machine.read(&in_place.output), expected, "{level} {:?} in place", case.attention);
        }
    }
}

/// A token gets the same result alone and among others, in a prompt and in decode.
#[test]
fn batching_does_not_change_attention() {
    let mut random = Random::new(13);
    for level in levels() {
        let case = Case {
            attention: attention(6, 2, 64, None),
            cache: CacheType::F16,
            n_ctx: 1120,
            tokens: run_of(2, 1000, 40).chain(run_of(0, 5, 9)).collect(),
        };
        let mut machine = Machine::new(level, 2);
        let Prepared { step, .. } = case.prepare(&mut machine, &mut random, true, ValueType::F32);
        machine.run(std::slice::from_ref(&step)).unwrap();
        let together = machine.read_bytes(step.output.buf);
        let row_bytes = 6 * 64 * 4;
        for (t, expected) in together.chunks(row_bytes).enumerate() {
            let mut alone = step.clone();
            for (index, bytes) in [(0, row_bytes), (3, 4), (4, 4)] {
                alone.inputs[index].buf.offset += (t * bytes) as u64;
                alone.inputs[index].buf.len = bytes as u64;
                alone.inputs[index].shape.rows = minfer_graph::Rows::Fixed(1);
            }
            alone.output = machine.empty(1, 6 * 64, ValueType::F32);
            machine.run(std::slice::from_ref(&alone)).unwrap();
            assert_eq!(machine.read_bytes(alone.output.buf), expected, "{level} token {t}");
        }
    }
}

#[test]
fn numbers_that_point_outside_are_errors() {
    let mut random = Random::new(14);
    let case = Case {
        attention: attention(4, 2, 32, None),
        cache: CacheType::F16,
        n_ctx: 64,
        tokens: run_of(0, 0, 40).collect(),
    };
    let mut machine = Machine::new(SimdLevel::detect(), 2);
    let Prepared { step, .. } = case.prepare(&mut machine, &mut random, true, ValueType::F32);
    let refused = |machine: &mut Machine, index: usize, at: usize, value: i32, what: &str, limit: u64| {
        let mut step = step.clone();
        let mut bytes = machine.read_bytes(step.inputs[index].buf);
        bytes[at * 4..at * 4 + 4].copy_from_slice(&value.to_le_bytes());
        step.inputs[index].buf = machine.bytes(&bytes);
        match machine.run(&[step]).unwrap_err() {
            BackendError::OutOfRange { what: w, got, limit: l, .. } => {
                assert_eq!((w, got, l), (what, i64::from(value), limit));
            }
            other => panic!("{other}"),
        }
    };
    refused(&mut machine, 3, 39, 64, "position", 64);
    refused(&mut machine, 3, 0, -1, "position", 64);
    refused(&mut machine, 4, 7, 4, "sequence row", 4);
    refused(&mut machine, 4, 7, -5, "sequence row", 4);
    refused(&mut machine, 5, 1, 8, "block", 8);
    refused(&mut machine, 5, 0, i32::MIN, "block", 8);
    // The backend stays usable.
    machine.run(&[step]).unwrap();
}

#[test]
fn kv_store_writes_cells() {
    for level in levels() {
        for (cache, cols) in [(CacheType::F32, 20), (CacheType::F16, 20), (CacheType::Q8_0, 96)] {
            let n_cells = 64;
            let mut random = Random::new(15);
            let (k, v) = (random.floats(3 * cols), random.floats(3 * cols));
            let mut machine = Machine::new(level, 2);
            let zero = vec![0.0; n_cells * cols];
            let kv = make_kv(&mut machine, cache, n_cells, cols, &zero, &zero);
            let cells = [5, 63, 0];
            let inputs = [machine.floats(3, cols, &k), machine.floats(3, cols, &v), machine.ints(&cells)];
            let mut store =
                step(Op::KvStore { layer: 0, head_dim: cols as u32 }, &inputs, &[], machine.view(&kv, kv.k));
            store.kv = Some(kv);
            machine.run(std::slice::from_ref(&store)).unwrap();
            for (buf, side) in [(kv.k, rounded(cache, &turned(cache, &k, cols))), (kv.v, rounded(cache, &v))] {
                let got = machine.read(&machine.view(&kv, buf));
                let mut expected = zero.clone();
                for (token, cell) in cells.into_iter().enumerate() {
                    for col in 0..cols {
                        expected[cell as usize * cols + col] = side[token * cols + col];
                    }
                }
                assert_eq!(got, expected, "{level} {cache:?}");
            }
            store.inputs[2] = machine.ints(&[1, 64, 2]);
            let error = machine.run(&[store]).unwrap_err();
            assert!(matches!(error, BackendError::OutOfRange { what: "cell", got: 64, limit: 64, .. }), "{error}");
        }
    }
}

/// The fused projection does, bit for bit, what its parts do.
#[test]
fn qkv_store_is_its_parts() {
    let mut random = Random::new(16);
    for level in levels() {
        for (dtypes, bias, norms, style, cache) in [
            ([DType::Q4_K, DType::Q4_K, DType::Q6_K], true, false, RopeStyle::Halves, CacheType::F16),
            ([DType::Q8_0, DType::Q5_0, DType::Q4_1], false, true, RopeStyle::Adjacent, CacheType::F32),
            ([DType::Q4_K, DType::Q4_K, DType::Q6_K], true, true, RopeStyle::Halves, CacheType::Q8_0),
            ([DType::F16, DType::F32, DType::BF16], true, true, RopeStyle::Halves, CacheType::F16),
        ] {
            let shapes = [(1, 64, 4, 2), (7, 32, 3, 1), (70, 48, 2, 2), (300, 64, 2, 1)];
            for (tokens, head_dim, n_head, n_kv_head) in shapes.into_iter().filter(|s| cache.fits(s.1 as u32)) {
                let (cols, n_cells, rope_dims) = (256, 320, head_dim - 16);
                let mut machine = Machine::new(level, 2);
                let x = random.floats(tokens * cols);
                let x = machine.floats(tokens, cols, &x);
                let x = if dtypes[0].is_quantized() { machine.quantise(x) } else { x };
                let widths = [n_head * head_dim, n_kv_head * head_dim, n_kv_head * head_dim];
                let mut matrices = Vec::new();
                let mut biases = Vec::new();
                for (dtype, width) in dtypes.into_iter().zip(widths) {
                    let bytes = random.weight(dtype, width, cols);
                    matrices.push(machine.weight(dtype, width, cols, &bytes));
                    biases.push(machine.vector(&random.floats(width)));
                }
                let norm_weights = [machine.vector(&random.floats(head_dim)), machine.vector(&random.floats(head_dim))];
                let angles = random.floats(tokens * rope_dims);
                let table = machine.floats(tokens, rope_dims, &angles);
                let cells: Vec<i32> = (0..tokens as i32).map(|t| n_cells as i32 - 1 - t).collect();
                let cells = machine.ints(&cells);
                let zero = vec![0.0; n_cells * widths[1]];
                let eps = 1e-6;

                let mut parts: Vec<Operand> = Vec::new();
                for index in 0..3 {
                    let y = machine.empty(tokens, widths[index], ValueType::F32);
                    let weights = [matrices[index], biases[index]];
                    machine.run(&[step(Op::Linear, &[x], &weights[..if bias { 2 } else { 1 }], y)]).unwrap();
                    if index < 2 {
                        if norms {
                            let op = Op::RmsNorm { eps, group: head_dim as u32 };
                            machine.run(&[step(op, &[y], &[norm_weights[index]], y)]).unwrap();
                        }
                        let op = Op::Rope { style, head_dim: head_dim as u32, n_dims: rope_dims as u32 };
                        machine.run(&[step(op, &[y, table], &[], y)]).unwrap();
                    }
                    parts.push(y);
                }
                let kv = make_kv(&mut machine, cache, n_cells, widths[1], &zero, &zero);
                let mut store = step(
                    Op::KvStore { layer: 0, head_dim: head_dim as u32 },
                    &[parts[1], parts[2], cells],
                    &[],
                    machine.view(&kv, kv.k),
                );
                store.kv = Some(kv);
                machine.run(&[store]).unwrap();

                let op = Op::QkvStore(Qkv {
                    layer: 0,
                    n_head: n_head as u32,
                    n_kv_head: n_kv_head as u32,
                    head_dim: head_dim as u32,
                    bias,
                    head_norm_eps: norms.then_some(eps),
                    rope: style,
                    rope_dims: rope_dims as u32,
                });
                let mut weights = matrices.clone();
                weights.extend(biases.iter().filter(|_| bias));
                weights.extend(norm_weights.iter().filter(|_| norms));
                let out = machine.empty(tokens, widths[0], ValueType::F32);
                let mut fused = step(op, &[x, table, cells], &weights, out);
                let fused_kv = make_kv(&mut machine, cache, n_cells, widths[1], &zero, &zero);
                fused.kv = Some(fused_kv);
                machine.run(&[fused]).unwrap();
                let what = format!("{level} {dtypes:?} tokens {tokens}");
                assert_eq!(machine.read(&out), machine.read(&parts[0]), "q {what}");
                assert_eq!(machine.read_bytes(fused_kv.k), machine.read_bytes(kv.k), "k {what}");
                assert_eq!(machine.read_bytes(fused_kv.v), machine.read_bytes(kv.v), "v {what}");
            }
        }
    }
}
