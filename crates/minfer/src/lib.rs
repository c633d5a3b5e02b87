//! minfer, the library: run GGUF language models with a memory plan known before loading.
