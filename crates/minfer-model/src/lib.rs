//! GGUF files to model specifications and compute graphs; one short file per architecture.
