//! Progress on stderr: a bar on a terminal, plain lines elsewhere.
//!
//! Takes counts of parts and bytes; prints. Must not know what is fetched.

use std::io::{IsTerminal, stderr};

use anyhow::Result;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

/// The progress of one file.
pub struct Progress {
    name: String,
    n_parts: usize,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts a bar for `name`, of `size_bytes` in `n_parts`.
    pub fn start(name: &str, n_parts: usize, size_bytes: u64) -> Result<Self> {
        let bar = if stderr().is_terminal() {
            let style = "{prefix} [{bar:24}] {bytes}/{total_bytes} {binary_bytes_per_sec} {msg}";
            let bar =
                ProgressBar::new(size_bytes).with_style(ProgressStyle::with_template(style)?.progress_chars("=> "));
            bar.set_prefix(name.to_string());
            Some(bar)
        } else {
            eprintln!("{name}: {} in {n_parts} part(s)", HumanBytes(size_bytes));
            None
        };
        Ok(Self { name: name.to_string(), n_parts, bar })
    }

    /// Part `part` (from 0) is on its way.
    pub fn part(&self, part: usize) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("part {}/{}", part + 1, self.n_parts));
        }
    }

    /// Part `part` is there, `done_bytes` in all.
    pub fn part_done(&self, part: usize, done_bytes: u64, resumed: bool) {
        match &self.bar {
            Some(bar) => bar.set_position(done_bytes),
            None => {
                let how = if resumed { "kept from an earlier run" } else { "fetched" };
                let (part, n) = (part + 1, self.n_parts);
                eprintln!("{}: part {part}/{n} {how}, {} in all", self.name, HumanBytes(done_bytes));
            }
        }
    }

    /// `done_bytes` have come.
    pub fn bytes(&self, done_bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done_bytes.min(bar.length().unwrap_or(done_bytes)));
        }
    }

    /// Says what happens now.
    pub fn says(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_string()),
            None => eprintln!("{}: {what}", self.name),
        }
    }

    /// Takes the bar away and says how it ended.
    pub fn finish(self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        eprintln!("{}: {what}", self.name);
    }
}
