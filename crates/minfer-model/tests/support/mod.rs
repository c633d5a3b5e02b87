//! What the tests of this crate share: graph parameters, and files with something left out.

#![allow(dead_code)]

use minfer_gguf::{GgufFile, GgufWriter};
use minfer_graph::{CacheType, Fusion, GraphKind, GraphParams};
use minfer_testkit::TinyModel;

/// A batch of 8 tokens of up to 2 sequences of 64 positions, with logits of up to 3 of them.
pub fn params() -> GraphParams {
    GraphParams {
        kind: GraphKind::Prefill,
        token_capacity: 8,
        batch_capacity: 8,
        output_capacity: 3,
        sequence_capacity: 2,
        n_ctx: 64,
        n_cells: 128,
        cache_type: CacheType::F16,
        fusion: Fusion::ALL,
        weights_version: 0,
    }
}

/// The model's file, changed before it is written.
pub fn changed(model: &TinyModel, change: impl FnOnce(&mut GgufWriter)) -> GgufFile {
    let mut writer = model.writer();
    change(&mut writer);
    GgufFile::from_bytes(writer.to_bytes()).expect("well formed")
}

/// The model's file without the metadata keys and tensors of these names.
pub fn without(model: &TinyModel, names: &[&str]) -> GgufFile {
    let file = model.open();
    let mut writer = GgufWriter::new();
    for entry in file.metadata().iter().filter(|entry| !names.contains(&entry.key.as_str())) {
        writer.set(entry.key.as_str(), entry.value.clone());
    }
    for info in file.tensors().iter().filter(|info| !names.contains(&info.name.as_str())) {
        writer.tensor_unchecked(&*info.name, &info.dims, info.ty.ggml_id(), file.tensor_bytes(info).to_vec());
    }
    GgufFile::from_bytes(writer.to_bytes()).expect("well formed")
}
