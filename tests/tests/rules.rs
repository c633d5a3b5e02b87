//! The engine's rules of the design, each under the name given there, on generated models.

use minfer_backend::{BackendError, BufRef, DeferringBackend, ReferenceBackend};
use minfer_engine::*;
use minfer_graph::*;
use minfer_model::build_graph;
use minfer_plan::{PlanOptions, Strategy, plan};
use minfer_tests::*;
use std::sync::Arc;

const PROMPT: [u32; 40] = {
    let mut ids = [0; 40];
    let mut i = 0;
    while i < 40 {
        ids[i] = (i as u32 * 37 + 11) % 250;
        i += 1;
    }
    ids
};

fn model() -> Arc<Model> {
    tiny_named("qwen2-f32")
}

#[test]
fn kv_regions_two_per_layer() {
    let model = model();
    for (cache_type, width) in [(CacheType::F32, 4), (CacheType::F16, 2)] {
        let mut engine = engine(&model, reference(), EngineConfig { cache_type, ..config(100) });
        let layers: Vec<(u32, KvRegions)> = engine.allocator().kv_layers().collect();
        assert_eq!(layers.len(), model.spec.n_layer as usize);
        let kv_cols = u64::from(model.spec.n_kv_head_of(0) * model.spec.head_dim);
        let mut regions = Vec::new();
        for (_, layer) in &layers {
            // 100 positions take four blocks of 32 cells.
            assert_eq!(layer.pair.k.len, 128 * kv_cols * width);
            assert_eq!(layer.pair.v.len, layer.pair.k.len);
            regions.extend([layer.pair.k.region, layer.pair.v.region]);
        }
        regions.sort();
        regions.dedup();
        assert_eq!(regions.len(), 2 * layers.len(), "each region belongs to one layer and side");
        // K and V are written through the pair: after a prompt both hold something, and different things.
        last_logits(&mut engine, &PROMPT);
        for (layer, _) in layers {
            let mut sides = Vec::new();
            for side in [KvSide::K, KvSide::V] {
                engine.read_kv(layer, side, &mut |bytes| sides.push(bytes.to_vec())).unwrap().unwrap();
            }
            assert!(sides.iter().all(|side| side.iter().any(|&byte| byte != 0)));
            assert_ne!(sides[0], sides[1]);
        }
    }
}

#[test]
fn kv_size_change_is_an_error() {
    let mut backends = reference();
    let mut allocator = GraphAllocator::new(vec![]);
    let mut params = config(64).graph_params(GraphKind::Decode, 0).unwrap();
    let id = minfer_backend::BackendId(0);
    let first = allocator.kv(0, KvLayer { cols: 32, window: None }, &params, id, &mut backends).unwrap();
    assert_eq!(
        allocator.kv(0, KvLayer { cols: 32, window: None }, &params, id, &mut backends).unwrap(),
        first,
        "made once"
    );
    params.n_cells *= 2;
    let error = allocator.kv(0, KvLayer { cols: 32, window: None }, &params, id, &mut backends).unwrap_err();
    assert!(matches!(error, EngineError::KvSizeChanged { layer: 0, .. }), "{error}");
    let error = allocator.kv(0, KvLayer { cols: 64, window: None }, &params, id, &mut backends).unwrap_err();
    assert!(matches!(error, EngineError::KvSizeChanged { .. }), "{error}");
}

