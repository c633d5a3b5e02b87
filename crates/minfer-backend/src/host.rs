//! Regions in host memory, without unsafe code. Takes region ids, sizes and [`BufRef`]s; gives checked byte slices and
//! every error of the contract that is about bytes. Must not know steps or types of values.

use crate::backend::{BackendError, HostBytes};
use crate::buffer::{BufRef, RegionId};
use std::ops::Range;

/// Alignment of every region, in bytes: a cache line, and the widest vector register.
const REGION_ALIGNMENT: usize = 64;

/// Ids are small and dense by contract; a larger one is a fault of the caller, not a reason for a huge table.
const MAX_REGIONS: usize = 1 << 16;

/// One region.
enum Memory {
    /// Owned bytes. The vector is never resized, so they never move; `range` is the aligned part of it.
    Owned { bytes: Vec<u8>, range: Range<usize> },
    /// The host's bytes, read in place.
    Imported(HostBytes),
}

impl Memory {
    fn as_slice(&self) -> &[u8] {
        match self {
            Memory::Owned { bytes, range } => &bytes[range.clone()],
            Memory::Imported(bytes) => (**bytes).as_ref(),
        }
    }
}

/// The regions of a backend that works in host memory.
pub struct HostRegions {
    backend: String,
    regions: Vec<Option<Memory>>,
}

impl HostRegions {
    /// No regions yet; `backend` is the name in errors.
    pub fn new(backend: impl Into<String>) -> Self {
        Self { backend: backend.into(), regions: Vec::new() }
    }

    /// Allocates `bytes` zero bytes, aligned to 64. Pages are touched when first written.
    pub fn create(&mut self, id: RegionId, bytes: u64) -> Result<(), BackendError> {
        let out_of_memory = || BackendError::OutOfMemory { backend: self.backend.clone(), bytes };
        let len = usize::try_from(bytes).map_err(|_| out_of_memory())?;
        let padded = len.checked_add(REGION_ALIGNMENT).ok_or_else(out_of_memory)?;
        // Fails where `vec![0; n]` would abort the process.
        let memory: Vec<u8> = bytemuck::allocation::try_zeroed_vec(padded).map_err(|()| out_of_memory())?;
        let start = memory.as_ptr().align_offset(REGION_ALIGNMENT);
        let start = if start < REGION_ALIGNMENT { start } else { 0 };
        self.insert(id, Memory::Owned { bytes: memory, range: start..start + len })
    }

    /// Makes host bytes a read-only region, without a copy.
    pub fn import(&mut self, id: RegionId, bytes: HostBytes) -> Result<(), BackendError> {
        self.insert(id, Memory::Imported(bytes))
    }

    /// Frees a region.
    pub fn drop_region(&mut self, id: RegionId) -> Result<(), BackendError> {
        let taken = self.regions.get_mut(id.index()).and_then(Option::take);
        taken.map(drop).ok_or_else(|| self.unknown(id))
    }

    /// The address of a region's first byte.
    pub fn address(&self, id: RegionId) -> Option<usize> {
        let memory = self.regions.get(id.index())?.as_ref()?;
        Some(memory.as_slice().as_ptr().addr())
    }

    /// The bytes of a run.
    pub fn bytes(&self, buf: BufRef) -> Result<&[u8], BackendError> {
        let memory = self.regions.get(buf.region.index()).and_then(Option::as_ref);
        let slice = memory.ok_or_else(|| self.unknown(buf.region))?.as_slice();
        let range = self.range(buf, slice.len())?;
        Ok(&slice[range])
    }

    /// The bytes of a run, to be overwritten.
    pub fn bytes_mut(&mut self, buf: BufRef) -> Result<&mut [u8], BackendError> {
        let region_bytes =
            self.bytes(BufRef { offset: 0, len: 0, ..buf }).and_then(|_| self.region_bytes(buf.region))?;
        let range = self.range(buf, region_bytes)?;
        let read_only = BackendError::ReadOnly { backend: self.backend.clone(), region: buf.region.0 };
        match &mut self.regions[buf.region.index()] {
            Some(Memory::Owned { bytes, range: owned }) => Ok(&mut bytes[owned.clone()][range]),
            _ => Err(read_only),
        }
    }

