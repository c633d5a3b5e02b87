//! KV sizes that users reported, by the ledger of a model of that shape. The models are headers with a hole behind.

use minfer_engine::{Blueprint, EngineConfig, Model};
use minfer_graph::CacheType;
use minfer_plan::{Ledger, Owner};
use minfer_testkit::{TinyArch, TinyModel};
use minfer_tests::{reference, unique};

/// Layers, KV heads and columns of a head; the rest does not matter to the cache.
fn ledger(shape: (u32, u32, u32), n_ctx: u32, n_ubatch: u32, cache_type: CacheType, window: Option<u32>) -> Ledger {
    let (n_layer, n_kv_head, head_dim) = shape;
    let arch = if window.is_some() { TinyArch::Gemma3 } else { TinyArch::Llama };
    let name = format!("kv-{n_layer}-{n_kv_head}-{head_dim}-{n_ctx}-{}", window.is_some());
    let model = TinyModel {
        n_layer,
        n_head: n_kv_head,
        n_kv_head,
        head_dim,
        n_ctx_train: 1 << 20,
        window,
        window_pattern: window.map(|_| 2),
        ..TinyModel::new(&name, arch)
    };
    let path = std::env::temp_dir().join(format!("minfer-{name}-{}.gguf", unique()));
    model.write_sparse(&path, 0).unwrap();
    let model = Model::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let config = EngineConfig { n_ctx, n_ubatch, cache_type, ..EngineConfig::default() };
    let capabilities: Vec<_> = reference().iter().map(|backend| backend.capabilities()).collect();
    Blueprint::new(&model, &config, &capabilities).unwrap().ledger
}

fn kv_bytes(shape: (u32, u32, u32), n_ctx: u32, cache_type: CacheType) -> u64 {
    ledger(shape, n_ctx, 8, cache_type, None).sum(Owner::Kv)
}

#[test]
fn kv_bytes_are_those_of_the_reports() {
    let (f16, f32) = (CacheType::F16, CacheType::F32);
    // Bytes per token, times tokens.
    assert_eq!(kv_bytes((32, 8, 128), 8192, f16), 131_072 * 8192, "Llama 3 8B");
    assert_eq!(kv_bytes((32, 8, 128), 1 << 20, f16), 137_438_953_472, "Llama 3 8B, a million positions");
    assert_eq!(kv_bytes((36, 8, 128), 4096, f16), 147_456 * 4096, "Qwen 3 8B");
    assert_eq!(kv_bytes((28, 8, 128), 131_072, f16), 15_032_385_536, "Qwen 3 1.7B");
    assert_eq!(kv_bytes((28, 8, 128), 4096, f32), 939_524_096, "Qwen 3 0.6B in f32");
    assert_eq!(kv_bytes((24, 8, 64), 8192, f16), 49_152 * 8192, "gpt-oss 20B without its windows");
    assert_eq!(kv_bytes((80, 64, 128), 8192, f16), 20 << 30, "Qwen 1.5 72B, every head its own");
    assert_eq!(kv_bytes((80, 64, 128), 1, f16), 2_621_440 * 32, "a block of 32 is the least");
}

/// Windowed layers have a line of their own: the window, a batch, and whole blocks of 32 around both.
#[test]
fn windowed_layers_hold_their_window() {
    // Like gpt-oss 20B: 24 layers, every second with a window of 128.
    let shape = (24, 8, 64);
    let full = kv_bytes(shape, 8192, CacheType::F16);
    for (n_ubatch, n_cells) in [(1, 160), (2, 160), (3, 192), (64, 224), (512, 672), (8192, 8192)] {
        let windowed = ledger(shape, 8192, n_ubatch, CacheType::F16, Some(128));
        let line = |name: &str| windowed.lines.iter().find(|line| line.name == name).unwrap().bytes;
        assert_eq!(line("KV cache, full attention"), full / 2);
        assert_eq!(line("KV cache, window of 128"), 12 * 2 * n_cells * 512 * 2, "ubatch {n_ubatch}");
        assert_eq!(windowed.sum(Owner::Kv), full / 2 + 12 * 2 * n_cells * 512 * 2);
        assert!(n_ubatch > 512 || windowed.sum(Owner::Kv) * 10 < full * 6, "less than 0.6 of all cells");
    }
}

/// Windows of one position, of a part of a block, and of more than the context.
#[test]
fn odd_windows_have_whole_blocks() {
    for (window, n_cells) in [(1, 32), (2, 64), (31, 64), (33, 64), (34, 96), (1000, 1024), (1 << 30, 1024)] {
        let windowed = ledger((2, 1, 32), 1024, 1, CacheType::F32, Some(window));
        let name = format!("KV cache, window of {window}");
        let line = windowed.lines.iter().find(|line| line.name == name).unwrap();
        assert_eq!(line.bytes, 2 * n_cells * 32 * 4, "window {window}");
    }
}
