//! The tests of this crate that use its public parts only, in one binary.

mod chat;
mod hostile;
mod pretokenize;
mod random;
mod small;
mod stream;
mod templates;
mod tokenizer;
