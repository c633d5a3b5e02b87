//! `minfer doctor`. Takes what was typed and the environment; gives settings in their ranges.

use super::Resolved;
use super::shared::to_threads;
use crate::args::{self, TextOutput};
use crate::env::Environment;
use minfer::SimdLevel;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// `minfer doctor`.
pub struct Doctor {
    pub model: Option<PathBuf>,
    /// As asked, if anybody asked.
    pub threads: Option<NonZeroUsize>,
    pub simd: Option<SimdLevel>,
    pub output: TextOutput,
}

pub(super) fn doctor(raw: args::DoctorArgs, environment: &Environment) -> Resolved<Doctor> {
    let threads = match (raw.threads, environment.threads) {
        (Some(threads), _) => Some(to_threads("--threads", threads)?),
        (None, Some(threads)) => Some(to_threads("MINFER_THREADS", threads)?),
        (None, None) => None,
    };
    Ok(Doctor { model: raw.model, threads, simd: environment.simd, output: raw.output })
}
