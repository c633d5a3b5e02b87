//! Memory. Takes sizes or host bytes; gives [`Region`]s at addresses that never change; must not know what is in them.

use minfer_backend::HostBytes;
use std::alloc::{GlobalAlloc, Layout, System};

/// Alignment of regions, and of values in them: a cache line, and the widest vector.
pub(crate) const ALIGN: usize = 64;

/// A run of bytes that stays where it is.
pub(crate) struct Region {
    start: *mut u8,
    len: usize,
    owner: Owner,
}

enum Owner {
    Ours {
        allocation: *mut u8,
        layout: Layout,
    },
    /// Kept alive; read only.
    Host(#[allow(dead_code)] HostBytes),
}

// SAFETY: a region owns its bytes (or shares ownership of bytes that are `Send + Sync`); whoever uses the pointer keeps to
// the rules of the backend, which alone hands it out.
unsafe impl Send for Region {}
// SAFETY: `&Region` gives only the address; dereferencing is the backend's, under its own rules.
unsafe impl Sync for Region {}

impl Region {
    /// A region of zeros, which the system provides page by page on first touch. `None` if there is no memory for it.
    pub(crate) fn zeroed(bytes: u64) -> Option<Region> {
        let len = usize::try_from(bytes).ok()?;
        // Aligned by hand: asked for more than its usual alignment, the allocator would write the zeros itself and so touch
        // every page.
        let layout = Layout::from_size_align(len.checked_add(ALIGN)?, 1).ok()?;
        // Of the system itself: a program's own allocator may end the program where there is no memory.
        // SAFETY: the layout is not empty.
        let allocation = unsafe { System.alloc_zeroed(layout) };
        if allocation.is_null() {
            return None;
        }
        // SAFETY: the offset is below `ALIGN`, and there are `ALIGN` bytes more than `len`.
        let start = unsafe { allocation.add(allocation.align_offset(ALIGN)) };
        Some(Region { start, len, owner: Owner::Ours { allocation, layout } })
    }

    /// Host bytes in place.
    pub(crate) fn imported(bytes: HostBytes) -> Region {
        let slice = (*bytes).as_ref();
        Region { start: slice.as_ptr().cast_mut(), len: slice.len(), owner: Owner::Host(bytes) }
    }

    /// Address of the first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Size in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len as u64
    }

    /// Whether nobody may write to it.
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self.owner, Owner::Host(_))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Owner::Ours { allocation, layout } = self.owner {
            // SAFETY: allocated in `zeroed` with this very layout.
            unsafe { System.dealloc(allocation, layout) }
        }
    }
}
