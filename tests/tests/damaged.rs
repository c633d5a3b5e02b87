//! Models whose weights are damaged end with an error, not with an answer.

use minfer_engine::{EngineError, Model, Sampler, SamplingParams, Session};
use minfer_gguf::GgufFile;
use minfer_tests::*;
use std::ops::ControlFlow;
use std::sync::Arc;

#[test]
fn weights_without_numbers_are_an_error() {
    let mut bytes = minfer_testkit::tiny_model("qwen2-f32").to_bytes();
    let file = GgufFile::from_bytes(bytes.clone()).unwrap();
    let norm = file.tensor_bytes(file.tensor("output_norm.weight").unwrap()).to_vec();
    let at = bytes.windows(norm.len()).position(|window| window == norm).unwrap();
    bytes[at..at + norm.len()].fill(0xFF);
    let model = Arc::new(Model::from_file(GgufFile::from_bytes(bytes).unwrap()).unwrap());
    let mut engine = engine(&model, cpu(1), config(64));
    let mut session = Session::new(&mut engine).unwrap();
    let mut sampler = Sampler::new(SamplingParams::default()).unwrap();
    let answer = session.generate(&mut engine, &[1, 2, 3], &mut sampler, Some(4), &mut |_| ControlFlow::Continue(()));
    assert!(matches!(answer, Err(EngineError::NoNumbers)), "{answer:?}");
}
