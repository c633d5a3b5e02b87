//! A plan meets its regions. Takes a plan and the allocator; gives a [`BoundPlan`], whose steps name real bytes, so that
//! nothing is looked up while running.

use crate::alloc::{BackendList, GraphAllocator, KvRegions};
use crate::error::EngineError;
use minfer_backend::{BackendId, BufRef, KvPair, Operand, RegionId, Step, WeightOperand};
use minfer_graph::{BatchDims, Graph, KvSide, NodeId, Op};
use minfer_plan::{Fingerprint, Place, Plan, fingerprint};
use std::ops::Range;

/// An input of a graph and its bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct InputSlot {
    /// The input's name.
    pub name: String,
    /// Where it is written.
    pub operand: Operand,
}

/// Consecutive work of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Split {
    /// Steps that one backend runs.
    Run { backend: BackendId, steps: Range<usize> },
    /// A copy between backends, done by the scheduler.
    Copy { step: usize },
}

/// A plan whose every value has bytes.
pub struct BoundPlan {
    /// The plan.
    pub plan: Plan,
    /// Its steps, in execution order.
    pub steps: Vec<Step>,
    /// The graph's inputs.
    pub inputs: Vec<InputSlot>,
    /// The graph's outputs.
    pub outputs: Vec<Operand>,
    pub(crate) splits: Vec<Split>,
    pub(crate) arenas: Vec<BufRef>,
}

impl BoundPlan {
    /// Gives a graph's plan its bytes. Refused for a plan that was made from another graph.
    pub fn new(
        graph: &Graph,
        plan: Plan,
        allocator: &mut GraphAllocator,
        backends: &mut BackendList,
    ) -> Result<Self, EngineError> {
        let graph_print = fingerprint(graph);
        if plan.source != graph_print {
            return Err(mismatch(graph_print, plan.source));
        }
        let mut arenas = vec![None; backends.len()];
        for (index, arena) in arenas.iter_mut().enumerate() {
            *arena = allocator.arena(BackendId(index as u8), &plan, backends)?;
        }
        let mut kv = vec![None; plan.graph.kv_layers.len()];
        for (layer, regions) in kv.iter_mut().enumerate() {
            if let Some(backend) = plan.kv_backend(layer as u32) {
                let kv = plan.graph.kv_layers[layer];
                *regions = Some(allocator.kv(layer as u32, kv, &plan.graph.params, backend, backends)?);
            }
        }
        let mut weights = Vec::new();
        for index in 0..backends.len() {
            let backend = BackendId(index as u8);
            let used = plan.steps.iter().any(|step| plan.backends[step.node.index()] == backend);
            weights.push(if used { allocator.weights(backend, backends)?.to_vec() } else { Vec::new() });
        }
        let binder = Binder { plan: &plan, arenas: &arenas, kv: &kv, weights: &weights };
        let steps = (0..plan.steps.len()).map(|at| binder.step(at)).collect::<Result<Vec<_>, _>>()?;
        let is_used = |id: &NodeId| !plan.value(*id).live.is_empty();
        let slot = |id: NodeId| Ok(InputSlot { name: plan.graph.node(id).name.clone(), operand: binder.operand(id)? });
        let inputs = plan.graph.inputs().filter(is_used).map(slot).collect::<Result<Vec<_>, EngineError>>()?;
        let outputs = plan.graph.outputs.iter().map(|&id| binder.operand(id)).collect::<Result<Vec<_>, _>>()?;
        let splits = splits(&steps);
        let arenas = arenas.into_iter().flatten().collect();
        Ok(Self { plan, steps, inputs, outputs, splits, arenas })
    }

    /// The graph this plan belongs to.
    pub fn source(&self) -> Fingerprint {
        self.plan.source
    }

