//! Which graphs are reused, and what becomes of arenas when they are not.

use super::*;
use minfer_backend::{Backend, Capabilities, HostBytes, ReferenceBackend};
use minfer_graph::{CacheType, Fusion, GraphKind, KV_BLOCK_CELLS};
use minfer_model::{ModelSpec, build_graph, load_spec};
use minfer_plan::{PlanOptions, plan};
use std::sync::Arc;

struct Lab {
    spec: ModelSpec,
    cache: GraphCache,
    allocator: GraphAllocator,
    backends: Vec<Box<dyn Backend>>,
}

impl Lab {
    fn new() -> Self {
        let file = minfer_testkit::tiny_model("qwen2-f32").open();
        let parts = file.parts().iter().map(|part| part.bytes() as HostBytes).collect();
        Self {
            spec: load_spec(&file).unwrap(),
            cache: GraphCache::default(),
            allocator: GraphAllocator::new(parts),
            backends: vec![Box::new(ReferenceBackend::new())],
        }
    }

    fn insert(&mut self, params: &GraphParams) {
        let graph = build_graph(&self.spec, params).unwrap();
        let capabilities: Vec<Arc<dyn Capabilities>> = self.backends.iter().map(|b| b.capabilities()).collect();
        let plan = plan(&graph, &capabilities, PlanOptions::default()).unwrap();
        self.cache.insert(&graph, plan, &mut self.allocator, &mut self.backends).unwrap();
    }
}

fn params() -> GraphParams {
    GraphParams {
        kind: GraphKind::Decode,
        token_capacity: 2,
        batch_capacity: 2,
        output_capacity: 1,
        sequence_capacity: 1,
        n_ctx: 64,
        n_cells: 64,
        cache_type: CacheType::F16,
        fusion: Fusion::ALL,
        weights_version: 0,
    }
}

#[test]
fn graph_reuse_depends_on_params_only() {
    let mut lab = Lab::new();
    lab.insert(&params());
    assert!(lab.cache.try_reuse(&params()).is_some());
    let changes: [fn(&mut GraphParams); 13] = [
        |p| p.kind = GraphKind::Prefill,
        |p| p.token_capacity += 1,
        |p| p.batch_capacity += 1,
        |p| p.output_capacity += 1,
        |p| p.sequence_capacity += 1,
        |p| p.n_ctx += 1,
        |p| p.n_cells += KV_BLOCK_CELLS,
        |p| p.cache_type = CacheType::F32,
        |p| p.fusion.qkv = false,
        |p| p.fusion.ffn = false,
        |p| p.fusion.quantize = false,
        |p| p.fusion.residual = false,
        |p| p.weights_version += 1,
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut other = params();
        change(&mut other);
        assert!(lab.cache.try_reuse(&other).is_none(), "change {at} is another graph");
    }
    let graph = build_graph(&lab.spec, &params()).unwrap();
    assert_eq!(lab.cache.try_reuse(&params()).unwrap().0, fingerprint(&graph), "equal parameters give equal graphs");
}

/// More graphs than are kept: the oldest goes, the arena that the others share stays, one that nobody uses is freed.
#[test]
fn arenas_live_as_long_as_a_plan_uses_them() {
    let mut lab = Lab::new();
    let sized = |token_capacity| GraphParams { token_capacity, kind: GraphKind::Prefill, ..params() };
    lab.insert(&sized(2));
    let small = lab.allocator.allocated_bytes();
    lab.insert(&sized(64));
    let both = lab.allocator.allocated_bytes();
    assert!(both > small, "the larger graph has an arena of its own");
    let shared = lab.cache.try_reuse(&sized(64)).unwrap().1.arenas[0].region;
    for n in 3..9 {
        lab.insert(&sized(n));
        lab.cache.try_reuse(&sized(64));
    }
    assert_eq!((lab.cache.len(), lab.allocator.allocated_bytes()), (CAPACITY, both), "smaller plans took no new arena");
    // The graph of two tokens is the oldest: it goes, and with it the arena that only it lay in.
    lab.insert(&sized(9));
    assert!(lab.cache.try_reuse(&sized(2)).is_none());
    assert!(lab.allocator.allocated_bytes() < both);
    assert_eq!(lab.cache.try_reuse(&sized(9)).unwrap().1.arenas[0].region, shared);
}
