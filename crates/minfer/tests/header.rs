//! Opening a model: what a budget refuses is refused from the header, before weights are mapped.
#![cfg(target_os = "linux")]

use minfer::{Budget, EngineConfig, EngineError, Error, GgufFile, Options};
use minfer_testkit::{TinyArch, TinyModel};
use std::process::Command;

/// Where the test that runs again within a limit finds its model.
const MODEL: &str = "MINFER_TEST_HUGE_MODEL";
/// Addresses of that run, in KiB: a tenth of the model.
const ADDRESS_KIB: u64 = 4_000_000;
const MODEL_BYTES: u64 = 40_000_000_000;

#[test]
fn a_budget_refuses_what_could_never_be_mapped() {
    if let Some(path) = std::env::var_os(MODEL) {
        return within_the_limit(path.as_ref());
    }
    let path = std::env::temp_dir().join(format!("minfer-library-huge-{}.gguf", std::process::id()));
    TinyModel::new("huge", TinyArch::Llama).write_sparse(&path, MODEL_BYTES).unwrap();
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("ulimit -v {ADDRESS_KIB} && exec \"$0\" \"$@\""))
        .arg(std::env::current_exe().unwrap());
    let output = command.args(["--exact", "a_budget_refuses_what_could_never_be_mapped"]).env(MODEL, &path).output();
    std::fs::remove_file(&path).unwrap();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
}

fn within_the_limit(path: &std::path::Path) {
    assert!(GgufFile::open(path).is_err(), "the limit is one");
    let open = |budget| {
        let config = EngineConfig { budget, ..EngineConfig::default() };
        match minfer::open_with(path, &Options { config, ..Options::default() }) {
            Err(Error::Engine(error)) => *error,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("a model larger than all addresses is open"),
        }
    };
    match open(Some(Budget::of_all(MODEL_BYTES))) {
        EngineError::OverBudget(shortfall) => {
            assert!(shortfall.needed_bytes > MODEL_BYTES);
            assert_eq!(shortfall.owners[0].name, "weights");
        }
        other => panic!("{other}"),
    }
    // Without a budget nothing is refused but by the system, when all is planned.
    let error = open(None);
    assert!(matches!(error, EngineError::File(_)) && error.to_string().contains("map the file"), "{error}");
}
