//! Every byte the process plans to own, one line per owner. Takes lines; gives sums; must not know where they come from.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Classes of owners.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// Mapped weights, shared with the page cache.
    Weights,
    /// KV regions.
    Kv,
    /// Values of graphs, workspaces and staging.
    Arena,
    /// Vocabulary and merges.
    Tokenizer,
    /// Scratch and stacks of worker threads.
    Threads,
    /// Logits, sampling, inputs and the owners of KV cells.
    Host,
    /// Tables of the model, graphs and their plans.
    Graphs,
    /// The program itself: code, stacks, fixed heap.
    Program,
}

impl Owner {
    /// Every class, in the order of ledgers.
    pub const ALL: [Owner; 8] = [
        Owner::Weights,
        Owner::Kv,
        Owner::Arena,
        Owner::Tokenizer,
        Owner::Threads,
        Owner::Host,
        Owner::Graphs,
        Owner::Program,
    ];

    /// Short name, the same as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Owner::Weights => "weights",
            Owner::Kv => "kv",
            Owner::Arena => "arena",
            Owner::Tokenizer => "tokenizer",
            Owner::Threads => "threads",
            Owner::Host => "host",
            Owner::Graphs => "graphs",
            Owner::Program => "program",
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One owner's bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LedgerLine {
    /// Class.
    pub owner: Owner,
    /// Which one, such as `KV cache, full attention`.
    pub name: String,
    /// What the bytes are made of, such as `24 layers × 2 × 4096 cells × 128 f16`.
    pub detail: String,
    /// Bytes.
    pub bytes: u64,
    /// Whether they are taken only as far as they are read: of an embedding, the rows of tokens that occur.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
}

/// All lines.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger {
    /// In the order in which they were added.
    pub lines: Vec<LedgerLine>,
}

impl Ledger {
    /// Adds an owner's bytes.
    pub fn add(&mut self, owner: Owner, name: impl Into<String>, detail: impl Into<String>, bytes: u64) {
        self.lines.push(LedgerLine { owner, name: name.into(), detail: detail.into(), bytes, on_demand: false });
    }

    /// Adds bytes of which only those that are read will be taken.
    pub fn add_on_demand(&mut self, owner: Owner, name: impl Into<String>, detail: impl Into<String>, bytes: u64) {
        self.lines.push(LedgerLine { owner, name: name.into(), detail: detail.into(), bytes, on_demand: true });
    }

    /// Bytes of one class.
    pub fn sum(&self, owner: Owner) -> u64 {
        self.lines.iter().filter(|line| line.owner == owner).map(|line| line.bytes).fold(0, u64::saturating_add)
    }

    /// Bytes of all that may never be taken.
    pub fn on_demand(&self) -> u64 {
        self.lines.iter().filter(|line| line.on_demand).map(|line| line.bytes).fold(0, u64::saturating_add)
    }

    /// Bytes of all.
    pub fn total(&self) -> u64 {
        self.lines.iter().map(|line| line.bytes).fold(0, u64::saturating_add)
    }

    /// The lines with most bytes, largest first; equal ones in the ledger's order.
    pub fn largest(&self, n: usize) -> Vec<&LedgerLine> {
        let mut lines: Vec<&LedgerLine> = self.lines.iter().collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.bytes));
        lines.truncate(n);
        lines
    }
}
