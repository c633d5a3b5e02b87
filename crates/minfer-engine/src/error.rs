//! What can go wrong from a file to an answer. Takes the errors of the stages; gives [`EngineError`].

use crate::budget::Shortfall;
use crate::kv::KvError;
use minfer_backend::BackendError;
use minfer_gguf::GgufError;
use minfer_graph::GraphError;
use minfer_model::ModelError;
use minfer_plan::PlanError;
use minfer_text::TextError;
use std::path::PathBuf;

/// What can go wrong from a file to an answer.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The file.
    #[error(transparent)]
    File(#[from] GgufError),
    /// The model in it.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Its tokenizer or chat template.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A backend.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The KV cache.
    #[error(transparent)]
    Kv(#[from] KvError),
    /// A setting outside its range.
    #[error("{setting} is {got}, expected {expected}")]
    Setting {
        /// Which.
        setting: &'static str,
        /// What fits.
        expected: String,
        /// What came.
        got: String,
    },
    /// A batch larger than the plan.
    #[error("a batch of {got} {what} was given, the engine is planned for {limit}; split it")]
    BatchTooLarge {
        /// Tokens, outputs or sequences.
        what: &'static str,
        /// Given.
        got: usize,
        /// Planned.
        limit: u32,
    },
    /// A model of which only the header was opened.
    #[error(
        "of {} only the first {mapped_bytes} of {file_bytes} bytes are mapped, and an engine needs its weights; call \
         Model::map_weights first",
        path.display()
    )]
    WeightsNotMapped {
        /// The first such file of the model.
        path: PathBuf,
        /// Bytes that are mapped.
        mapped_bytes: u64,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// Logits without a single number.
    #[error("the model gives no numbers, only NaN or infinities; its weights are damaged, fetch the file again")]
    NoNumbers,
    /// A batch of nothing.
    #[error("a batch needs at least one token")]
    EmptyBatch,
    /// A token id that the model does not have.
    #[error("token id {token} is outside the vocabulary of {n_vocab} tokens")]
    TokenOutOfRange {
        /// The id.
        token: u32,
        /// Ids there are.
        n_vocab: u32,
    },
    /// A prompt that cannot fit.
    #[error(
        "the prompt has {n_prompt} tokens, the context holds {n_ctx} (the model was trained for {n_ctx_train}); \
         shorten the prompt or raise the context"
    )]
    PromptTooLong {
        /// Tokens of the prompt, with what the session holds already.
        n_prompt: usize,
        /// Positions of a sequence.
        n_ctx: u32,
        /// Positions the model was trained for.
        n_ctx_train: u32,
    },
    /// A prompt of nothing, where nothing came before either.
    #[error("the prompt is empty: there is nothing to answer")]
    EmptyPrompt,
    /// A KV cache asked for again in another size.
    #[error(
        "the KV regions of layer {layer} hold {expected} bytes each, {got} were asked for; their size cannot change"
    )]
    KvSizeChanged {
        /// Layer.
        layer: u32,
        /// Size they were made with.
        expected: u64,
        /// Size asked for.
        got: u64,
    },
    /// A layer's KV regions asked for on another backend.
    #[error("the KV regions of layer {layer} are on backend {expected}, a plan wants them on {got}")]
    KvMoved {
        /// Layer.
        layer: u32,
        /// Where they are.
        expected: u8,
        /// Where the plan wants them.
        got: u8,
    },
    /// An input name no graph has.
    #[error("the graph has no input called {name}; it has {known}")]
    UnknownInput {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Bytes of another length than the input's rows.
    #[error("input {name} takes {expected} bytes for this batch, got {got}")]
    InputSize {
        /// The input.
        name: String,
        /// Bytes of this batch.
        expected: u64,
        /// Bytes given.
        got: u64,
    },
    /// A graph run against another graph's plan.
    #[error("graph {graph} was to run against the plan of graph {plan}; a plan belongs to one graph")]
    PlanMismatch {
        /// Fingerprint of the graph.
        graph: String,
        /// Fingerprint in the plan.
        plan: String,
    },
    /// Part of the plan has no memory: it was not bound, or its backend lacks a region.
    #[error("node {node} has no bytes in this plan; a bug in minfer")]
    Unplaced {
        /// The node.
        node: String,
    },
    /// More memory is needed than the budget allows. Nothing was allocated.
    #[error("{} bytes are needed, {} are allowed; nothing was allocated", .0.needed_bytes, .0.budget.bytes)]
    OverBudget(Box<Shortfall>),
    /// Somebody raised the engine's [`crate::Interrupt`].
    #[error("the run was interrupted")]
    Interrupted,
    /// An observer failed, such as a trace whose file cannot be written.
    #[error("{0}")]
    Observer(String),
}
