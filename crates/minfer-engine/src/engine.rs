//! The engine: a model, its backends and everything they own. Takes a model, backends and settings; gives sequences and
//! steps; must not know text.

use crate::alloc::GraphAllocator;
use crate::blueprint::{Blueprint, MemoryFigures};
use crate::budget::{Levers, admit};
use crate::cache::GraphCache;
use crate::change::Replanner;
use crate::config::EngineConfig;
use crate::error::EngineError;
use crate::interrupt::Interrupt;
use crate::kv::{BlockCopy, FreedCells, KvCache, KvKind, SequenceId};
use crate::load::Model;
use crate::observe::Observer;
use crate::poison::POISON;
use minfer_backend::{Backend, BufRef, Capabilities, HostBytes};
use minfer_graph::{KV_BLOCK_CELLS, KvSide};
use minfer_plan::{Ledger, Owner};
use std::sync::Arc;

/// A model ready to answer.
pub struct Engine {
    pub(crate) model: Arc<Model>,
    pub(crate) config: EngineConfig,
    pub(crate) backends: Vec<Box<dyn Backend>>,
    pub(crate) allocator: GraphAllocator,
    pub(crate) cache: GraphCache,
    pub(crate) kv: KvCache,
    pub(crate) observers: Vec<Box<dyn Observer + Send>>,
    pub(crate) interrupt: Interrupt,
    ledger: Ledger,
    figures: MemoryFigures,
}

impl Engine {
    /// Plans for the largest batch, then allocates exactly that. The model's weights must be mapped.
    pub fn new(model: Arc<Model>, backends: Vec<Box<dyn Backend>>, config: EngineConfig) -> Result<Self, EngineError> {
        let config = config.checked()?;
        let capabilities: Vec<Arc<dyn Capabilities>> = backends.iter().map(|b| b.capabilities()).collect();
        let blueprint = Blueprint::new(&model, &config, &capabilities)?;
        Self::from_blueprint(model, backends, config, blueprint)
    }

    /// Allocates what a blueprint says, if the settings' budget admits it. The blueprint must have been made from the same
    /// model, settings and backends; whoever wants to look at it, print it or refuse it does so before. For that its header is
    /// enough; here its weights must be mapped ([`EngineError::WeightsNotMapped`]).
    pub fn from_blueprint(
        model: Arc<Model>,
        mut backends: Vec<Box<dyn Backend>>,
        config: EngineConfig,
        blueprint: Blueprint,
    ) -> Result<Self, EngineError> {
        model.require_weights()?;
        let config = config.checked()?;
        let capabilities: Vec<Arc<dyn Capabilities>> = backends.iter().map(|b| b.capabilities()).collect();
        let replanner = Replanner { model: &model, config, backends: &capabilities };
        admit(&replanner, &blueprint, Levers::default())?;
        let figures = blueprint.figures();
        let params = &blueprint.graph.params;
        let kinds = blueprint.graph.kv_kinds().into_iter().map(|window| KvKind::new(params, window));
        let kv = KvCache::new(kinds, config.n_sequences, config.n_ctx);
        let parts = model.file.parts().iter().map(|part| part.bytes() as HostBytes).collect();
        let mut allocator = GraphAllocator::new(parts);
        let mut cache = GraphCache::default();
        cache.insert(&blueprint.graph, blueprint.plan, &mut allocator, &mut backends)?;
        if config.poison {
            for (_, regions) in allocator.kv_layers() {
                for region in [regions.pair.k, regions.pair.v] {
                    backends[region.backend.index()].fill(region, POISON)?;
                }
            }
        }
        let ledger = blueprint.ledger;
        let (observers, interrupt) = (Vec::new(), Interrupt::default());
        Ok(Self { model, config, backends, allocator, cache, kv, observers, interrupt, ledger, figures })
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The settings in use.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// Every byte planned, by owner.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Arena bytes under each strategy.
    pub fn figures(&self) -> MemoryFigures {
        self.figures
    }

    /// Graphs built so far and kept.
    pub fn cache(&self) -> &GraphCache {
        &self.cache
    }

    /// The owner of all regions.
    pub fn allocator(&self) -> &GraphAllocator {
        &self.allocator
    }

    /// Every region and its class: parts of the weights, KV regions, arenas.
    pub fn regions(&self) -> impl Iterator<Item = (Owner, BufRef)> + '_ {
        self.allocator.regions()
    }

