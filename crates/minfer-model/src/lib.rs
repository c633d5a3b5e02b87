//! GGUF files to model specifications and compute graphs; one short file per architecture.
//!
//! Takes: an open [`GgufFile`](minfer_gguf::GgufFile). Gives: a [`ModelSpec`] (hyper-parameters, typed options, weights by
//! role), the tokenizer's specification, the chat template, and from a specification the plain, unfused graph. Must not
//! know: devices, plans, sampling. It is the only place that spells GGUF keys and tensor names.

mod arch;
mod block;
mod error;
mod hyper;
mod keys;
mod kv;
mod read;
mod role;
mod spec;
mod tensors;
mod tokenizer;
mod weights;

pub use arch::{load_spec, supported_architectures};
pub use block::{build_graph, input};
pub use error::{ModelError, Shape2};
pub use kv::{kv_bytes_per_token, kv_layers};
pub use role::{Role, Slot};
pub use spec::{ModelSpec, Options, Rope, Window};
pub use tokenizer::{
    TokenizerLoad, TokenizerWarning, chat_template, load_tokenizer, load_tokenizer_as, named_chat_templates,
    tokenizer_spec,
};
pub use weights::{LayerWeights, Weights};

/// Most layers a file may declare: the bound of the converters and engines in use (`LLAMA_MAX_LAYERS` is 512).
pub const MAX_LAYERS: u32 = 512;
