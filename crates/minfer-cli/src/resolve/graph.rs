//! `minfer graph`. Takes what was typed and the environment; gives settings in their ranges.

use super::Resolved;
use super::shared::{Compute, MAX_UBATCH, compute, in_range, n_ctx};
use crate::args::{self, GraphOutput};
use crate::env::Environment;
use crate::exit::Failure;
use minfer_graph::GraphKind;
use std::path::PathBuf;

/// `minfer graph`.
pub struct Graph {
    pub model: PathBuf,
    pub kind: GraphKind,
    pub n_ctx: Option<u32>,
    pub compute: Compute,
    pub passes: bool,
    pub output: GraphOutput,
}

pub(super) fn graph(raw: args::GraphArgs, environment: &Environment) -> Resolved<Graph> {
    let mut compute = compute(&raw.plan, environment)?;
    if let Some(tokens) = raw.tokens {
        if raw.kind == args::GraphKind::Decode {
            return Err(Failure::new(format!(
                "--tokens is {tokens}, but the decode graph takes one token of each sequence"
            ))
            .hint("leave out --tokens, or --kind decode"));
        }
        compute.config.n_ubatch = in_range("--tokens", tokens, 1..=MAX_UBATCH)?;
    }
    if raw.passes && raw.output != GraphOutput::Text {
        return Err(Failure::new("--passes prints text only").hint("leave out --output, or --passes"));
    }
    Ok(Graph {
        model: raw.model,
        kind: match raw.kind {
            args::GraphKind::Prefill => GraphKind::Prefill,
            args::GraphKind::Decode => GraphKind::Decode,
        },
        n_ctx: n_ctx(raw.n_ctx)?,
        compute,
        passes: raw.passes,
        output: raw.output,
    })
}
