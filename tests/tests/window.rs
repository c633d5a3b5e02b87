//! Layers with a window keep only what is seen, and no answer changes by a bit. What holds the whole context, to compare
//! with, is an engine whose batch may be as long as its context: its windowed layers never give a cell back.

use minfer_engine::*;
use minfer_graph::{CacheType, KvSide};
use minfer_testkit::{TinyArch, TinyModel};
use minfer_tests::*;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Ids that look random.
fn ids(n: usize, n_vocab: u32) -> Vec<u32> {
    (0..n as u64).map(|i| ((i * 104_729 + i * i * 7 + 3) % u64::from(n_vocab)) as u32).collect()
}

/// Cells of layer 0, which has a window.
fn window_cells(engine: &Engine) -> u32 {
    let (_, regions) = engine.allocator().kv_layers().next().unwrap();
    assert!(regions.window.is_some());
    regions.pair.n_cells
}

/// The bits of the logits after each batch of `n` ids, read into a new sequence.
fn after_each(engine: &mut Engine, ids: &[u32], n: usize) -> Vec<Vec<u32>> {
    let sequence = engine.create_sequence().unwrap();
    let rows = ids.chunks(n).map(|ids| step(engine, sequence, ids)).collect();
    engine.release_sequence(sequence).unwrap();
    rows
}

/// The bits of the logits after a batch.
fn step(engine: &mut Engine, sequence: SequenceId, ids: &[u32]) -> Vec<u32> {
    let last = ids.len() - 1;
    let token = |(at, &token): (usize, &u32)| BatchToken { token, sequence, output: at == last };
    let batch: Vec<BatchToken> = ids.iter().enumerate().map(token).collect();
    bits(&engine.step(&batch).unwrap().values)
}

/// The same settings with cells for the whole context in every layer.
fn whole(config: EngineConfig) -> EngineConfig {
    EngineConfig { n_ubatch: config.n_ctx, ..config }
}

/// Windows of one position, of parts of blocks, of more than the context; every layer or some; poisoned throughout.
#[test]
fn windows_do_not_change_answers() {
    let windowed = |arch, window| TinyModel { window: Some(window), ..TinyModel::new(&format!("w{window}"), arch) };
    let gemma = |window| TinyModel { head_dim: 32, n_kv_head: 1, ..windowed(TinyArch::Gemma3, window) };
    let models = [gemma(1), gemma(8), gemma(33), gemma(500), windowed(TinyArch::Llama, 40)];
    for (tiny_model, cells) in models.iter().zip([64, 64, 96, 224, 96]) {
        let model = tiny(tiny_model);
        let ids = ids(210, model.spec.n_vocab);
        for make in [reference as fn() -> Backends, || cpu(2)] {
            for cache_type in [CacheType::F32, CacheType::F16] {
                let settings = EngineConfig { poison: true, cache_type, n_ubatch: 23, ..config(220) };
                let mut kept = engine(&model, make(), whole(settings));
                let mut held = engine(&model, make(), settings);
                assert_eq!((window_cells(&kept), window_cells(&held)), (224, cells), "{}", tiny_model.name);
                for n in [23, 7, 1] {
                    // The sequences before left their cells in any order.
                    let (want, got) = (after_each(&mut kept, &ids, n), after_each(&mut held, &ids, n));
                    assert!(want == got, "{}, batches of {n}", tiny_model.name);
                }
            }
        }
    }
}

#[test]
fn gemma_answers_alike_far_beyond_its_window() {
    let model = real("gemma3-270m-q4_k_m.gguf");
    for (n_ubatch, cells, n_tokens) in [(512, 1056, 1500), (64, 608, 1500), (7, 576, 700)] {
        let ids = ids(n_tokens, model.spec.n_vocab);
        let settings = EngineConfig { n_ctx: 1536, n_ubatch, ..EngineConfig::default() };
        let mut kept = engine(&model, cpu(2), whole(settings));
        let mut held = engine(&model, cpu(2), settings);
        assert_eq!((window_cells(&kept), window_cells(&held)), (1536, cells));
        let n = n_ubatch as usize;
        let (want, got) = (after_each(&mut kept, &ids, n), after_each(&mut held, &ids, n));
        assert!(want == got, "batches of {n}");
    }
}