/// Refused before the run, and again in the kernel when the inputs themselves lie.
#[test]
fn position_beyond_n_ctx_is_an_error() {
    let model = model();
    for backends in [reference(), cpu(2)] {
        let mut engine = engine(&model, backends, config(40));
        let sequence = engine.create_sequence().unwrap();
        let token = |token| BatchToken { token, sequence, output: true };
        for &id in &PROMPT {
            engine.step(&[token(id)]).unwrap();
        }
        let error = engine.step(&[token(1)]).unwrap_err();
        assert!(matches!(error, EngineError::Kv(KvError::ContextFull { position: 40, n_ctx: 40 })), "{error}");
        assert_eq!(engine.sequence_len(sequence).unwrap(), 40, "a refused step changes nothing");
    }
    for backend in [reference, || cpu(2)] {
        let mut backends = backend();
        let (bound, fingerprint) = bind(&model, &mut backends, 40);
        let dims = BatchDims { n_tokens: 1, n_outputs: 1 };
        for (position, cell, table) in [(64, 0, 0), (-1, 0, 0), (i32::MAX, 0, 0), (0, 64, 0), (0, -1, 0), (0, 0, 2)] {
            write_inputs(&bound, &mut backends, &dims, [3, position, cell, 0, table, 0]);
            let error = run(fingerprint, &bound, dims, &mut backends).unwrap_err();
            let is_range = matches!(error, EngineError::Backend(BackendError::OutOfRange { .. }));
            assert!(is_range, "position {position}, cell {cell}, block {table}: {error}");
        }
        // A token, a sequence row and an output row that do not exist.
        for inputs in [[-1, 0, 0, 0, 0, 0], [1 << 20, 0, 0, 0, 0, 0], [3, 0, 0, 1, 0, 0], [3, 0, 0, 0, 0, 1]] {
            write_inputs(&bound, &mut backends, &dims, inputs);
            let error = run(fingerprint, &bound, dims, &mut backends).unwrap_err();
            assert!(matches!(error, EngineError::Backend(BackendError::OutOfRange { .. })), "{inputs:?}: {error}");
        }
        write_inputs(&bound, &mut backends, &dims, [3, 0, 0, 0, 0, 0]);
        run(fingerprint, &bound, dims, &mut backends).unwrap();
    }
}

/// A decode graph bound to a fresh allocator.
fn bind(model: &Model, backends: &mut Backends, n_ctx: u32) -> (BoundPlan, minfer_plan::Fingerprint) {
    let params = GraphParams {
        kind: GraphKind::Decode,
        token_capacity: 1,
        batch_capacity: 1,
        output_capacity: 1,
        sequence_capacity: 1,
        n_ctx,
        n_cells: n_ctx.next_multiple_of(KV_BLOCK_CELLS),
        cache_type: CacheType::F32,
        fusion: Fusion::ALL,
        weights_version: 0,
    };
    let graph = build_graph(&model.spec, &params).unwrap();
    let capabilities: Vec<_> = backends.iter().map(|backend| backend.capabilities()).collect();
    let plan = plan(&graph, &capabilities, PlanOptions::default()).unwrap();
    let parts = model.file.parts().iter().map(|part| part.bytes() as minfer_backend::HostBytes).collect();
    let bound = BoundPlan::new(&graph, plan, &mut GraphAllocator::new(parts), backends).unwrap();
    (bound, minfer_plan::fingerprint(&graph))
}

/// One run that nobody watches.
#[expect(clippy::result_large_err, reason = "tests look at the error")]
fn run(
    graph: minfer_plan::Fingerprint,
    bound: &BoundPlan,
    dims: BatchDims,
    backends: &mut Backends,
) -> Result<(), EngineError> {
    Scheduler::run(graph, &mut RunView { bound, dims, backends }, &mut [], &Interrupt::default())
}

/// Token id, position, cell, sequence row, block (in every place of the table), output row.
fn write_inputs(bound: &BoundPlan, backends: &mut Backends, dims: &BatchDims, values: [i32; 6]) {
    let width = bound.input("block_table").unwrap().operand.shape.cols as usize;
    let names = ["token_ids", "positions", "cells", "sequence_rows", "block_table", "output_rows"];
    for (name, value) in names.into_iter().zip(values) {
        let values = vec![value; if name == "block_table" { width } else { 1 }];
        bound.write_input(name, &values, dims, backends).unwrap();
    }
}

