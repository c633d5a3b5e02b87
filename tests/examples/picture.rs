//! Pictures of a real model's plan. Takes a GGUF file, a folder and, if wanted, the tokens of a batch and `unfused`; writes
//! `plan.svg` and `plan.html` there. Only the file's header is read.

use minfer_backend::Backend;
use minfer_cpu::{CpuBackend, CpuOptions};
use minfer_engine::{Blueprint, EngineConfig, Model};
use minfer_graph::Fusion;
use minfer_plan::picture::{self, Caption};
use minfer_plan::{PlanOptions, Strategy, plan};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let usage = "picture MODEL FOLDER [TOKENS] [unfused]";
    let (model_path, folder) = (PathBuf::from(args.next().ok_or(usage)?), PathBuf::from(args.next().ok_or(usage)?));
    let n_ubatch = args.next().map_or(Ok(32), |text| text.to_string_lossy().parse())?;
    let fusion = if args.next().is_some() { Fusion::NONE } else { Fusion::ALL };
    let model = Model::open(&model_path)?;
    let config = EngineConfig { n_ctx: 2048, n_ubatch, fusion, ..EngineConfig::default() };
    let backends = [CpuBackend::new(CpuOptions::default())?.capabilities()];
    let blueprint = Blueprint::new(&model, &config, &backends)?;
    let strategies = [Strategy::Planned, Strategy::Pool, Strategy::Naive];
    let plans = strategies.map(|strategy| plan(&blueprint.graph, &backends, PlanOptions { strategy }));
    let [planned, pool, naive] = plans;
    let plans = [&planned?, &pool?, &naive?];
    let caption = Caption {
        model: model_path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        settings: format!(
            "prefill · at most {n_ubatch} tokens a batch · n_ctx {} · KV {:?}",
            config.n_ctx, config.cache_type
        ),
    };
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("plan.svg"), picture::svg(plans[0], &blueprint.ledger, &caption))?;
    std::fs::write(folder.join("plan.html"), picture::html(&plans, &blueprint.ledger, &caption)?)?;
    Ok(())
}
