//! Size of the KV cache for published models, from reports of what they take.

use minfer_graph::CacheType;
use minfer_model::{ModelSpec, kv_bytes_per_token, load_spec};
use minfer_testkit::tiny_model;

fn spec(n_layer: u32, n_kv_head: u32, head_dim: u32) -> ModelSpec {
    let spec = load_spec(&tiny_model("llama-f32").open()).unwrap();
    ModelSpec { n_layer, n_kv_head: vec![n_kv_head; n_layer as usize], head_dim, ..spec }
}

#[test]
fn exact_kv_figures() {
    let f16 = |n_layer, n_kv_head, head_dim| kv_bytes_per_token(&spec(n_layer, n_kv_head, head_dim), CacheType::F16);
    let llama3_8b = f16(32, 8, 128);
    assert_eq!(llama3_8b, 131_072);
    assert_eq!(llama3_8b * 1_048_576, 137_438_953_472);
    assert_eq!(f16(36, 8, 128), 147_456, "Qwen3-8B");
    assert_eq!(f16(28, 8, 128) * 131_072, 15_032_385_536, "Qwen3-1.7B");
    assert_eq!(kv_bytes_per_token(&spec(28, 8, 128), CacheType::F32) * 4096, 939_524_096, "Qwen3-0.6B");
    assert_eq!(f16(24, 8, 64), 49_152, "gpt-oss-20b without its windows");
    assert_eq!(f16(80, 64, 128), 2_621_440, "Qwen1.5-72B");
    assert_eq!(f16(80, 64, 128) * 8192, 20 << 30, "Qwen1.5-72B");
    assert_eq!(f16(30, 3, 64), 23_040, "SmolLM2-135M");
    assert_eq!(f16(24, 2, 64), 12_288, "Qwen2.5-0.5B");
    assert_eq!(f16(18, 1, 256), 18_432, "Gemma-3-270M");
}

#[test]
fn layers_may_differ() {
    let uneven = ModelSpec { n_kv_head: vec![1, 2, 4], ..spec(3, 1, 64) };
    assert_eq!(kv_bytes_per_token(&uneven, CacheType::F16), 2 * 2 * 64 * 7);
}
