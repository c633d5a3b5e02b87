//! The budget: what it refuses is refused before anything is allocated, and all that it says is true when planned again.

use minfer_backend::Capabilities;
use minfer_engine::*;
use minfer_graph::CacheType;
use minfer_plan::{Ledger, Owner, Strategy};
use minfer_testkit::{TinyArch, TinyModel};
use minfer_tests::spy::{Call, Spy};
use minfer_tests::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A backend, and the bytes that it was asked for.
fn counting() -> (Backends, Arc<AtomicU64>) {
    let bytes = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&bytes);
    let tell = move |call: Call<'_>| {
        if let Call::Region(bytes) = call {
            count.fetch_add(bytes, Ordering::Relaxed);
        }
    };
    (vec![Box::new(Spy { inner: cpu(1).remove(0), tell })], bytes)
}

fn capabilities() -> Vec<Arc<dyn Capabilities>> {
    cpu(1).iter().map(|backend| backend.capabilities()).collect()
}

/// Settings with something to save everywhere.
fn lavish() -> EngineConfig {
    EngineConfig {
        n_ctx: 512,
        n_ubatch: 256,
        n_sequences: 4,
        cache_type: CacheType::F32,
        strategy: Strategy::Naive,
        ..EngineConfig::default()
    }
}

fn refused(model: &Model, config: EngineConfig) -> Shortfall {
    let capabilities = capabilities();
    let replanner = Replanner { model, config, backends: &capabilities };
    let blueprint = replanner.blueprint(&[]).unwrap();
    match admit(&replanner, &blueprint, Levers::default()) {
        Err(EngineError::OverBudget(shortfall)) => *shortfall,
        other => panic!("{other:?}"),
    }
}

#[test]
fn budget_is_enforced_before_allocation() {
    let model = tiny_named("qwen2-f32");
    let needed = Blueprint::new(&model, &lavish(), &capabilities()).unwrap().ledger.total();
    let with = |bytes| EngineConfig { budget: Some(Budget::of_all(bytes)), ..lavish() };
    for budget in [0, 1, needed / 2, needed - 1] {
        let (backends, allocated) = counting();
        match Engine::new(model.clone(), backends, with(budget)) {
            Err(EngineError::OverBudget(shortfall)) => assert_eq!(shortfall.needed_bytes, needed),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("{budget} bytes are too few"),
        }
        assert_eq!(allocated.load(Ordering::Relaxed), 0, "nothing was allocated under {budget} bytes");
    }
    // Nor does a blueprint of one's own get around it.
    let (backends, allocated) = counting();
    let blueprint = Blueprint::new(&model, &lavish(), &capabilities()).unwrap();
    assert!(Engine::from_blueprint(model.clone(), backends, with(needed - 1), blueprint).is_err());
    assert_eq!(allocated.load(Ordering::Relaxed), 0);

    let (backends, allocated) = counting();
    let engine = Engine::new(model.clone(), backends, with(needed)).unwrap();
    let planned: u64 = [Owner::Weights, Owner::Kv, Owner::Arena].map(|owner| engine.ledger().sum(owner)).iter().sum();
    assert_eq!(allocated.load(Ordering::Relaxed), planned, "what fits is allocated, to the byte");
    assert_eq!(engine.regions().map(|(_, buf)| buf.len).sum::<u64>(), planned);
}

#[test]
fn mapped_weights_may_be_left_out_of_the_count() {
    let model = tiny_named("qwen2-f32");
    let ledger = Blueprint::new(&model, &config(64), &capabilities()).unwrap().ledger;
    let owned = ledger.total() - ledger.sum(Owner::Weights);
    let with = |bytes| EngineConfig { budget: Some(Budget { bytes, weights: false }), ..config(64) };
    assert!(Engine::new(model.clone(), cpu(1), with(owned)).is_ok());
    let shortfall = refused(&model, with(owned - 1));
    assert_eq!(shortfall.needed_bytes, owned);
    assert!(shortfall.owners.iter().all(|line| line.owner != Owner::Weights), "{:?}", shortfall.owners);
}