    /// The address of a region, for tests that regions never move.
    pub fn region_address(&self, buf: BufRef) -> Option<usize> {
        self.backends[buf.backend.index()].region_address(buf.region)
    }

    /// Watches every step from now on. Runs go step by step, so they are slower.
    pub fn observe(&mut self, observer: Box<dyn Observer + Send>) {
        self.observers.push(observer);
    }

    /// Watches nothing more: whoever watched is dropped, and runs are whole again.
    pub fn stop_observing(&mut self) {
        self.observers.clear();
    }

    /// The flag that ends a run early, for another thread to raise. The step then fails, and every sequence has the length
    /// it had before.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// A new, empty sequence.
    pub fn create_sequence(&mut self) -> Result<SequenceId, EngineError> {
        Ok(self.kv.create()?)
    }

    /// Gives a sequence's cells back.
    pub fn release_sequence(&mut self, id: SequenceId) -> Result<(), EngineError> {
        let freed = self.kv.release(id)?;
        self.poison_cells(&freed)
    }

    /// Positions a sequence holds.
    pub fn sequence_len(&self, id: SequenceId) -> Result<u32, EngineError> {
        Ok(self.kv.len(id)?)
    }

    /// Forgets all but the first `len` positions. Refused ([`KvError::WindowPassed`](crate::KvError::WindowPassed)) where
    /// layers with a window have given cells back that the next token would see: then 0 is left, and reading again.
    pub fn cut_sequence(&mut self, id: SequenceId, len: u32) -> Result<(), EngineError> {
        let freed = self.kv.cut(id, len)?;
        self.poison_cells(&freed)
    }

    /// Spoils cells that nobody holds any more, if that is asked for: whoever still reads one is found out.
    pub(crate) fn poison_cells(&mut self, freed: &[FreedCells]) -> Result<(), EngineError> {
        if !self.config.poison {
            return Ok(());
        }
        for (_, regions) in self.allocator.kv_layers() {
            let cell_bytes = regions.pair.ty.row_bytes(regions.pair.cols);
            for FreedCells { cells, .. } in freed.iter().filter(|freed| freed.window == regions.window) {
                let (offset, len) = (u64::from(cells.start) * cell_bytes, cells.len() as u64 * cell_bytes);
                for region in [regions.pair.k, regions.pair.v] {
                    self.backends[region.backend.index()].fill(BufRef { offset, len, ..region }, POISON)?;
                }
            }
        }
        Ok(())
    }

    /// A new sequence that shares the first `len` positions of another. Refused as [`Engine::cut_sequence`] is.
    pub fn fork_sequence(&mut self, id: SequenceId, len: u32) -> Result<SequenceId, EngineError> {
        Ok(self.kv.fork(id, len)?)
    }

    /// Shows the bytes of a layer's K or V region; `None` when the layer has none.
    pub fn read_kv(&self, layer: u32, side: KvSide, visit: &mut dyn FnMut(&[u8])) -> Result<Option<()>, EngineError> {
        let Some(buf) = self.allocator.kv_side(layer, side) else { return Ok(None) };
        self.backends[buf.backend.index()].read(buf, visit)?;
        Ok(Some(()))
    }

    /// Copies the cells of a block in every layer of its kind, before a sequence writes into the copy.
    pub(crate) fn copy_block(&mut self, BlockCopy { window, from, to }: BlockCopy) -> Result<(), EngineError> {
        for (_, regions) in self.allocator.kv_layers().filter(|(_, regions)| regions.window == window) {
            for region in [regions.pair.k, regions.pair.v] {
                let block_bytes = regions.pair.ty.row_bytes(regions.pair.cols) * u64::from(KV_BLOCK_CELLS);
                let block = |index: u32| BufRef { offset: u64::from(index) * block_bytes, len: block_bytes, ..region };
                self.backends[region.backend.index()].copy(block(from), block(to))?;
            }
        }
        Ok(())
    }
}
