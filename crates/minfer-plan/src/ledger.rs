//! Every byte the process plans to own, one line per owner. Takes lines; gives sums; must not know where they come from.

use serde::Serialize;

/// Classes of owners.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
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
    /// Logits on the host. Graphs and plans (a few hundred kilobytes) are not counted.
    Host,
}

/// One owner's bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LedgerLine {
    /// Class.
    pub owner: Owner,
    /// Which one, such as `kv.3` or `arena cpu`.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
}

/// All lines.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Ledger {
    /// In the order in which they were added.
    pub lines: Vec<LedgerLine>,
}

impl Ledger {
    /// Adds an owner's bytes.
    pub fn add(&mut self, owner: Owner, name: impl Into<String>, bytes: u64) {
        self.lines.push(LedgerLine { owner, name: name.into(), bytes });
    }

    /// Bytes of one class.
    pub fn sum(&self, owner: Owner) -> u64 {
        self.lines.iter().filter(|line| line.owner == owner).map(|line| line.bytes).sum()
    }

    /// Bytes of all.
    pub fn total(&self) -> u64 {
        self.lines.iter().map(|line| line.bytes).sum()
    }
}