/// Sequences that grow in turn, are forked and cut across the edges of their windows: each answers as if it were alone and
/// all its cells were there.
#[test]
fn forks_and_cuts_across_the_window() {
    let model = tiny(&TinyModel { window: Some(20), ..TinyModel::new("w20", TinyArch::Gemma3) });
    let settings = EngineConfig { poison: true, n_sequences: 3, n_ubatch: 40, ..config(400) };
    let mut kept = engine(&model, reference(), EngineConfig { n_sequences: 1, ..whole(settings) });
    let mut held = engine(&model, reference(), settings);
    let ids = ids(400, model.spec.n_vocab);
    let mut fresh = |ids: &[u32]| bits(&last_logits(&mut kept, ids));

    let a = held.create_sequence().unwrap();
    for chunk in ids[..240].chunks(40) {
        step(&mut held, a, chunk);
    }
    // A batch back, and forward with others.
    let b = held.fork_sequence(a, 200).unwrap();
    held.cut_sequence(a, 201).unwrap();
    let with = |n: usize, other: &[u32]| ids[..n].iter().chain(other).copied().collect::<Vec<u32>>();
    let tail: Vec<u32> = ids[300..340].to_vec();
    assert!(step(&mut held, a, &tail) == fresh(&with(201, &tail)));
    assert!(step(&mut held, b, &[5]) == fresh(&with(200, &[5])));
    // Both go on far enough that nothing of what they shared is held.
    let c = held.fork_sequence(b, 200).unwrap();
    let mut both = [with(201, &tail), with(200, &[5])];
    for chunk in ids[100..180].chunks(20) {
        for (sequence, all) in [a, b].into_iter().zip(&mut both) {
            all.extend(chunk);
            assert!(step(&mut held, sequence, chunk) == fresh(all));
        }
    }
    assert!(step(&mut held, c, &[7]) == fresh(&with(200, &[7])));

    // What cannot be cut is refused and changes nothing; what can, is told.
    let error = held.cut_sequence(a, 30).unwrap_err();
    let EngineError::Kv(KvError::WindowPassed { least, got: 30, .. }) = error else { panic!("{error}") };
    assert!(matches!(
        held.fork_sequence(a, least - 1),
        Err(EngineError::Kv(KvError::NoSequence { .. } | KvError::WindowPassed { .. }))
    ));
    assert_eq!(held.sequence_len(a).unwrap() as usize, both[0].len());
    held.cut_sequence(a, least).unwrap();
    assert!(step(&mut held, a, &[9]) == fresh(&[&both[0][..least as usize], &[9]].concat()));
    held.cut_sequence(a, 0).unwrap();
    assert!(step(&mut held, a, &ids[..30]) == fresh(&ids[..30]));
}

/// A session that is cut further than its windows reach is empty, says so, and reads again.
#[test]
fn a_session_reads_again_what_its_windows_lost() {
    let model = tiny(&TinyModel { window: Some(20), ..TinyModel::new("w20", TinyArch::Gemma3) });
    let settings = EngineConfig { n_ubatch: 40, ..config(400) };
    let mut engine = engine(&model, reference(), settings);
    let ids = ids(300, model.spec.n_vocab);
    let go = &mut |_| ControlFlow::Continue(());
    let want = bits(&last_logits(&mut engine, &ids[..290]));
    let mut session = Session::new(&mut engine).unwrap();
    session.read(&mut engine, &ids, go).unwrap();
    // The same prompt again but for its end, then one of which only the start is the same.
    assert_eq!(session.cut(&mut engine, 289).unwrap(), 289);
    assert_eq!(bits(&session.read(&mut engine, &ids[289..290], go).unwrap().unwrap()), want);
    assert_eq!(session.cut(&mut engine, 100).unwrap(), 0);
    assert!(session.tokens().is_empty());
    assert_eq!(bits(&session.read(&mut engine, &ids[..290], go).unwrap().unwrap()), want);
}

