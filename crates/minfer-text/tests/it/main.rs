//! The tests of this crate that use its public parts only, in one binary.

mod chat;
mod hostile;
mod pretokenize;
mod small;
mod stream;
mod tokenizer;
