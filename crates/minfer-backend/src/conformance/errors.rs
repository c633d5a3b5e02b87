//! Numbers that point outside. Takes the suite; checks that each kernel the backend supports refuses them with
//! [`BackendError::OutOfRange`], at `run` or at `synchronize`.

use super::Suite;
use super::attention::{Batch, batch, inputs_after_q};
use super::case::{Case, Input};
use super::rig::{self, RigError};
use super::rowwise::{empty_cells, rope_rows};
use crate::backend::BackendError;
use minfer_graph::{Attention, DType, Op, Qkv, RopeStyle, Rows, ValueType};

pub fn run(suite: &mut Suite) {
    for id in [-1, 7, i32::MAX, i32::MIN] {
        let mut case = Case::new(&mut suite.random, Op::Embed { scale: 1.0 }, 2, 32, ValueType::F32);
        case.integers(Rows::Tokens, 1, &[0, id]);
        case.weights.push(suite.weights.matrix(&mut suite.random, DType::F32, 7, 32));
        refused(suite, &case, "token ids outside the vocabulary");
    }
    for position in [-1, i32::MIN] {
        let op = Op::RopeTable { n_dims: 32, base: 1e4, freq_scale: 1.0 };
        let mut case = Case::new(&mut suite.random, op, 2, 32, ValueType::F32);
        case.integers(Rows::Tokens, 1, &[0, position]);
        refused(suite, &case, "negative positions");
    }
    for row in [-1, 2, i32::MAX] {
        let mut case = Case::new(&mut suite.random, Op::SelectRows, 2, 32, ValueType::F32);
        case.output.shape.rows = Rows::Outputs;
        case.floats(32, ValueType::F32, &[0.5; 64]);
        case.integers(Rows::Outputs, 1, &[1, row]);
        refused(suite, &case, "output rows beyond the batch");
    }
    for cell in [-1, 64, i32::MAX, i32::MIN] {
        stores(suite, cell);
    }
    attention(suite);
}

fn stores(suite: &mut Suite, cell: i32) {
    for cache in [ValueType::F32, ValueType::F16] {
        let mut case = Case::new(&mut suite.random, Op::KvStore { layer: 0 }, 2, 32, cache);
        case.output.shape.rows = Rows::Fixed(64);
        case.floats(32, ValueType::F32, &[0.5; 64]);
        case.floats(32, ValueType::F32, &[0.5; 64]);
        case.integers(Rows::Tokens, 1, &[3, cell]);
        case.kv = Some(empty_cells(cache, 32, 64));
        refused(suite, &case, "cells beyond the KV region");

        let (n_head, n_kv_head, head_dim) = (2, 1, 32);
        let (bias, head_norm_eps, rope, rope_dims) = (false, None, RopeStyle::Halves, 32);
        let op = Qkv { layer: 0, n_head, n_kv_head, head_dim, bias, head_norm_eps, rope, rope_dims };
        for x in [ValueType::F32, ValueType::Q8, ValueType::Q8x2] {
            let mut case = Case::new(&mut suite.random, Op::QkvStore(op), 2, 64, ValueType::F32);
            case.floats(32, x, &[0.5; 64]);
            case.floats(32, ValueType::F32, &rope_rows(suite, 2, 32));
            case.integers(Rows::Tokens, 1, &[3, cell]);
            case.weights.extend([64, 32, 32].map(|n| suite.weights.matrix(&mut suite.random, DType::Q8_0, n, 32)));
            case.kv = Some(empty_cells(cache, 32, 64));
            refused(suite, &case, "cells beyond the KV region");
        }
    }
}

fn attention(suite: &mut Suite) {
    let a = Attention { layer: 0, n_head: 2, n_kv_head: 1, head_dim: 32, scale: 0.2, window: None };
    let spoil: [fn(&mut Batch); 7] = [
        |batch| batch.positions[1] = -1,
        |batch| batch.positions[1] = 192, // six blocks of 32 cells
        |batch| batch.positions[1] = i32::MAX,
        |batch| batch.sequence_rows[1] = -1,
        |batch| batch.sequence_rows[1] = 2,
        |batch| batch.table[0] = 24,
        |batch| batch.table[0] = -1,
    ];
    for (spoil, cache) in spoil.into_iter().flat_map(|spoil| [(spoil, ValueType::F32), (spoil, ValueType::F16)]) {
        let mut batch = batch(suite, 1, 2);
        spoil(&mut batch);
        let mut case = Case::new(&mut suite.random, Op::Attention(a), 2, 64, ValueType::F32);
        case.floats(64, ValueType::F32, &[0.5; 128]);
        inputs_after_q(&mut case, &batch);
        case.kv = Some(empty_cells(cache, 32, 24 * 32));
        refused(suite, &case, "positions, sequences and blocks beyond the cache");
    }
}

fn refused(suite: &mut Suite, case: &Case, what: &'static str) {
    if !suite.supports(&case.kernel()) {
        return;
    }
    let got = rig::run(&mut *suite.backend, case, None).err();
    if !matches!(got, Some(RigError::Backend(BackendError::OutOfRange { .. }))) {
        let integers = |input: &Input| match input {
            Input::Value { ty: ValueType::I32, bytes, .. } => Some(crate::host::numbers::<i32>(bytes).into_owned()),
            _ => None,
        };
        let integers: Vec<_> = case.inputs.iter().filter_map(integers).collect();
        let got = got.map_or("no error".to_string(), |error| error.to_string());
        suite.fail(case, &format!("{what}, {integers:?}: expected OutOfRange, got {got}"));
    }
    if !suite.report.checked.contains(&what) {
        suite.report.checked.push(what);
    }
}
