//! Pictures of a small plan with everything a picture can show: two backends, copies, workspaces, chains in place, and
//! names that try to break out. Takes a folder; writes `small.svg` and `small.html` there. `cargo xtask check-picture`
//! opens them in a browser.

#[path = "../tests/support/mod.rs"]
mod support;

use minfer_plan::picture::{html, svg};
use minfer_plan::{PlanOptions, Strategy, plan};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("picture FOLDER")?);
    let graph = support::hostile_llama(4);
    let backends = support::two_backends();
    let make = |strategy| plan(&graph, &backends, PlanOptions { strategy });
    let (planned, pool, naive) = (make(Strategy::Planned)?, make(Strategy::Pool)?, make(Strategy::Naive)?);
    let (ledger, caption) = (support::ledger(), support::hostile_caption());
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("small.svg"), svg(&planned, &ledger, &caption))?;
    std::fs::write(folder.join("small.html"), html(&[&planned, &pool, &naive], &ledger, &caption)?)?;
    Ok(())
}
