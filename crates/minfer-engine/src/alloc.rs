//! The allocator: it owns every region of an engine. Takes plans; gives regions that never move; must not know graphs'
//! meaning.
//!
//! Weights are imported, KV regions are made the first time a layer is mentioned, arenas are made for the largest plan and
//! serve all smaller ones. A rebuild of a graph changes none of them.

use crate::error::EngineError;
use minfer_backend::{Backend, BackendId, BufRef, HostBytes, KvPair, RegionId};
use minfer_graph::{GraphParams, KvLayer, KvSide};
use minfer_plan::{Owner, Plan};

/// A layer's two regions, `kv.<layer>.k` and `kv.<layer>.v`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KvRegions {
    /// Whose memory.
    pub backend: BackendId,
    /// Both regions as a step takes them.
    pub pair: KvPair,
    /// The kind of layer.
    pub window: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Arena {
    backend: BackendId,
    region: RegionId,
    bytes: u64,
}

/// Owner of all regions.
#[derive(Default)]
pub struct GraphAllocator {
    n_regions: u32,
    parts: Vec<HostBytes>,
    /// By backend, then by part.
    weights: Vec<Option<Vec<RegionId>>>,
    kv: Vec<Option<KvRegions>>,
    arenas: Vec<Arena>,
}

/// The backends of an engine.
pub(crate) type BackendList = [Box<dyn Backend>];

impl GraphAllocator {
    /// An allocator for weights that lie in these parts.
    pub fn new(parts: Vec<HostBytes>) -> Self {
        Self { parts, ..Self::default() }
    }

    /// The regions of the weights on a backend, one per part; imported when first asked for.
    pub(crate) fn weights(&mut self, backend: BackendId, list: &mut BackendList) -> Result<&[RegionId], EngineError> {
        let index = backend.index();
        if self.weights.len() <= index {
            self.weights.resize(index + 1, None);
        }
        if self.weights[index].is_none() {
            let mut regions = Vec::new();
            for part in self.parts.clone() {
                let id = self.next_id();
                list[index].import_region(id, part)?;
                regions.push(id);
            }
            self.weights[index] = Some(regions);
        }
        Ok(self.weights[index].as_deref().unwrap_or_default())
    }

    /// A layer's KV regions; made when first asked for, and never in another size or place.
    pub fn kv(
        &mut self,
        layer: u32,
        KvLayer { cols, window }: KvLayer,
        params: &GraphParams,
        backend: BackendId,
        list: &mut BackendList,
    ) -> Result<KvRegions, EngineError> {
        let n_cells = params.n_cells_of(window);
        let bytes = crate::ledger::kv_region_bytes(n_cells, params.cache_type, cols);
        let index = layer as usize;
        if let Some(regions) = self.kv.get(index).copied().flatten() {
            if regions.pair.k.len != bytes {
                return Err(EngineError::KvSizeChanged { layer, expected: regions.pair.k.len, got: bytes });
            }
            if regions.backend != backend {
                return Err(EngineError::KvMoved { layer, expected: regions.backend.0, got: backend.0 });
            }
            return Ok(regions);
        }
        let k = self.create(backend, bytes, list)?;
        let v = self.create(backend, bytes, list)?;
        let pair = KvPair { k, v, ty: params.cache_type.value_type(), cols, n_cells };
        let regions = KvRegions { backend, pair, window };
        if self.kv.len() <= index {
            self.kv.resize(index + 1, None);
        }
        self.kv[index] = Some(regions);
        Ok(regions)
    }

    /// One side of a layer's KV cache, if the layer has been mentioned.
    pub fn kv_side(&self, layer: u32, side: KvSide) -> Option<BufRef> {
        let regions = self.kv.get(layer as usize).copied().flatten()?;
        Some(match side {
            KvSide::K => regions.pair.k,
            KvSide::V => regions.pair.v,
        })
    }

    /// Layers whose KV regions exist.
    pub fn kv_layers(&self) -> impl Iterator<Item = (u32, KvRegions)> + '_ {
        self.kv.iter().enumerate().filter_map(|(layer, regions)| Some((layer as u32, (*regions)?)))
    }

    /// An arena on a backend with room for a plan: an existing one that is large enough, else a new one.
    pub(crate) fn arena(
        &mut self,
        backend: BackendId,
        plan: &Plan,
        list: &mut BackendList,
    ) -> Result<Option<BufRef>, EngineError> {
        let Some(needed) = plan.arena(backend).map(|arena| arena.bytes) else { return Ok(None) };
        let fits = |arena: &&Arena| arena.backend == backend && arena.bytes >= needed;
        if let Some(arena) = self.arenas.iter().find(fits) {
            return Ok(Some(BufRef { backend, region: arena.region, offset: 0, len: arena.bytes }));
        }
        let buf = self.create(backend, needed, list)?;
        self.arenas.push(Arena { backend, region: buf.region, bytes: needed });
        Ok(Some(buf))
    }

    /// Frees the arenas that none of the plans in use lies in.
    pub(crate) fn release_arenas(&mut self, in_use: &[RegionId], list: &mut BackendList) -> Result<(), EngineError> {
        let (kept, dropped) = self.arenas.iter().partition(|arena| in_use.contains(&arena.region));
        self.arenas = kept;
        let dropped: Vec<Arena> = dropped;
        for arena in dropped {
            list[arena.backend.index()].drop_region(arena.region)?;
        }
        Ok(())
    }

    /// Every region and its class: parts of the weights, KV regions, arenas.
    pub fn regions(&self) -> impl Iterator<Item = (Owner, BufRef)> + '_ {
        let weights = (0..).zip(&self.weights).flat_map(|(backend, regions)| {
            regions.iter().flatten().zip(&self.parts).map(move |(&region, part)| {
                let len = (**part).as_ref().len() as u64;
                (Owner::Weights, BufRef { backend: BackendId(backend), region, offset: 0, len })
            })
        });
        let kv = self.kv.iter().flatten().flat_map(|kv| [kv.pair.k, kv.pair.v]).map(|buf| (Owner::Kv, buf));
        let arenas = self
            .arenas
            .iter()
            .map(|&Arena { backend, region, bytes }| (Owner::Arena, BufRef { backend, region, offset: 0, len: bytes }));
        weights.chain(kv).chain(arenas)
    }

    /// Bytes of all arenas and KV regions that exist now.
    pub fn allocated_bytes(&self) -> u64 {
        let arenas: u64 = self.arenas.iter().map(|arena| arena.bytes).sum();
        let kv: u64 = self.kv.iter().flatten().map(|regions| regions.pair.k.len + regions.pair.v.len).sum();
        arenas + kv
    }

    fn create(&mut self, backend: BackendId, bytes: u64, list: &mut BackendList) -> Result<BufRef, EngineError> {
        let region = self.next_id();
        list[backend.index()].create_region(region, bytes)?;
        Ok(BufRef { backend, region, offset: 0, len: bytes })
    }

    fn next_id(&mut self) -> RegionId {
        self.n_regions += 1;
        RegionId(self.n_regions - 1)
    }
}