#[test]
fn allocator_survives_rebuild() {
    let model = model();
    for backends in [reference(), cpu(2)] {
        let mut engine = engine(&model, backends, config(64));
        let regions = |engine: &Engine| -> Vec<(BufRef, Option<usize>)> {
            let pairs = engine.allocator().kv_layers().flat_map(|(_, kv)| [kv.pair.k, kv.pair.v]);
            pairs.map(|buf| (buf, engine.region_address(buf))).collect()
        };
        let before = regions(&engine);
        let allocated = engine.allocator().allocated_bytes();
        let kv_before: Vec<u8> = {
            last_logits(&mut engine, &PROMPT);
            let mut bytes = Vec::new();
            engine.read_kv(0, KvSide::K, &mut |b| bytes.extend_from_slice(b)).unwrap().unwrap();
            bytes
        };
        assert_eq!(engine.cache().builds(), 1, "the prompt ran on the graph planned first");
        greedy(&mut engine, &PROMPT[..1], 2);
        assert_eq!(engine.cache().builds(), 2, "decode has a graph of its own");
        assert_eq!(regions(&engine), before, "same regions at the same addresses");
        assert_eq!(engine.allocator().allocated_bytes(), allocated, "nothing new was allocated");
        // Cells that the second sequence did not reach are as the first left them.
        let row_bytes = kv_before.len() / 64;
        engine
            .read_kv(0, KvSide::K, &mut |b| assert_eq!(b[8 * row_bytes..], kv_before[8 * row_bytes..]))
            .unwrap()
            .unwrap();
    }
}

#[test]
fn inputs_are_found_by_name() {
    let model = model();
    let mut backends = reference();
    let (bound, _) = bind(&model, &mut backends, 64);
    for name in ["token_ids", "positions", "cells", "sequence_rows", "block_table", "output_rows"] {
        assert_eq!(bound.input(name).unwrap().name, name);
    }
    let error = bound.input("tokens").unwrap_err();
    assert!(matches!(&error, EngineError::UnknownInput { known, .. } if known.contains("token_ids")), "{error}");
    let dims = BatchDims { n_tokens: 1, n_outputs: 1 };
    let error = bound.write_input("token_ids", &[1, 2], &dims, &mut backends).unwrap_err();
    assert!(matches!(error, EngineError::InputSize { expected: 4, got: 8, .. }), "{error}");
}

#[test]
fn i32_inputs_are_bit_exact() {
    let model = model();
    for make in [reference, || cpu(1)] {
        let mut backends = make();
        let (bound, _) = bind(&model, &mut backends, 64);
        let dims = BatchDims { n_tokens: 1, n_outputs: 1 };
        for bits in [0u32, 1, 0x7F80_0001, 0x7FC0_0000, 0xFFFF_FFFF, 0x8000_0000, 0xFF80_0000, 16_777_217, 0xDEAD_BEEF]
        {
            bound.write_input("token_ids", &[bits as i32], &dims, &mut backends).unwrap();
            let mut got = Vec::new();
            let buf = bound.input("token_ids").unwrap().operand.buf;
            backends[0].read(BufRef { len: 4, ..buf }, &mut |bytes| got = bytes.to_vec()).unwrap();
            assert_eq!(got, bits.to_le_bytes());
        }
    }
}

/// Two backends, of which one only queues: values cross by planned copies, and nothing reads what is not computed.
fn split_backends() -> Backends {
    let deferring = DeferringBackend::reference()
        .with_name("deferring")
        .with_priority(100)
        .with_filter(|kernel| matches!(kernel.op, Op::RmsNorm { .. } | Op::GatedLinear { .. } | Op::Copy));
    vec![Box::new(ReferenceBackend::new()), Box::new(deferring)]
}

#[test]
fn device_pending_data_is_never_read() {
    let model = model();
    let expected = bits(&last_logits(&mut engine(&model, reference(), config(64)), &PROMPT));
    let mut split = engine(&model, split_backends(), config(64));
    assert_eq!(bits(&last_logits(&mut split, &PROMPT)), expected);
    assert_eq!(bits(&last_logits(&mut split, &PROMPT)), expected, "a reused graph runs again");
    let chain = greedy(&mut engine(&model, reference(), config(64)), &PROMPT, 8);
    assert_eq!(greedy(&mut split, &PROMPT, 8), chain);
    // Everything on the queueing backend.
    let all: Backends = vec![Box::new(DeferringBackend::reference())];
    assert_eq!(bits(&last_logits(&mut engine(&model, all, config(64)), &PROMPT)), expected);
}

