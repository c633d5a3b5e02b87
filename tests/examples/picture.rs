//! The picture of a real model's plan for a prompt. Takes a GGUF file, a target `.svg` or `.html` and, if wanted, the most
//! tokens of a batch; writes the target. Of the weights only the header is read.

use minfer_backend::Backend;
use minfer_cpu::{CpuBackend, CpuOptions};
use minfer_engine::{Blueprint, EngineConfig, Model};
use minfer_plan::picture::{self, Caption};
use minfer_plan::{PlanOptions, Strategy, plan};
use std::error::Error;
use std::num::NonZeroUsize;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let usage = "picture MODEL.gguf TARGET.svg|TARGET.html [TOKENS]";
    let (path, target) = (PathBuf::from(args.next().ok_or(usage)?), PathBuf::from(args.next().ok_or(usage)?));
    let n_ubatch = args.next().map_or(Ok(32), |text| text.to_string_lossy().parse())?;
    let model = Model::open(&path)?;
    let config = EngineConfig { n_ctx: 2048, n_ubatch, ..EngineConfig::default() };
    // Threads have scratch of their own: a fixed number gives the same picture on every machine.
    let threads = NonZeroUsize::MIN.saturating_add(1);
    let backends = [CpuBackend::new(CpuOptions { threads, ..CpuOptions::default() })?.capabilities()];
    let Blueprint { graph, plan: planned, ledger } = Blueprint::new(&model, &config, &backends)?;
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let settings =
        format!("prefill, at most {n_ubatch} tokens a batch, n_ctx {}, KV f16, {threads} threads", config.n_ctx);
    let caption = Caption { model: file_name, settings };
    let picture = if target.extension().is_some_and(|extension| extension == "html") {
        let other = |strategy| plan(&graph, &backends, PlanOptions { strategy });
        picture::html(&[&planned, &other(Strategy::Pool)?, &other(Strategy::Naive)?], &ledger, &caption)?
    } else {
        picture::svg(&planned, &ledger, &caption)
    };
    std::fs::write(target, picture)?;
    Ok(())
}
