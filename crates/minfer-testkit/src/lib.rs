//! Development only: tiny GGUF models, golden runner, generators, tolerances.
