//! `minfer memplan`. Takes what was typed; gives settings in their ranges.

use super::Resolved;
use super::shared::TextSource;
use crate::args::{self, TableOutput};
use crate::exit::Failure;
use std::path::PathBuf;
use std::time::Duration;

/// Longest search for a placement: a day.
const MAX_TIMEOUT_SECONDS: u64 = 86_400;

/// `minfer memplan`.
pub struct Memplan {
    /// The problem, or the placement.
    pub source: TextSource,
    pub capacity: Option<u64>,
    pub action: MemplanAction,
}

/// What `minfer memplan` does.
pub enum MemplanAction {
    Solve { minimize: bool, limit: Duration, output: TableOutput },
    Check { problem: Option<TextSource> },
    Render { limit: Duration, file: Option<PathBuf> },
}

pub(super) fn memplan(raw: args::MemplanArgs) -> Resolved<Memplan> {
    let of = |file: PathBuf| if file.as_os_str() == "-" { TextSource::Stdin } else { TextSource::File(file) };
    let limit = |seconds: f64| {
        let limit = Duration::try_from_secs_f64(seconds).ok().filter(|l| l.as_secs() <= MAX_TIMEOUT_SECONDS);
        limit.ok_or_else(|| {
            Failure::new(format!("--timeout {seconds}: expected seconds from 0 to {MAX_TIMEOUT_SECONDS}"))
        })
    };
    Ok(match raw {
        args::MemplanArgs::Solve { problem, minimize, output } => Memplan {
            source: of(problem.file),
            capacity: problem.capacity,
            action: MemplanAction::Solve { minimize, limit: limit(problem.timeout)?, output },
        },
        args::MemplanArgs::Check { file, problem, capacity } => {
            let (source, problem) = (of(file), problem.map(of));
            if let (TextSource::Stdin, Some(TextSource::Stdin)) = (&source, &problem) {
                return Err(Failure::new("the placement and --problem: expected a file for one, got stdin for both"));
            }
            Memplan { source, capacity, action: MemplanAction::Check { problem } }
        }
        args::MemplanArgs::Render { problem, out } => Memplan {
            source: of(problem.file),
            capacity: problem.capacity,
            action: MemplanAction::Render { limit: limit(problem.timeout)?, file: out },
        },
    })
}
