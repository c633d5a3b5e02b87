//! Where bytes are. Takes nothing; gives the identities of backends and regions and [`BufRef`]; must not know pointers:
//! nobody outside a backend dereferences a `BufRef`.

/// A backend's place in the engine's list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct BackendId(pub u8);

impl BackendId {
    /// As an index into the list of backends.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One allocation of a backend: an arena, a KV region, a part of the weights. Its id and its address never change while
/// any plan uses it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct RegionId(pub u32);

impl RegionId {
    /// As an index into a backend's table of regions.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A run of bytes in a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BufRef {
    /// Whose memory.
    pub backend: BackendId,
    /// Which allocation.
    pub region: RegionId,
    /// Bytes from the region's start.
    pub offset: u64,
    /// Length in bytes: of the largest batch the plan serves.
    pub len: u64,
}

impl BufRef {
    /// The first byte after the run.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// Whether two runs share a byte.
    pub fn overlaps(&self, other: &BufRef) -> bool {
        self.backend == other.backend
            && self.region == other.region
            && self.offset < other.end()
            && other.offset < self.end()
    }
}
