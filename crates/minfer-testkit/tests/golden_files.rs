//! The golden files of the repository: they parse, and those of tiny models belong to the models as they are written now.

use minfer_testkit::golden::{Golden, TinyGolden, from_json, tiny_prompt};
use minfer_testkit::{argmax, fnv1a64, tiny_models};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn json_files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths
}

#[test]
fn golden_cases_of_real_models_parse() {
    let files = json_files(&folder());
    assert!(files.len() >= 3);
    for path in files {
        let golden: Golden = from_json(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for case in &golden.cases {
            assert_eq!(
                (case.top.len(), case.greedy.len()),
                (32, case.margins.len()),
                "{}: {}",
                golden.model,
                case.name
            );
            assert_eq!(case.top[0].0, case.greedy[0], "{}: {}", golden.model, case.name);
        }
    }
}

/// If this fails, the generator or an encoder has changed: see `examples/write_tiny.rs` for how to write them anew.
#[test]
fn golden_cases_of_tiny_models_are_current() {
    let models = tiny_models();
    assert_eq!(json_files(&folder().join("tiny")).len(), models.len(), "one file per model");
    for model in models {
        let path = folder().join("tiny").join(format!("{}.json", model.name));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let golden: TinyGolden = from_json(&text).unwrap();
        assert_eq!(golden.model, model.name);
        assert_eq!(golden.fnv1a64, format!("{:016x}", fnv1a64(&model.to_bytes())), "{}", model.name);
        assert_eq!(golden.ids, tiny_prompt(model.n_vocab), "{}", model.name);
        assert_eq!(golden.logits.len(), model.n_vocab as usize, "{}", model.name);
        assert_eq!(argmax(&golden.logits), golden.greedy.first().copied(), "{}", model.name);
        assert_eq!(golden.greedy.len(), golden.margins.len(), "{}", model.name);
    }
}
