//! Tokenizers, streaming decoding and chat templates, from a plain specification.
