//! GGUF files: bytes to metadata and tensor table, and back; block formats.
