//! How much work is left: counts nodes, and asks now and then whether to stop. Must not know what a node is spent on.

/// Asked now and then; true ends the work. What was found so far stands.
pub(crate) type Stop<'s> = &'s (dyn Fn() -> bool + Sync);

/// Work left, in nodes. Counting instead of timing keeps answers equal on all machines.
pub(crate) struct Budget<'s> {
    nodes: u64,
    stop: Stop<'s>,
    unasked: usize, // nodes since the last question whether to stop
    is_stopped: bool,
}

/// Nodes, a few nanoseconds each, between two questions whether to stop.
const NODES_PER_QUESTION: usize = 1 << 18;

impl<'s> Budget<'s> {
    pub(crate) fn new(nodes: u64, stop: Stop<'s>) -> Self {
        Self { nodes, stop, unasked: 0, is_stopped: false }
    }

    pub(crate) fn spend(&mut self, nodes: usize) {
        self.nodes = self.nodes.saturating_sub(nodes as u64);
        self.pass(nodes);
    }

    /// Work that costs nothing, but takes the time of so many nodes.
    pub(crate) fn pass(&mut self, nodes: usize) {
        self.unasked = self.unasked.saturating_add(nodes);
        if self.unasked >= NODES_PER_QUESTION {
            self.unasked = 0;
            self.is_stopped |= (self.stop)();
        }
    }

    /// Nodes left.
    pub(crate) fn left(&self) -> u64 {
        self.nodes
    }

    /// Nothing new is to be begun.
    pub(crate) fn is_spent(&self) -> bool {
        self.nodes == 0 || self.is_stopped
    }

    /// Nor is what was begun to be finished.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}