    /// An input by its name.
    pub fn input(&self, name: &str) -> Result<&InputSlot, EngineError> {
        self.inputs.iter().find(|slot| slot.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.inputs.iter().map(|slot| slot.name.as_str()).collect();
            EngineError::UnknownInput { name: name.to_string(), known: known.join(", ") }
        })
    }

    /// Writes an input for a batch: exactly the rows that the batch has.
    pub fn write_input(
        &self,
        name: &str,
        values: &[i32],
        dims: &BatchDims,
        backends: &mut BackendList,
    ) -> Result<(), EngineError> {
        let operand = self.input(name)?.operand;
        let expected = dims.bytes(operand.shape, operand.ty);
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        if bytes.len() as u64 != expected {
            return Err(EngineError::InputSize { name: name.to_string(), expected, got: bytes.len() as u64 });
        }
        backends[operand.buf.backend.index()].write(operand.buf, &bytes)?;
        Ok(())
    }

    /// The regions of its arenas.
    pub(crate) fn regions(&self) -> impl Iterator<Item = RegionId> + '_ {
        self.arenas.iter().map(|arena| arena.region)
    }
}

pub(crate) fn mismatch(graph: Fingerprint, plan: Fingerprint) -> EngineError {
    EngineError::PlanMismatch { graph: graph.to_string(), plan: plan.to_string() }
}

struct Binder<'a> {
    plan: &'a Plan,
    arenas: &'a [Option<BufRef>],
    kv: &'a [Option<KvRegions>],
    weights: &'a [Vec<RegionId>],
}

impl Binder<'_> {
    fn step(&self, at: usize) -> Result<Step, EngineError> {
        let planned = &self.plan.steps[at];
        let id = planned.node;
        let node = self.plan.graph.node(id);
        let backend = self.plan.backends[id.index()];
        let inputs = node.inputs.iter().map(|&input| self.operand(input)).collect::<Result<Vec<_>, _>>()?;
        let weights = node.weights.iter().map(|weight| self.weight(weight.index(), backend)).collect();
        let in_arena = |(offset, len)| self.in_arena(backend, offset, len, id);
        Ok(Step {
            node: id.0,
            name: node.name.clone(),
            backend,
            kernel: planned.kernel.clone(),
            inputs,
            weights,
            output: self.operand(id)?,
            workspace: planned.workspace.map(in_arena).transpose()?,
            kv: node.op.kv_layer().and_then(|layer| self.pair(layer)),
        })
    }

    fn operand(&self, id: NodeId) -> Result<Operand, EngineError> {
        let node = self.plan.graph.node(id);
        let backend = self.plan.backends[id.index()];
        let buf = match self.plan.value(id).place {
            Place::Arena { offset, bytes } => self.in_arena(backend, offset, bytes, id)?,
            Place::Kv { layer, side } => {
                let pair = self.pair(layer).ok_or_else(|| self.unplaced(id))?;
                if side == KvSide::K { pair.k } else { pair.v }
            }
            Place::Nowhere => return Err(self.unplaced(id)),
        };
        Ok(Operand { buf, shape: node.shape, ty: node.ty })
    }

    fn in_arena(&self, backend: BackendId, offset: u64, len: u64, id: NodeId) -> Result<BufRef, EngineError> {
        let arena = self.arenas[backend.index()].ok_or_else(|| self.unplaced(id))?;
        Ok(BufRef { backend, region: arena.region, offset, len })
    }

    fn pair(&self, layer: u32) -> Option<KvPair> {
        self.kv.get(layer as usize).copied().flatten().map(|regions| regions.pair)
    }

    fn weight(&self, index: usize, backend: BackendId) -> WeightOperand {
        let weight = &self.plan.graph.weights[index];
        let source = weight.source;
        let region = self.weights[backend.index()].get(source.part as usize).copied().unwrap_or(RegionId(u32::MAX));
        let buf = BufRef { backend, region, offset: source.offset, len: source.len };
        WeightOperand { buf, dtype: weight.dtype, rows: weight.rows, cols: weight.cols }
    }

    fn unplaced(&self, id: NodeId) -> EngineError {
        EngineError::Unplaced { node: self.plan.graph.node(id).name.clone() }
    }
}

/// Runs of steps on one backend, cut where a value crosses.
fn splits(steps: &[Step]) -> Vec<Split> {
    let mut splits: Vec<Split> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        if matches!(step.kernel.op, Op::Copy) {
            splits.push(Split::Copy { step: at });
            continue;
        }
        match splits.last_mut() {
            Some(Split::Run { backend, steps }) if *backend == step.backend => steps.end = at + 1,
            _ => splits.push(Split::Run { backend: step.backend, steps: at..at + 1 }),
        }
    }
    splits
}
