//! Pre-tokenizer tests.