/// The run's side of the rule; the plan's side is in `minfer-plan`.
#[test]
fn staging_is_planned() {
    let model = model();
    let mut engine = engine(&model, split_backends(), config(64));
    let bytes = engine.allocator().allocated_bytes();
    let first = bits(&last_logits(&mut engine, &PROMPT));
    let second = bits(&last_logits(&mut engine, &PROMPT));
    assert_eq!(first, second, "staged copies are rewritten on every run");
    assert_eq!(engine.allocator().allocated_bytes(), bytes, "running allocates nothing");
}

/// One decode graph serves the whole generation, however many tokens are cached; prompts of all lengths share another.
#[test]
fn decode_builds_once() {
    let model = model();
    let mut engine = engine(&model, reference(), config(512));
    greedy(&mut engine, &PROMPT, 60);
    assert_eq!(engine.cache().builds(), 2, "one for the prompt, one for all decode steps");
    for n in [2, 3, 17, 39] {
        greedy(&mut engine, &PROMPT[..n], 3);
    }
    assert_eq!(engine.cache().builds(), 2);
    assert_eq!(engine.cache().len(), 2);
}

/// Running a graph against another graph's plan is refused, also when counts and sizes agree.
#[test]
fn plan_is_bound_to_its_graph() {
    let model = model();
    let mut backends = reference();
    let (bound, fingerprint) = bind(&model, &mut backends, 64);
    let mut other = build_graph(&model.spec, &bound.plan.graph.params).unwrap();
    let node = other.find("blk.0.attn_residual").unwrap();
    other.nodes[node.index()].inputs.swap(0, 1);
    verify(&other).unwrap();
    let capabilities: Vec<_> = backends.iter().map(|backend| backend.capabilities()).collect();
    let plan_of_bound = bound.plan.clone();
    let parts = model.file.parts().iter().map(|part| part.bytes() as minfer_backend::HostBytes).collect();
    let refused = BoundPlan::new(&other, plan_of_bound, &mut GraphAllocator::new(parts), &mut backends);
    assert!(matches!(refused, Err(EngineError::PlanMismatch { .. })));
    let dims = BatchDims { n_tokens: 1, n_outputs: 1 };
    let other_print = minfer_plan::fingerprint(&other);
    assert_ne!(other_print, fingerprint);
    let refused = run(other_print, &bound, dims, &mut backends);
    assert!(matches!(refused, Err(EngineError::PlanMismatch { .. })));
    let own = plan(&other, &capabilities, PlanOptions::default()).unwrap();
    assert_eq!(own.source, other_print);
}

/// Naive, pool and planned, with and without poison: the same bits, in prefill and decode.
#[test]
fn strategies_agree_bitwise() {
    for name in ["qwen2-f32", "qwen2-q4_k_m", "gemma3-f32", "qwen3-f32"] {
        let model = tiny_named(name);
        for make in [reference, || cpu(2), split_backends] {
            let mut expected: Option<(Vec<u32>, Vec<u32>)> = None;
            for strategy in [Strategy::Naive, Strategy::Pool, Strategy::Planned] {
                for poison in [false, true] {
                    let mut engine = engine(&model, make(), EngineConfig { strategy, poison, ..config(64) });
                    let logits = bits(&last_logits(&mut engine, &PROMPT));
                    assert!(logits.iter().all(|&b| f32::from_bits(b).is_finite()), "{name} {strategy} {poison}");
                    let chain = greedy(&mut engine, &PROMPT[..5], 6);
                    let got = (logits, chain);
                    let expected = expected.get_or_insert_with(|| got.clone());
                    assert_eq!(got, *expected, "{name} {strategy} poison {poison}");
                }
            }
        }
    }
}

