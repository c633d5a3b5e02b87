//! Tokenizers, streaming decoding and chat templates, from a plain specification.
//!
//! Takes a [`TokenizerSpec`] (tokens, kinds, scores, merges, special ids) and gives
//! ids ↔ bytes; takes a chat template and messages and gives the prompt. It must not
//! know where the specification came from: no file format, no model, no sampling.
//!
//! ```text
//! chat messages --ChatTemplate--> prompt parts --Tokenizer::encode_parts--> ids
//! ids --StreamDecoder--> text, never half a character --StopStrings--> text up to a stop string
//! ```
//!
//! # Why not the `tokenizers` crate
//!
//! Its pre-tokenizers run general regular expressions on engines that backtrack (one
//! long run of equal characters costs quadratic time or the stack) or that need a C
//! compiler. It also keeps the vocabulary several times, as owned strings in maps in
//! both directions, which for 262 144 tokens is tens of megabytes that the memory plan
//! would have to carry. The handful of patterns that models use are short linear
//! scanners here, and the vocabulary is one byte blob with one table of ids.
#![warn(missing_docs)]

mod bpe;
mod byte_map;
mod charsmap;
mod chat;
mod decode;
mod end_tokens;
mod error;
mod prefix;
mod pretokenize;
mod spec;
mod special;
mod spm;
mod stop;
mod tokenizer;
mod unigram;
mod utf8;
mod vocab;
mod words;

pub use chat::{ChatInput, ChatLimits, ChatTemplate, Message, Prompt, builtin_template, builtin_template_names};
pub use decode::{StreamDecoder, Utf8Stream};
pub use end_tokens::{EndSource, EndToken};
pub use error::TextError;
pub use pretokenize::PreTokenizer;
pub use spec::{Merges, SpecialTokens, Strip, TokenKind, TokenTable, TokenizerKind, TokenizerSpec};
pub use stop::StopStrings;
pub use tokenizer::{DecodeOptions, EncodeOptions, PromptPart, Tokenizer};
