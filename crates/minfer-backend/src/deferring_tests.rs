//! Tests of the deferring backend: queued values are neither readable nor there, and everything else keeps its order.

use super::*;
use crate::step::{KvPair, Operand};
use crate::{BackendId, NullBackend};
use minfer_graph::{Op, Rows};

const DIMS: BatchDims = BatchDims { n_tokens: 1, n_outputs: 1 };

fn buf(offset: u64) -> BufRef {
    BufRef { backend: BackendId(0), region: RegionId(0), offset, len: 16 }
}

fn operand(buf: BufRef) -> Operand {
    Operand { buf, shape: Shape::new(Rows::Tokens, 4), ty: ValueType::F32 }
}

/// `out = a + b` on four floats each, at these offsets of region 0.
pub(crate) fn add_step(a: u64, b: u64, out: u64) -> Step {
    let f32s = ValueType::F32;
    Step {
        node: 0,
        name: format!("add at {out}"),
        backend: BackendId(0),
        kernel: Kernel { op: Op::Add, inputs: vec![f32s, f32s], weights: vec![], output: f32s },
        inputs: vec![operand(buf(a)), operand(buf(b))],
        weights: vec![],
        output: operand(buf(out)),
        workspace: None,
        kv: None,
    }
}

fn with_arena() -> DeferringBackend<ReferenceBackend> {
    let mut backend = DeferringBackend::reference();
    backend.create_region(RegionId(0), 1024).unwrap();
    backend
}

fn floats(backend: &dyn Backend, offset: u64) -> Result<Vec<f32>, BackendError> {
    let mut values = Vec::new();
    backend.read(buf(offset), &mut |bytes| values = bytemuck::pod_collect_to_vec(bytes))?;
    Ok(values)
}

fn write(backend: &mut dyn Backend, offset: u64, values: [f32; 4]) {
    backend.write(buf(offset), bytemuck::cast_slice(&values)).unwrap();
}

fn is_pending<T: std::fmt::Debug>(result: Result<T, BackendError>) -> bool {
    matches!(result, Err(BackendError::Pending { .. }))
}

#[test]
fn device_pending_data_is_never_read() {
    let mut backend = with_arena();
    write(&mut backend, 0, [1.0, 2.0, 3.0, 4.0]);
    write(&mut backend, 64, [10.0; 4]);
    write(&mut backend, 128, [5.0; 4]); // an old value where the new one goes
    backend.run(&[add_step(0, 64, 128), add_step(128, 64, 192)], &DIMS).unwrap();
    assert_eq!(backend.queued(), 2);
    for offset in [128, 192, 120, 140] {
        assert!(is_pending(floats(&backend, offset)), "{offset}");
    }
    assert_eq!(floats(&backend, 0).unwrap(), [1.0, 2.0, 3.0, 4.0], "what no step writes stays readable");
    // The memory itself shows nothing, neither old nor new.
    assert!(floats(&backend.inner, 192).unwrap().iter().all(|v| v.is_nan()));
    backend.synchronize().unwrap();
    assert_eq!(floats(&backend, 192).unwrap(), [21.0, 22.0, 23.0, 24.0]);
}

#[test]
fn in_place_and_reused_bytes_stay_intact_until_they_are_read() {
    let mut backend = with_arena();
    write(&mut backend, 0, [1.0; 4]);
    write(&mut backend, 64, [2.0; 4]);
    // The second step takes over the first one's input, the third one works in place.
    backend.run(&[add_step(0, 64, 128), add_step(128, 64, 0), add_step(0, 128, 0)], &DIMS).unwrap();
    assert!(is_pending(floats(&backend, 0)));
    backend.synchronize().unwrap();
    assert_eq!(floats(&backend, 0).unwrap(), [8.0; 4]);
}

#[test]
fn host_writes_keep_their_order_with_queued_steps() {
    let mut backend = with_arena();
    write(&mut backend, 0, [1.0; 4]);
    backend.run(&[add_step(0, 64, 128)], &DIMS).unwrap();
    write(&mut backend, 0, [7.0; 4]); // the next batch's input, before the first has run
    backend.copy(buf(128), buf(256)).unwrap();
    backend.run(&[add_step(0, 64, 192)], &DIMS).unwrap();
    backend.fill(buf(128), 0).unwrap();
    assert!(is_pending(floats(&backend, 256)));
    assert!(is_pending(backend.drop_region(RegionId(0))));
    backend.synchronize().unwrap();
    assert_eq!(floats(&backend, 256).unwrap(), [1.0; 4]);
    assert_eq!(floats(&backend, 192).unwrap(), [7.0; 4]);
    assert_eq!(floats(&backend, 128).unwrap(), [0.0; 4]);
}

#[test]
fn kv_regions_are_pending_but_keep_their_cells() {
    let mut backend = with_arena();
    let region = |id| BufRef { backend: BackendId(0), region: RegionId(id), offset: 0, len: 64 };
    for id in [1, 2] {
        backend.create_region(RegionId(id), 64).unwrap();
        backend.write(region(id), &[0x3F; 64]).unwrap();
    }
    let mut step = add_step(0, 0, 0);
    step.kernel.op = Op::KvStore { layer: 0, head_dim: 1 };
    step.kernel.inputs.push(ValueType::I32);
    step.inputs.push(Operand { buf: buf(64), shape: Shape::new(Rows::Tokens, 1), ty: ValueType::I32 });
    step.output = Operand { buf: region(1), shape: Shape::new(Rows::Fixed(4), 4), ty: ValueType::F32 };
    step.kv = Some(KvPair { k: region(1), v: region(2), ty: ValueType::F32, cols: 4, n_cells: 4 });
    backend.write(buf(64), &2i32.to_ne_bytes()).unwrap();
    backend.run(&[step], &DIMS).unwrap();
    for id in [1, 2] {
        assert!(is_pending(backend.read(region(id), &mut |_| ())), "region {id}");
    }
    backend.synchronize().unwrap();
    for id in [1, 2] {
        let mut bytes = Vec::new();
        backend.read(region(id), &mut |b| bytes = b.to_vec()).unwrap();
        assert_eq!(bytes, [&[0x3F; 32][..], &[0; 16], &[0x3F; 16]].concat(), "only cell 2 of region {id} changed");
    }
}

#[test]
fn errors_surface_at_synchronize_and_clear_the_queue() {
    let mut backend = with_arena();
    let mut bad = add_step(0, 64, 128);
    bad.inputs.pop();
    backend.run(&[bad, add_step(0, 64, 192)], &DIMS).unwrap();
    assert!(matches!(backend.synchronize(), Err(BackendError::BadOperand { .. })));
    assert_eq!(backend.queued(), 0);
    backend.synchronize().unwrap();
}

#[test]
fn a_filter_splits_a_graph() {
    let backend = DeferringBackend::new(NullBackend::default())
        .with_name("adder")
        .with_priority(7)
        .with_filter(|kernel| kernel.op == Op::Add);
    let answers = backend.capabilities();
    let kernel = add_step(0, 0, 0).kernel;
    assert_eq!((answers.name(), answers.priority(), answers.supports(&kernel)), ("adder", 7, true));
    assert!(!answers.supports(&Kernel { op: Op::Mul, ..kernel.clone() }));
    let mut backend = backend;
    let mut other = add_step(0, 0, 0);
    other.kernel.op = Op::Mul;
    assert!(matches!(backend.run(&[other], &DIMS), Err(BackendError::Unsupported { .. })));
}