/// The estimate and the allocation are one path: what the blueprint says is what the allocator took.
/// Cells that a sequence gives back are spoilt under `poison`, so that whoever still reads one is found out; and a sequence
/// that gets them next answers as in a fresh engine.
#[test]
fn freed_cells_are_poisoned() {
    let model = model();
    let mut poisoned = engine(&model, reference(), EngineConfig { poison: true, ..config(64) });
    let fresh = last_logits(&mut poisoned, &PROMPT);
    let cells = |engine: &Engine, wanted: &dyn Fn(&[u8]) -> bool| -> Vec<bool> {
        let mut found = Vec::new();
        let cols = (model.spec.n_kv_head_of(0) * model.spec.head_dim) as usize;
        engine.read_kv(0, KvSide::K, &mut |bytes| found.extend(bytes.chunks(cols * 4).map(wanted))).unwrap().unwrap();
        found
    };
    let spoilt = |cell: &[u8]| cell.iter().all(|&byte| byte == 0xFF);
    assert!(cells(&poisoned, &spoilt).into_iter().all(|spoilt| spoilt), "the session is closed");
    let mut session = Session::new(&mut poisoned).unwrap();
    session.read(&mut poisoned, &PROMPT, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    session.cut(&mut poisoned, 7).unwrap();
    let held: Vec<bool> = cells(&poisoned, &spoilt).into_iter().map(|spoilt| !spoilt).collect();
    assert_eq!(held, (0..64).map(|cell| cell < 7).collect::<Vec<_>>());
    session.close(&mut poisoned).unwrap();
    assert_eq!(bits(&last_logits(&mut poisoned, &PROMPT)), bits(&fresh));
}

#[test]
fn estimate_equals_actual() {
    let model = model();
    // One sequence, and many with few tokens and outputs in a batch: then the decode graph is the larger in some respect.
    let one = config(200);
    let many = EngineConfig { n_sequences: 16, n_ubatch: 4, n_outputs: 1, ..config(64) };
    let settings = [one, many].into_iter().flat_map(|config| {
        [Strategy::Naive, Strategy::Pool, Strategy::Planned].map(|strategy| EngineConfig { strategy, ..config })
    });
    for config in settings {
        let capabilities: Vec<_> = cpu(1).iter().map(|backend| backend.capabilities()).collect();
        let estimate = Blueprint::new(&model, &config, &capabilities).unwrap();
        let mut engine = engine(&model, cpu(1), config);
        let planned = estimate.ledger.sum(minfer_plan::Owner::Arena) + estimate.ledger.sum(minfer_plan::Owner::Kv);
        assert_eq!(engine.allocator().allocated_bytes(), planned);
        assert_eq!(engine.ledger(), &estimate.ledger);
        greedy(&mut engine, &PROMPT, 20);
        let sequences: Vec<SequenceId> = (0..config.n_sequences).map(|_| engine.create_sequence().unwrap()).collect();
        let batch: Vec<BatchToken> =
            sequences.iter().map(|&sequence| BatchToken { token: 1, sequence, output: true }).collect();
        engine.step(&batch).unwrap();
        assert_eq!(engine.allocator().allocated_bytes(), planned, "running takes nothing more");
    }
}

#[test]
fn worker_count_does_not_change_results() {
    for name in ["qwen2-f32", "qwen2-q4_k_m", "gemma3-f32"] {
        let model = tiny_named(name);
        let run = |threads| {
            let mut engine = engine(&model, cpu(threads), config(128));
            (bits(&last_logits(&mut engine, &PROMPT)), greedy(&mut engine, &PROMPT, 10))
        };
        let one = run(1);
        for threads in [2, 3, 4, 7] {
            assert_eq!(run(threads), one, "{name} with {threads} threads");
        }
    }
}

/// A sequence alone, or stepped together with others.
#[test]
fn batching_does_not_change_results() {
    for name in ["qwen2-f32", "qwen2-q4_k_m", "gemma3-f32"] {
        let model = tiny_named(name);
        // The fast backend has a kernel for few tokens and one for many: the last bits differ, and with quantised weights
        // a few activations fall to the next level.
        let fast = if name.ends_with("f32") { 1e-5 } else { 2e-3 };
        for (make, tolerance) in [(reference as fn() -> Backends, 0.0), (|| cpu(2), fast)] {
            let settings = EngineConfig { n_sequences: 3, n_outputs: 3, ..config(64) };
            let mut alone = engine(&model, make(), settings);
            let mut together = engine(&model, make(), settings);
            let prompts = [&PROMPT[..33], &PROMPT[7..12], &PROMPT[20..40]];
            let sequences = [0, 1, 2].map(|_| together.create_sequence().unwrap());
            // Prompts of different lengths in one batch, then a step of all three.
            let mut batch = Vec::new();
            for (prompt, sequence) in prompts.iter().zip(sequences) {
                let last = prompt.len() - 1;
                batch.extend(prompt.iter().enumerate().map(|(at, &token)| BatchToken {
                    token,
                    sequence,
                    output: at == last,
                }));
            }
            let first = together.step(&batch).unwrap();
            let next = [5, 9, 13];
            let batch: Vec<BatchToken> = next
                .iter()
                .zip(sequences)
                .map(|(&token, sequence)| BatchToken { token, sequence, output: true })
                .collect();
            let second = together.step(&batch).unwrap();
            for (at, prompt) in prompts.iter().enumerate() {
                let mut ids = prompt.to_vec();
                let error = minfer_testkit::relative_error(first.row(at), &last_logits(&mut alone, &ids));
                assert!(error <= tolerance, "{name}, prompt {at}: {error}");
                ids.push(next[at]);
                let error = minfer_testkit::relative_error(second.row(at), &last_logits(&mut alone, &ids));
                assert!(error <= tolerance, "{name}, step {at}: {error}");
            }
        }
    }
}

/// A prompt twice, one longer, one shorter; a cut tail; a forked prefix: always the logits of a fresh run.
#[test]
fn sequences_can_be_cut_and_forked() {
    let model = model();
    for make in [reference, || cpu(2)] {
        let settings = EngineConfig { n_sequences: 3, ..config(64) };
        let mut engine = engine(&model, make(), settings);
        let fresh = |engine: &mut Engine, ids: &[u32]| last_logits(engine, ids);
        let mut session = Session::new(&mut engine).unwrap();
        let go = &mut |_| std::ops::ControlFlow::Continue(());
        session.read(&mut engine, &PROMPT, go).unwrap();
        // The same prompt again: keep all but the last token, which is read again.
        session.cut(&mut engine, PROMPT.len() - 1).unwrap();
        let again = session.read(&mut engine, &PROMPT[39..], go).unwrap().unwrap();
        assert!(minfer_testkit::relative_error(&again, &fresh(&mut engine, &PROMPT)) < 1e-5);
        // Another ending after position 35.
        session.cut(&mut engine, 35).unwrap();
        let other = session.read(&mut engine, &[1, 2, 3], go).unwrap().unwrap();
        let ids: Vec<u32> = PROMPT[..35].iter().copied().chain([1, 2, 3]).collect();
        assert!(minfer_testkit::relative_error(&other, &fresh(&mut engine, &ids)) < 1e-5);
        // A fork in the middle of a block: both go on, neither sees the other.
        let fork = engine.fork_sequence(session.sequence(), 36).unwrap();
        let step = |engine: &mut Engine, sequence, token| {
            engine.step(&[BatchToken { token, sequence, output: true }]).unwrap().values
        };
        let forked = step(&mut engine, fork, 77);
        let original = step(&mut engine, session.sequence(), 88);
        let fork_ids: Vec<u32> = ids[..36].iter().copied().chain([77]).collect();
        let original_ids: Vec<u32> = ids.iter().copied().chain([88]).collect();
        assert!(minfer_testkit::relative_error(&forked, &fresh(&mut engine, &fork_ids)) < 1e-5);
        assert!(minfer_testkit::relative_error(&original, &fresh(&mut engine, &original_ids)) < 1e-5);
    }
}