/// A header is enough to plan and to refuse, and for no engine: whoever forgot the weights is told so.
#[test]
fn a_header_alone_makes_no_engine() {
    let path = std::env::temp_dir().join(format!("minfer-header-{}.gguf", unique()));
    let shape = TinyModel::new("header", TinyArch::Llama);
    let len = shape.write_sparse(&path, 64 << 20).unwrap();
    let model = Arc::new(Model::open_header(&path, None).unwrap());
    let (backends, allocated) = counting();
    match Engine::new(Arc::clone(&model), backends, config(64)) {
        Err(EngineError::WeightsNotMapped { path: told, mapped_bytes, file_bytes }) => {
            assert_eq!((told, file_bytes), (path.clone(), len));
            assert!(mapped_bytes < len, "{mapped_bytes}");
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("an engine without weights"),
    }
    assert_eq!(allocated.load(Ordering::Relaxed), 0);
    let model = Arc::into_inner(model).unwrap().map_weights().unwrap();
    assert!(Engine::new(Arc::new(model), cpu(1), config(64)).is_ok());
    std::fs::remove_file(&path).unwrap();
}

/// Every remedy saves what it says and suffices if it says so, those that suffice come first, and nobody is sent to a
/// setting that does not help.
#[test]
fn remedies_keep_their_word() {
    let model = tiny_named("gemma3-f32");
    let capabilities = capabilities();
    let ledger = |config: EngineConfig, change: &[Change]| -> Ledger {
        Replanner { model: &model, config, backends: &capabilities }.blueprint(change).unwrap().ledger
    };
    let needed = ledger(lavish(), &[]).total();
    let (mut n_enough, mut n_together, mut n_hopeless) = (0, 0, 0);
    for percent in (1..100).step_by(3) {
        let budget = needed / 100 * percent;
        let config = EngineConfig { budget: Some(Budget::of_all(budget)), ..lavish() };
        let shortfall = refused(&model, config);
        assert_eq!(shortfall.owners.len(), 3);
        assert!(shortfall.owners.windows(2).all(|pair| pair[0].bytes >= pair[1].bytes));
        assert!((1..=3).contains(&shortfall.remedies.len()));
        for remedy in &shortfall.remedies {
            let after = ledger(config, &[remedy.change]).total();
            assert_eq!((needed - after, after <= budget), (remedy.saves_bytes, remedy.suffices), "{remedy:?}");
            assert!(remedy.saves_bytes > 0);
        }
        let enough: Vec<bool> = shortfall.remedies.iter().map(|remedy| remedy.suffices).collect();
        assert!(enough.is_sorted_by(|a, b| a >= b), "{enough:?}");
        match (enough[0], &shortfall.together) {
            (true, None) => n_enough += 1,
            (false, Some(together)) => {
                n_together += 1;
                let after = ledger(config, &together.changes).total();
                assert_eq!(after, together.needed_bytes);
                assert!(after <= budget && together.changes.len() > 1);
            }
            (false, None) => {
                n_hopeless += 1;
                assert!(shortfall.least_bytes > budget);
            }
            (true, Some(_)) => panic!("one change is enough, why several"),
        }
    }
    assert!(n_enough > 0 && n_together > 0 && n_hopeless > 0, "{n_enough} {n_together} {n_hopeless}");
}

/// The largest value that fits really loads under the same budget, and the next one is refused.
#[test]
fn what_fits_loads_and_the_next_does_not() {
    let settings =
        [(Fit::NCtx, Change::NCtx as fn(u32) -> Change), (Fit::Ubatch, Change::Ubatch), (Fit::Slots, Change::Slots)];
    let capabilities = capabilities();
    // With windows, a longer batch needs more cells too.
    for (name, (what, change)) in ["llama-f32", "gemma3-f32"].into_iter().flat_map(|name| settings.map(|s| (name, s))) {
        let model = tiny_named(name);
        let config = EngineConfig { n_ctx: 256, n_ubatch: 32, n_sequences: 2, ..EngineConfig::default() };
        let total = |value| {
            let replanner = Replanner { model: &model, config, backends: &capabilities };
            replanner.blueprint(&[change(value)]).unwrap().ledger.total()
        };
        for budget in [total(3), total(100), total(100) + 1, total(101) - 1] {
            let budget = Budget::of_all(budget);
            let config = EngineConfig { budget: Some(budget), ..config };
            let found = fit(&Replanner { model: &model, config, backends: &capabilities }, budget, what);
            let value = found.value.unwrap();
            assert_eq!(found.needed_bytes, total(value));
            let (next, next_bytes) = found.next.unwrap();
            assert_eq!((next, next_bytes), (value + 1, total(value + 1)));
            assert!(found.needed_bytes <= budget.bytes && budget.bytes < next_bytes, "{name} {what:?} {found:?}");
            assert!(Engine::new(model.clone(), cpu(1), change(value).apply(config)).is_ok(), "{what:?} {value}");
            assert!(matches!(
                Engine::new(model.clone(), cpu(1), change(next).apply(config)),
                Err(EngineError::OverBudget(_))
            ));
        }
        // Nothing fits, and everything fits.
        let replanner = Replanner { model: &model, config, backends: &capabilities };
        let none = fit(&replanner, Budget::of_all(1000), what);
        assert_eq!((none.value, none.needed_bytes, none.next), (None, total(1), None));
        let limits = match what {
            Fit::NCtx => model.spec.n_ctx_train,
            Fit::Ubatch => 512,
            Fit::Slots => continue,
        };
        let all = fit(&replanner, Budget::of_all(u64::MAX), what);
        assert_eq!((all.value, all.next, all.most), (Some(limits), None, limits));
    }
}

/// Contexts below 256 are proposed too, so that what is said to be needed at least really is.
#[test]
fn short_contexts_are_proposed() {
    let model = tiny_named("llama-f32");
    let config = EngineConfig { n_ctx: 256, n_ubatch: 16, n_sequences: 1, ..EngineConfig::default() };
    let capabilities = capabilities();
    let total = |changes: &[Change]| {
        let replanner = Replanner { model: &model, config, backends: &capabilities };
        replanner.blueprint(changes).unwrap().ledger.total()
    };
    let with = |bytes| EngineConfig { budget: Some(Budget::of_all(bytes)), ..config };
    for change in [Change::NCtx(224), Change::NCtx(32)] {
        let shortfall = refused(&model, with(total(&[change])));
        let remedy = shortfall.remedies[0];
        assert_eq!((remedy.change, remedy.suffices, shortfall.least_bytes), (change, true, total(&[change])));
    }
    let shortfall = refused(&model, with(total(&[Change::NCtx(32)]) - 1));
    assert_eq!((shortfall.least_bytes, shortfall.together), (total(&[Change::NCtx(32)]), None));
}

/// A context of a million positions on one layer of 4096 columns is 16 GiB: refused under 4 GiB, with the largest context
/// that fits; and that one loads.
#[test]
fn a_context_far_too_large_is_refused_and_the_largest_that_fits_loads() {
    let path = std::env::temp_dir().join(format!("minfer-one-layer-{}.gguf", unique()));
    let shape = TinyModel {
        n_layer: 1,
        n_embd: 4096,
        n_head: 32,
        n_kv_head: 32,
        head_dim: 128,
        n_ctx_train: 1 << 20,
        ..TinyModel::new("one-layer", TinyArch::Llama)
    };
    shape.write_sparse(&path, 0).unwrap();
    let model = Arc::new(Model::open(&path).unwrap());
    let budget = Budget::of_all(4 << 30);
    let config = EngineConfig { n_ctx: 1 << 20, budget: Some(budget), ..EngineConfig::default() };
    let (backends, allocated) = counting();
    assert!(matches!(Engine::new(model.clone(), backends, config), Err(EngineError::OverBudget(_))));
    assert_eq!(allocated.load(Ordering::Relaxed), 0);
    let shortfall = refused(&model, config);
    assert_eq!(shortfall.owners[0].owner, Owner::Kv);
    assert_eq!(shortfall.owners[0].bytes, 16 << 30);
    let Some(Remedy { change: Change::NCtx(proposed), suffices: true, .. }) = shortfall.remedies.first().copied()
    else {
        panic!("{:?}", shortfall.remedies)
    };

    let capabilities = capabilities();
    let found = fit(&Replanner { model: &model, config, backends: &capabilities }, budget, Fit::NCtx);
    let n_ctx = found.value.unwrap();
    assert!((proposed..proposed + 256).contains(&n_ctx), "{proposed} {n_ctx}");
    assert!((200_000..1 << 18).contains(&n_ctx), "{n_ctx}");
    // Pages of the KV cache are taken when they are written, so this costs nothing yet.
    let engine = Engine::new(model, cpu(1), EngineConfig { n_ctx, ..config }).unwrap();
    assert!(engine.ledger().total() <= 4 << 30);
    std::fs::remove_file(&path).unwrap();
}