/// A batch that ends beyond the context has taken blocks, and given others back, before that is noticed.
#[test]
fn a_refused_batch_leaves_the_window() {
    let model = tiny(&TinyModel { window: Some(20), ..TinyModel::new("w20", TinyArch::Gemma3) });
    let settings = EngineConfig { poison: true, n_ubatch: 64, ..config(200) };
    let mut held = engine(&model, reference(), settings);
    let ids = ids(260, model.spec.n_vocab);
    for len in 137..200 {
        let sequence = held.create_sequence().unwrap();
        for chunk in ids[..len].chunks(64) {
            step(&mut held, sequence, chunk);
        }
        let batch: Vec<_> = (0..64).map(|token| BatchToken { token, sequence, output: false }).collect();
        let error = held.step(&batch).unwrap_err();
        assert!(matches!(error, EngineError::Kv(KvError::ContextFull { .. })), "{error}");
        let got = step(&mut held, sequence, &ids[len..len + 1]);
        held.release_sequence(sequence).unwrap();
        assert!(got == bits(&last_logits(&mut held, &ids[..len + 1])), "{len} positions");
    }
}

/// Under `poison`, cells of positions that left the window and that nobody has taken since hold nothing.
#[test]
fn cells_that_left_the_window_are_poisoned() {
    let model = tiny(&TinyModel { window: Some(20), ..TinyModel::new("w20", TinyArch::Gemma3) });
    let settings = EngineConfig { poison: true, n_ubatch: 40, ..config(400) };
    let mut engine = engine(&model, reference(), settings);
    assert_eq!(window_cells(&engine), 96);
    let cols = (model.spec.n_kv_head_of(0) * model.spec.head_dim) as usize;
    let filled = |engine: &Engine| {
        let mut n = 0;
        let is_filled = |cell: &&[u8]| cell.iter().any(|&byte| byte != 0xFF);
        engine.read_kv(0, KvSide::K, &mut |bytes| n = bytes.chunks(cols * 4).filter(is_filled).count()).unwrap();
        n
    };
    let sequence = engine.create_sequence().unwrap();
    for (at, &id) in ids(150, model.spec.n_vocab).iter().enumerate() {
        step(&mut engine, sequence, &[id]);
        let len = at + 1;
        let given_back = len.div_ceil(32).saturating_sub(3) * 32;
        assert_eq!(filled(&engine), len - given_back, "{len} positions");
    }
    engine.release_sequence(sequence).unwrap();
    assert_eq!(filled(&engine), 0);
}

/// One plan serves every batch, and the ledger is what is allocated, also where kinds of layers differ in size.
#[test]
fn window_plans_are_made_once() {
    let model: Arc<Model> = tiny(&TinyModel { window: Some(20), ..TinyModel::new("w20", TinyArch::Gemma3) });
    let settings = EngineConfig { n_sequences: 2, n_ubatch: 40, ..config(400) };
    let mut engine = engine(&model, cpu(2), settings);
    let ids = ids(300, model.spec.n_vocab);
    let sequence = engine.create_sequence().unwrap();
    let planned = engine.ledger().sum(minfer_plan::Owner::Arena) + engine.ledger().sum(minfer_plan::Owner::Kv);
    let mut at = 0;
    for n in [40, 1, 39, 2, 7, 1, 40, 33, 1, 40, 40] {
        step(&mut engine, sequence, &ids[at..at + n]);
        at += n;
        assert_eq!(engine.allocator().allocated_bytes(), planned);
    }
    assert_eq!(engine.cache().builds(), 2, "a graph for prompts and one for decoding");
}
