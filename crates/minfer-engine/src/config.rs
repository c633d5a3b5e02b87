//! Settings of an engine. Takes wishes; gives checked values and the reason for the context size; reads no environment.

use crate::budget::Budget;
use crate::error::EngineError;
use minfer_graph::{CacheType, Fusion, GraphKind, GraphParams};
use minfer_plan::Strategy;

/// Positions of a sequence when nobody asks for another number.
pub const DEFAULT_N_CTX: u32 = 4096;

/// Most positions anyone may ask for; models are trained for at most 2^20 to 2^21 today.
pub const MAX_N_CTX: u32 = 1 << 24;

/// Most tokens of one batch anyone may ask for.
pub const MAX_N_UBATCH: u32 = 65_536;

/// Most sequences anyone may ask for.
pub const MAX_N_SEQUENCES: u32 = 4096;

/// Positions kept for an answer of unknown length when a context is raised to fit a long prompt.
const ROOM_FOR_ANSWER: usize = 1024;

/// Settings of an engine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EngineConfig {
    /// Positions of a sequence.
    pub n_ctx: u32,
    /// Sequences that share the KV cache, each with up to `n_ctx` positions.
    pub n_sequences: u32,
    /// Most tokens of one batch; longer prompts are read in several.
    pub n_ubatch: u32,
    /// Most rows of logits of one batch.
    pub n_outputs: u32,
    /// Element type of the KV cache.
    pub cache_type: CacheType,
    /// Which fusions are made.
    pub fusion: Fusion,
    /// How values are placed.
    pub strategy: Strategy,
    /// Fill bytes with NaN before their first write and after their last read.
    pub poison: bool,
    /// An engine that needs more is refused before anything is allocated. `None`: no limit.
    pub budget: Option<Budget>,
    /// Bytes of the process that are not the engine's (code, stacks, fixed heap): a line in the ledger.
    pub program_bytes: u64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            n_ctx: DEFAULT_N_CTX,
            n_sequences: 1,
            n_ubatch: 512,
            n_outputs: 1,
            cache_type: CacheType::F16,
            fusion: Fusion::ALL,
            strategy: Strategy::Planned,
            poison: false,
            budget: None,
            program_bytes: 0,
        }
    }
}

impl EngineConfig {
    /// The same settings, or what is wrong with them.
    pub fn checked(self) -> Result<Self, EngineError> {
        let in_range = |setting, got: u32, limit: u32| match got {
            got if (1..=limit).contains(&got) => Ok(()),
            got => Err(EngineError::Setting { setting, expected: format!("1 to {limit}"), got: got.to_string() }),
        };
        in_range("n_ctx", self.n_ctx, MAX_N_CTX)?;
        in_range("n_sequences", self.n_sequences, MAX_N_SEQUENCES)?;
        in_range("n_ubatch", self.n_ubatch, MAX_N_UBATCH)?;
        in_range("n_outputs", self.n_outputs, MAX_N_UBATCH)?;
        Ok(self)
    }

    /// The batch never needs to be longer than all sequences together.
    pub fn token_capacity(&self) -> u32 {
        self.n_ubatch.min(self.n_ctx.saturating_mul(self.n_sequences)).max(self.n_sequences)
    }

    /// Rows of logits of the largest batch: at least one per sequence, so that sessions can be stepped together and the
    /// largest graph covers every decode step.
    pub fn output_capacity(&self) -> u32 {
        self.n_outputs.max(self.n_sequences).min(self.token_capacity())
    }

    /// The parameters of the one prefill and the one decode graph of an engine. How many tokens are cached is not among
    /// them.
    pub fn graph_params(&self, kind: GraphKind, weights_version: u64) -> Result<GraphParams, EngineError> {
        let (token_capacity, output_capacity) = match kind {
            GraphKind::Prefill => (self.token_capacity(), self.output_capacity()),
            GraphKind::Decode => (self.n_sequences, self.n_sequences),
        };
        Ok(GraphParams {
            kind,
            token_capacity,
            batch_capacity: self.token_capacity(),
            output_capacity,
            sequence_capacity: self.n_sequences,
            n_ctx: self.n_ctx,
            n_cells: self.n_cells()?,
            cache_type: self.cache_type,
            fusion: self.fusion,
            weights_version,
        })
    }

    /// KV cells: whole blocks for every sequence.
    pub fn n_cells(&self) -> Result<u32, EngineError> {
        let block = minfer_graph::KV_BLOCK_CELLS;
        let cells = self.n_ctx.next_multiple_of(block).checked_mul(self.n_sequences);
        cells.filter(|&cells| cells <= i32::MAX as u32).ok_or_else(|| EngineError::Setting {
            setting: "n_ctx × n_sequences",
            expected: format!("at most {}", i32::MAX),
            got: format!("{} × {}", self.n_ctx, self.n_sequences),
        })
    }
}

/// Why a context has its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContextReason {
    /// As asked.
    Asked,
    /// The default.
    Default,
    /// The default was too short for the prompt.
    RaisedForPrompt,
    /// The wish, or the default, was more than the model was trained for.
    ClampedToTraining,
}

/// A context size and its reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContextChoice {
    /// Positions of a sequence.
    pub n_ctx: u32,
    /// Why.
    pub reason: ContextReason,
}

/// The context size for a wish, a prompt of `n_prompt` tokens with room for `n_predict` more (1024 when the answer's
/// length is open), and a model trained for `n_ctx_train` positions (0 when the file does not say). A prompt that does not fit is an error.
pub fn choose_n_ctx(
    asked: Option<u32>,
    n_prompt: usize,
    n_predict: Option<usize>,
    n_ctx_train: u32,
) -> Result<ContextChoice, EngineError> {
    let trained = if n_ctx_train == 0 { MAX_N_CTX } else { n_ctx_train.min(MAX_N_CTX) };
    let wanted = u32::try_from(n_prompt.saturating_add(n_predict.unwrap_or(ROOM_FOR_ANSWER))).unwrap_or(u32::MAX);
    let (wish, reason) = match asked {
        Some(0) => {
            let expected = format!("1 to {MAX_N_CTX}");
            return Err(EngineError::Setting { setting: "n_ctx", expected, got: "0".into() });
        }
        Some(n_ctx) => (n_ctx, ContextReason::Asked),
        None if wanted > DEFAULT_N_CTX => (wanted, ContextReason::RaisedForPrompt),
        None => (DEFAULT_N_CTX, ContextReason::Default),
    };
    let choice = match wish {
        wish if wish > trained => ContextChoice { n_ctx: trained, reason: ContextReason::ClampedToTraining },
        wish => ContextChoice { n_ctx: wish, reason },
    };
    // The prompt needs its own positions; the first new token is sampled from its last row and needs none yet.
    if n_prompt > choice.n_ctx as usize {
        return Err(EngineError::PromptTooLong { n_prompt, n_ctx: choice.n_ctx, n_ctx_train });
    }
    Ok(choice)
}
