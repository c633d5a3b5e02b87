//! Any bytes are a GGUF file or an error; of a file, every tensor's bytes can be read.
#![cfg_attr(fuzzing, no_main)]

use minfer_gguf::GgufFile;

fn body(data: &[u8]) {
    let Ok(file) = GgufFile::from_bytes(data.to_vec()) else {
        return;
    };
    for tensor in file.tensors() {
        std::hint::black_box((tensor.dtype().ok(), file.tensor_bytes(tensor).len()));
    }
}

minfer_fuzz::target!("gguf_parse", body);
