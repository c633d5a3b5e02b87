//! The tests of this crate that use its public parts only, in one binary.

mod chat;
mod dump;
mod hostile;
mod pretokenize;
mod real_templates;
mod real_vocabularies;
mod small;
mod stream;
mod tokenizer;