    /// Writes at the start of a run; more bytes than the run has are out of bounds.
    pub fn write(&mut self, to: BufRef, bytes: &[u8]) -> Result<(), BackendError> {
        if bytes.len() as u64 > to.len {
            return Err(self.out_of_bounds(to, to.offset.saturating_add(bytes.len() as u64)));
        }
        self.bytes_mut(to)?[..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// Sets every byte of a run.
    pub fn fill(&mut self, to: BufRef, byte: u8) -> Result<(), BackendError> {
        self.bytes_mut(to)?.fill(byte);
        Ok(())
    }

    /// Copies a run onto another of the same length.
    pub fn copy(&mut self, from: BufRef, to: BufRef) -> Result<(), BackendError> {
        if from.len != to.len {
            return Err(self.out_of_bounds(to, to.offset.saturating_add(from.len)));
        }
        let source = self.range(from, self.region_bytes(from.region)?)?;
        self.bytes_mut(to)?;
        let target = self.range(to, self.region_bytes(to.region)?)?;
        if from.region == to.region {
            self.bytes_mut(BufRef { offset: 0, len: self.region_bytes(to.region)? as u64, ..to })?
                .copy_within(source, target.start);
            return Ok(());
        }
        let pair = self.regions.get_disjoint_mut([from.region.index(), to.region.index()]);
        if let Ok([Some(from), Some(Memory::Owned { bytes, range })]) = pair {
            bytes[range.clone()][target].copy_from_slice(&from.as_slice()[source]);
        }
        Ok(())
    }

    /// Length of a region in bytes.
    fn region_bytes(&self, id: RegionId) -> Result<usize, BackendError> {
        let memory = self.regions.get(id.index()).and_then(Option::as_ref);
        memory.map(|memory| memory.as_slice().len()).ok_or_else(|| self.unknown(id))
    }

    fn insert(&mut self, id: RegionId, memory: Memory) -> Result<(), BackendError> {
        if id.index() >= MAX_REGIONS {
            return Err(self.unknown(id));
        }
        if self.regions.len() <= id.index() {
            self.regions.resize_with(id.index() + 1, || None);
        }
        let place = &mut self.regions[id.index()];
        if place.is_some() {
            return Err(BackendError::RegionExists { backend: self.backend.clone(), region: id.0 });
        }
        *place = Some(memory);
        Ok(())
    }

    /// The run as a range of a region of `region_bytes` bytes.
    fn range(&self, buf: BufRef, region_bytes: usize) -> Result<Range<usize>, BackendError> {
        let end = buf.offset.saturating_add(buf.len);
        if buf.offset > region_bytes as u64 || end > region_bytes as u64 {
            return Err(BackendError::OutOfBounds {
                backend: self.backend.clone(),
                region: buf.region.0,
                offset: buf.offset,
                end,
                region_bytes: region_bytes as u64,
            });
        }
        // Both fit: they are at most the region's length.
        Ok(buf.offset as usize..end as usize)
    }

    fn out_of_bounds(&self, buf: BufRef, end: u64) -> BackendError {
        match self.region_bytes(buf.region) {
            Ok(_) => BackendError::OutOfBounds {
                backend: self.backend.clone(),
                region: buf.region.0,
                offset: buf.offset,
                end,
                region_bytes: buf.offset.saturating_add(buf.len),
            },
            Err(error) => error,
        }
    }

    fn unknown(&self, id: RegionId) -> BackendError {
        BackendError::UnknownRegion { backend: self.backend.clone(), region: id.0 }
    }
}

/// Bytes as numbers: in place where they are aligned, else a copy. Bytes beyond a whole number are ignored.
pub fn numbers<T: bytemuck::Pod>(bytes: &[u8]) -> std::borrow::Cow<'_, [T]> {
    let size = size_of::<T>();
    let bytes = &bytes[..bytes.len() / size * size];
    match bytemuck::try_cast_slice(bytes) {
        Ok(numbers) => numbers.into(),
        Err(_) => bytemuck::pod_collect_to_vec(bytes).into(),
    }
}
