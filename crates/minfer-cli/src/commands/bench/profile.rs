//! Where the time goes. Takes the time of every step; gives one row per kind of operation.

use minfer_engine::{Demand, StepTime};
use std::time::Duration;

/// All steps of one kind.
#[derive(Clone, PartialEq, Debug)]
pub struct OpRow {
    /// Operation.
    pub op: &'static str,
    /// Formats of the matrices it multiplies with, such as `Q4_K+Q6_K`; empty for other operations.
    pub formats: String,
    pub calls: u64,
    pub time: Duration,
    pub demand: Demand,
}

/// Steps by kind.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Profile {
    rows: Vec<OpRow>,
}

impl Profile {
    /// Adds a step.
    pub fn add(&mut self, step: &StepTime<'_>) {
        let op = step.kernel.op.name();
        let mut names: Vec<String> = Vec::new();
        for dtype in step.kernel.weights.iter().take(step.kernel.op.n_matrices()) {
            let name = dtype.to_string();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let formats = names.join("+");
        self.add_row(OpRow { op, formats, calls: 1, time: step.time, demand: step.demand });
    }

    fn add_row(&mut self, row: OpRow) {
        match self.rows.iter_mut().find(|mine| mine.op == row.op && mine.formats == row.formats) {
            Some(mine) => {
                mine.calls += row.calls;
                mine.time += row.time;
                mine.demand += row.demand;
            }
            None => self.rows.push(row),
        }
    }

    /// The steps of both.
    pub fn with(mut self, other: Profile) -> Self {
        other.rows.into_iter().for_each(|row| self.add_row(row));
        self
    }

    /// Rows, the longest time first.
    pub fn rows(&self) -> Vec<&OpRow> {
        let mut rows: Vec<&OpRow> = self.rows.iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.time));
        rows
    }

    /// Time within steps.
    pub fn time(&self) -> Duration {
        self.rows.iter().map(|row| row.time).sum()
    }

    /// What all steps need.
    pub fn demand(&self) -> Demand {
        let mut sum = Demand::default();
        self.rows.iter().for_each(|row| sum += row.demand);
        sum
    }
}

impl OpRow {
    /// Bytes that it needs per second, if any to speak of.
    pub fn gb_s(&self) -> Option<f64> {
        rate(self.demand.bytes(), self.time)
    }

    /// Multiplications and additions per second of products and attention.
    pub fn gop_s(&self) -> Option<f64> {
        rate(self.demand.ops(), self.time)
    }
}

fn rate(count: u64, time: Duration) -> Option<f64> {
    (count > 0 && !time.is_zero()).then(|| count as f64 / time.as_secs_f64() / 1e9)
}
