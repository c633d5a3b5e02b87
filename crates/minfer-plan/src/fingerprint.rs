//! Identity by content. Takes a graph; gives a hash of all that execution depends on; must not know addresses.

use minfer_graph::Graph;
use std::fmt::{self, Write};

/// A 128-bit content hash. Equal graphs have equal fingerprints on every machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fingerprint(pub u128);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Ops with their attributes, edges, weights, shapes, types, outputs and parameters of a graph.
pub fn fingerprint(graph: &Graph) -> Fingerprint {
    let mut hash = Fnv::default();
    let mut text = String::new();
    let mut add = |part: &dyn fmt::Debug| {
        text.clear();
        let _ = write!(text, "{part:?}"); // a String takes everything
        hash.text(&text);
    };
    add(&graph.params);
    add(&graph.kv_layers);
    graph.nodes.iter().for_each(|node| add(node));
    graph.weights.iter().for_each(|weight| add(weight));
    add(&graph.outputs);
    hash.finish()
}

/// FNV-1a with 128 bits (Fowler, Noll, Vo; offset basis and prime from their published parameters). It guards against
/// mistakes, not against an adversary.
pub(crate) struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0x6c62272e07bb014262b821756295c58d)
    }
}

impl Fnv {
    pub fn number(&mut self, n: u64) {
        self.bytes(&n.to_le_bytes());
    }

    /// The length goes first, so that two texts never run into each other.
    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    pub fn finish(self) -> Fingerprint {
        Fingerprint(self.0)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0000000001000000000000000000013B);
        }
    }
}
