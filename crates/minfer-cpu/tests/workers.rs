//! Workers, regions and what goes wrong.

mod support;

use minfer_backend::{Backend, BackendError, BackendId, BufRef, Capabilities, RegionId};
use minfer_cpu::{CpuBackend, CpuCapabilities, CpuOptions, SimdLevel};
use minfer_graph::{Activation, DType, Op, Rows, ValueType};
use std::num::NonZeroUsize;
use std::sync::Arc;
use support::*;

/// A chain of steps of many kinds.
fn chain(level: SimdLevel, threads: usize, tokens: usize) -> Vec<u8> {
    let mut random = Random::new(21);
    let mut machine = Machine::new(level, threads);
    let (cols, wide) = (512, 1056);
    let x = random.floats(tokens * cols);
    let x = machine.floats(tokens, cols, &x);
    let norm = machine.vector(&random.floats(cols));
    let mut steps = Vec::new();
    for dtype in [DType::Q4_K, DType::Q8_0, DType::Q6_K] {
        let mut weight = |rows: usize, cols: usize, dtype: DType| {
            let bytes = random.weight(dtype, rows, cols);
            machine.weight(dtype, rows, cols, &bytes)
        };
        let (gate, up, down) = (weight(wide, cols, dtype), weight(wide, cols, dtype), weight(cols, wide, DType::Q5_0));
        let normed = machine.empty(tokens, cols, ValueType::Q8);
        steps.push(step(Op::RmsNorm { eps: 1e-5, group: cols as u32 }, &[x], &[norm], normed));
        let hidden = machine.empty(tokens, wide, ValueType::Q8);
        steps.push(step(Op::GatedLinear { activation: Activation::Silu }, &[normed], &[gate, up], hidden));
        steps.push(step(Op::LinearAdd, &[hidden, x], &[down], x));
        // With one token these are a single item each, which follow each other without a barrier.
        let scaled = machine.empty(tokens, cols, ValueType::F32);
        steps.push(step(Op::RmsNorm { eps: 1e-5, group: cols as u32 }, &[x], &[norm], scaled));
        steps.push(step(Op::Add, &[x, scaled], &[], x));
    }
    machine.run(&steps).unwrap();
    machine.read_bytes(x.buf)
}

#[test]
fn worker_count_does_not_change_results() {
    for level in levels() {
        for tokens in [1, 5, 33, 300] {
            let expected = chain(level, 1, tokens);
            for threads in 2..=4 {
                assert!(chain(level, threads, tokens) == expected, "{level}: {threads} threads, {tokens} tokens");
            }
        }
    }
}

#[test]
fn regions_are_bounded_aligned_zeroed_and_fixed() {
    let mut backend = CpuBackend::new(CpuOptions::default()).unwrap();
    let id = RegionId(3);
    backend.create_region(id, 1000).unwrap();
    let address = backend.region_address(id).unwrap();
    assert_eq!(address % 64, 0);
    assert!(matches!(backend.create_region(id, 8), Err(BackendError::RegionExists { region: 3, .. })));
    let buf = |offset, len| BufRef { backend: BackendId(0), region: id, offset, len };
    backend.read(buf(0, 1000), &mut |bytes| assert!(bytes.iter().all(|b| *b == 0))).unwrap();
    backend.fill(buf(10, 5), 7).unwrap();
    backend.copy(buf(10, 5), buf(900, 5)).unwrap();
    backend.read(buf(899, 7), &mut |bytes| assert_eq!(bytes, [0, 7, 7, 7, 7, 7, 0])).unwrap();
    assert!(matches!(backend.fill(buf(999, 2), 0), Err(BackendError::OutOfBounds { end: 1001, .. })));
    assert!(matches!(backend.fill(buf(u64::MAX, 2), 0), Err(BackendError::OutOfBounds { .. })));
    backend.create_region(RegionId(0), 10).unwrap();
    assert_eq!(backend.region_address(id), Some(address));
    backend.drop_region(id).unwrap();
    assert!(matches!(backend.fill(buf(0, 1), 0), Err(BackendError::UnknownRegion { region: 3, .. })));
    assert!(matches!(backend.create_region(id, u64::MAX), Err(BackendError::OutOfMemory { .. })));
    assert!(matches!(backend.create_region(id, 1 << 62), Err(BackendError::OutOfMemory { .. })));
}

#[test]
fn imported_regions_are_read_only_and_in_place() {
    let mut backend = CpuBackend::new(CpuOptions::default()).unwrap();
    let bytes: Arc<Vec<u8>> = Arc::new(vec![1, 2, 3, 4]);
    let address = bytes.as_ptr() as usize;
    backend.import_region(RegionId(0), bytes.clone()).unwrap();
    assert_eq!(backend.region_address(RegionId(0)), Some(address));
    let buf = BufRef { backend: BackendId(0), region: RegionId(0), offset: 1, len: 2 };
    backend.read(buf, &mut |bytes| assert_eq!(bytes, [2, 3])).unwrap();
    assert!(matches!(backend.write(buf, &[0, 0]), Err(BackendError::ReadOnly { region: 0, .. })));
    backend.drop_region(RegionId(0)).unwrap();
    assert_eq!(Arc::strong_count(&bytes), 1);
}

