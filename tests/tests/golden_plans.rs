//! Golden plans of the real models: the arenas and who is live at the peak. `MINFER_BLESS=1` rewrites the files, so that a
//! kilobyte wasted shows in a review.

use minfer_engine::{Blueprint, EngineConfig, Model};
use minfer_plan::{Owner, PlanRecord, summary_text};
use minfer_tests::{cpu, qwen_one_and_a_half_b, real};
use std::fmt::Write;

/// `fingerprint`: whether the file is the same everywhere, so that its plan is, too.
fn check(model: &Model, golden: &str, fingerprint: bool) {
    let capabilities: Vec<_> = cpu(2).iter().map(|backend| backend.capabilities()).collect();
    let plan_text = || {
        let mut text = String::new();
        for n_ubatch in [512, 1] {
            let config = EngineConfig { n_ubatch, ..EngineConfig::default() };
            let blueprint = Blueprint::new(model, &config, &capabilities).unwrap();
            let kv = blueprint.ledger.sum(Owner::Kv);
            let _ = writeln!(text, "context {}, batch {n_ubatch}: KV {kv} bytes", config.n_ctx);
            let record = PlanRecord::new(&blueprint.plan);
            for arena in &record.arenas {
                assert_eq!(record.peak(arena).map(|peak| peak.bytes()), Some(arena.lower_bound_bytes), "{golden}");
            }
            if fingerprint {
                let _ = writeln!(text, "fingerprint {}", record.fingerprint);
            }
            let _ = writeln!(text, "{}", summary_text(&record));
        }
        text
    };
    let text = plan_text();
    assert_eq!(text, plan_text(), "the same plan, byte for byte");
    let path = format!("{}/golden/plans/{golden}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("MINFER_BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    for (line, (got, want)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(got, want, "{path}:{}", line + 1);
    }
    assert_eq!(text.lines().count(), expected.lines().count(), "{path}: number of lines");
}

#[test]
fn plan_of_smollm2() {
    check(&real("smollm2-135m-instruct-q4_1.gguf"), "smollm2-135m", true);
}

#[test]
fn plan_of_qwen_half_b() {
    check(&real("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"), "qwen2.5-0.5b", true);
}

#[test]
fn plan_of_qwen_one_and_a_half_b() {
    for model in qwen_one_and_a_half_b() {
        check(&model, "qwen2.5-1.5b", false);
    }
}

#[test]
fn plan_of_gemma() {
    check(&real("gemma3-270m-q4_k_m.gguf"), "gemma3-270m", true);
}
