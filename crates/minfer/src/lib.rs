//! Run language models stored as GGUF, with the memory planned before anything is loaded.
//!
//! Takes: the path of a model and, if you like, [`Options`]. Gives: [`Minfer`], which completes text and answers chats,
//! piece by piece. Must not know: flags, environment variables, HTTP. A thin facade: what it does in one call is done in a
//! few by the crates it re-exports.
//!
//! ```no_run
//! use minfer::{Generate, Message};
//! use std::io::Write;
//! use std::ops::ControlFlow;
//!
//! fn main() -> Result<(), minfer::Error> {
//!     let mut model = minfer::open("smollm2-135m-instruct-q4_1.gguf")?;
//!     println!("the KV cache and all arenas take {} bytes", model.engine().allocator().allocated_bytes());
//!
//!     let messages = [Message::new("user", "What is a memory plan?")];
//!     let answer = model.chat(&messages, &Generate::default(), &mut |text| {
//!         print!("{text}");
//!         std::io::stdout().flush().map_or(ControlFlow::Break(()), |()| ControlFlow::Continue(()))
//!     })?;
//!     println!("\n{:.1} tokens/s", answer.timing.decode_tps());
//!     Ok(())
//! }
//! ```
//!
//! Without a template, or for text that is to go on rather than to be answered, there is [`Minfer::complete`]. Everything
//! below is reachable: [`Minfer::engine_mut`] gives sequences and single steps, and [`Blueprint`] says what an engine
//! would own without making one.

mod answer;
mod backends;
mod error;
mod model;
mod prompt;

pub use answer::{Answer, Generate, Piece};
pub use backends::{BackendKind, backends, capabilities};
pub use error::Error;
pub use model::{Minfer, Options, open, open_with};
pub use prompt::{Prompt, chat_prompt, text_prompt};

pub use minfer_backend::{Backend, Capabilities};
pub use minfer_cpu::{CpuError, SimdLevel, default_threads};
pub use minfer_engine::{
    BatchToken, Blueprint, Budget, Change, Combination, ContextChoice, ContextReason, DEFAULT_N_CTX, EndReason, Engine,
    EngineConfig, EngineError, Fit, Fitted, Interrupt, Levers, Logits, MemoryFigures, Model, Remedy, Replanner,
    Sampler, SamplerError, SamplingParams, SequenceId, Session, Shortfall, Timing, admit, choose_n_ctx, fit,
};
pub use minfer_gguf::GgufFile;
pub use minfer_graph::{CacheType, Fusion};
pub use minfer_plan::{Ledger, LedgerLine, Owner, Strategy};
pub use minfer_text::{Message, Tokenizer};