#[test]
fn operands_that_do_not_fit_are_refused_before_anything_runs() {
    let mut machine = Machine::new(SimdLevel::detect(), 2);
    let (x, y) = (machine.floats(2, 8, &[1.0; 16]), machine.floats(2, 8, &[2.0; 16]));
    let out = machine.floats(2, 8, &[9.0; 16]);
    let good = step(Op::Add, &[x, y], &[], out);
    let refuse = |machine: &mut Machine, bad: minfer_backend::Step| {
        let error = machine.run(&[good.clone(), bad]).unwrap_err();
        assert_eq!(machine.read(&out), [9.0; 16], "nothing ran");
        error
    };
    let mut bad = good.clone();
    bad.inputs[1].shape.rows = Rows::Fixed(3);
    assert!(matches!(refuse(&mut machine, bad), BackendError::BadOperand { .. }));
    let mut bad = good.clone();
    bad.inputs[1].buf.len += 1;
    assert!(matches!(refuse(&mut machine, bad), BackendError::OutOfBounds { .. }));
    let mut bad = good.clone();
    bad.inputs[1].buf.region = RegionId(999);
    assert!(matches!(refuse(&mut machine, bad), BackendError::UnknownRegion { region: 999, .. }));
    let mut bad = good.clone();
    bad.inputs.pop();
    assert!(matches!(refuse(&mut machine, bad), BackendError::BadOperand { .. }));
    let mut bad = good.clone();
    bad.kernel.inputs[0] = ValueType::Q8;
    assert!(matches!(refuse(&mut machine, bad), BackendError::Unsupported { .. }));
    let bad = step(Op::Copy, &[x], &[], out);
    assert!(matches!(refuse(&mut machine, bad), BackendError::Unsupported { .. }));
    // Overlap that is not in place.
    let mut bad = good.clone();
    bad.output.buf = BufRef { offset: 4, len: 60, ..x.buf };
    bad.output.shape.rows = Rows::Fixed(1);
    bad.inputs.iter_mut().for_each(|input| input.shape.rows = Rows::Fixed(1));
    assert!(matches!(refuse(&mut machine, bad), BackendError::BadOperand { .. }));
    machine.run(std::slice::from_ref(&good)).unwrap();
    assert_eq!(machine.read(&out), [3.0; 16]);
}

#[test]
fn more_steps_than_a_batch_run_in_order() {
    let mut machine = Machine::new(SimdLevel::detect(), 2);
    let one = machine.floats(1, 4, &[1.0; 4]);
    let sum = machine.floats(1, 4, &[0.0; 4]);
    let steps = vec![step(Op::Add, &[sum, one], &[], sum); 1300];
    machine.run(&steps).unwrap();
    assert_eq!(machine.read(&sum), [1300.0; 4]);
    machine.run(&[]).unwrap();
}

/// A step of one item is one worker's: the others learn of its failure at the next barrier, and nothing after it is run.
#[test]
fn the_first_failure_is_told_and_nothing_runs_after_it() {
    for threads in 1..=4 {
        let mut machine = Machine::new(SimdLevel::detect(), threads);
        let bytes = Random::new(3).weight(DType::Q8_0, 256, 256);
        let weight = machine.weight(DType::Q8_0, 256, 256, &bytes);
        let (good_id, bad_id) = (machine.ints(&[1]), machine.ints(&[256]));
        let (x, out) = (machine.empty(1, 256, ValueType::F32), machine.empty(1, 256, ValueType::F32));
        let quantised = machine.empty(1, 256, ValueType::Q8);
        let embed = |id| step(Op::Embed { scale: 1.0 }, &[id], &[weight], x);
        let rest = [step(Op::Quantize, &[x], &[], quantised), step(Op::Linear, &[quantised], &[weight], out)];
        let mut bad = embed(bad_id);
        bad.name = "the bad one".into();
        let before = machine.read_bytes(out.buf);
        let error = machine.run(&[&[embed(good_id), bad, embed(bad_id)], &rest[..]].concat()).unwrap_err();
        assert!(matches!(&error, BackendError::OutOfRange { step, got: 256, .. } if step == "the bad one"), "{error}");
        assert_eq!(machine.read_bytes(out.buf), before, "{threads} threads");
        machine.run(&[&[embed(good_id)], &rest[..]].concat()).unwrap();
        assert_ne!(machine.read_bytes(out.buf), before, "{threads} threads");
    }
}

#[test]
fn capabilities_agree_with_the_backend_and_need_none() {
    let options = CpuOptions { threads: NonZeroUsize::new(3).unwrap(), simd: None };
    let (planned, backend) = (CpuCapabilities::new(options), CpuBackend::new(options).unwrap());
    let actual = backend.capabilities();
    assert_eq!(planned.fixed_bytes(), actual.fixed_bytes());
    assert_eq!((planned.name(), planned.alignment()), (actual.name(), actual.alignment()));
    assert_eq!(planned.activation_type(DType::Q4_K, false), ValueType::Q8);
    assert_eq!(planned.activation_type(DType::Q4_K, true), ValueType::Q8x2);
    assert_eq!(planned.activation_type(DType::BF16, true), ValueType::F32);
}
