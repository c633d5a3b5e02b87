//! Prints what is read from the model files named, and the size of their graphs. For checks by hand.

use minfer_graph::{CacheType, Fusion, GraphKind, GraphParams, verify};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let file = minfer_gguf::GgufFile::open(&path)?;
        let spec = minfer_model::load_spec(&file)?;
        let params = GraphParams {
            kind: GraphKind::Prefill,
            token_capacity: 512,
            batch_capacity: 512,
            output_capacity: 1,
            sequence_capacity: 1,
            n_ctx: 4096,
            n_cells: 4096,
            cache_type: CacheType::F16,
            fusion: Fusion::ALL,
            weights_version: 0,
        };
        let graph = minfer_model::build_graph(&spec, &params)?;
        verify(&graph)?;
        println!("{path}: {} {:?}", spec.arch, spec.name);
        println!(
            "  layers {} embd {} heads {}/{:?} x {} ff {} vocab {} ctx {} eps {:e}",
            spec.n_layer,
            spec.n_embd,
            spec.n_head,
            spec.n_kv_head.first(),
            spec.head_dim,
            spec.n_ff,
            spec.n_vocab,
            spec.n_ctx_train,
            spec.norm_eps
        );
        println!("  {:?} {:?}", spec.rope, spec.options);
        println!(
            "  weights {} bytes, KV {} bytes/token (f16)",
            spec.weights.total_bytes(),
            minfer_model::kv_bytes_per_token(&spec, CacheType::F16)
        );
        println!("  {} nodes, {} weights", graph.nodes.len(), graph.weights.len());
    }
    Ok(())
}
