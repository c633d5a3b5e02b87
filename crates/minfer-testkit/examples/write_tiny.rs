//! Writes every tiny model to a folder, and an index that the script beside this file turns into golden cases.
//!
//! ```text
//! cargo run -p minfer-testkit --example write_tiny -- DIR
//! python crates/minfer-testkit/examples/golden_tiny.py ORACLE.py DIR tests/golden/tiny
//! ```

use minfer_testkit::{fnv1a64, golden, tiny_models};
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: write_tiny FOLDER");
        std::process::exit(2);
    };
    std::fs::create_dir_all(&dir)?;
    let mut index = Vec::new();
    for model in tiny_models() {
        let bytes = model.to_bytes();
        let linear_factor = model.rope_scaling.filter(|scaling| scaling.kind == "linear").map(|scaling| scaling.factor);
        index.push(serde_json::json!({
            "model": model.name,
            "fnv1a64": format!("{:016x}", fnv1a64(&bytes)),
            "ids": golden::tiny_prompt(model.n_vocab),
            "linear_factor": linear_factor,
        }));
        std::fs::write(dir.join(format!("{}.gguf", model.name)), bytes)?;
    }
    std::fs::write(dir.join("index.json"), serde_json::Value::from(index).to_string())?;
    println!("{} models in {}", tiny_models().len(), dir.display());
    Ok(())
}
