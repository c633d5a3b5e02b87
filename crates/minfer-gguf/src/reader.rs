//! The one bounded reader. Takes bytes, all of a file or its start, gives integers
//! and slices, or says how many bytes are missing. Allocates nothing; must not know what the bytes mean.

use crate::error::{GgufError, Place};

/// A cursor that cannot leave its bytes.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    /// Bytes there would be if all of the file were here.
    whole_bytes: u64,
    pos: usize,
}

/// The bytes end too early: `needs` is where the read would have ended, saturated. Within `has` it is only where not all of
/// the file is here.
pub(crate) struct Short {
    /// Bytes of the whole file.
    has: u64,
    needs: u64,
}

impl Short {
    /// The error for a read at this place.
    pub(crate) fn at(self, place: Place) -> GgufError {
        GgufError::Truncated { place, has: self.has, needs: self.needs }
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader::of_start(bytes, bytes.len() as u64)
    }

    /// Reads the first bytes of a file of `whole_bytes`.
    pub(crate) fn of_start(bytes: &'a [u8], whole_bytes: u64) -> Reader<'a> {
        Reader { bytes, whole_bytes, pos: 0 }
    }

    /// Bytes consumed so far.
    pub(crate) fn pos(&self) -> usize {
        self.pos
    }

    /// Bytes of the whole file not yet consumed.
    pub(crate) fn remaining(&self) -> u64 {
        self.whole_bytes.saturating_sub(self.pos as u64)
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: u64) -> Result<&'a [u8], Short> {
        let short = || Short { has: self.whole_bytes, needs: (self.pos as u64).saturating_add(len) };
        let len = usize::try_from(len).map_err(|_| short())?;
        let end = self.pos.checked_add(len).ok_or_else(short)?;
        let taken = self.bytes.get(self.pos..end).ok_or_else(short)?;
        self.pos = end;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let short = Short { has: self.whole_bytes, needs: (self.pos as u64).saturating_add(N as u64) };
        let taken = self.take(N as u64)?;
        taken.try_into().map_err(|_| short)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Short> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_le_bytes)
    }

    /// A 64-bit length and that many bytes.
    pub(crate) fn string(&mut self) -> Result<&'a [u8], Short> {
        let len = self.u64()?;
        self.take(len)
    }

    /// Refuses a count of items that the remaining bytes cannot hold, each item
    /// taking at least `least_bytes`.
    pub(crate) fn check_count(
        &self,
        count: u64,
        least_bytes: u64,
        place: impl FnOnce() -> Place,
    ) -> Result<(), GgufError> {
        let remaining = self.remaining();
        let most = remaining / least_bytes.max(1);
        if count > most {
            return Err(GgufError::Count { place: place(), count, most, remaining });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stay_inside() {
        let mut reader = Reader::new(&[1, 0, 0, 0, 9]);
        assert_eq!(reader.u32().ok(), Some(1));
        assert!(reader.u32().is_err());
        assert_eq!(reader.pos(), 4, "a failed read consumes nothing");
        assert!(reader.take(u64::MAX).is_err());
        assert_eq!(reader.u8().ok(), Some(9));
        assert_eq!(reader.remaining(), 0);
        assert!(reader.check_count(1, 1, || Place::Header).is_err());
        assert!(reader.check_count(0, 0, || Place::Header).is_ok());
    }

    #[test]
    fn a_start_is_held_against_the_whole() {
        let mut reader = Reader::of_start(&[7, 8], 10);
        assert_eq!(reader.u8().ok(), Some(7));
        assert_eq!(reader.remaining(), 9);
        assert!(reader.check_count(9, 1, || Place::Header).is_ok());
        assert!(matches!(reader.check_count(10, 1, || Place::Header), Err(GgufError::Count { most: 9, .. })));
        for (len, needs) in [(2, 3), (9, 10), (10, 11)] {
            let error = reader.take(len).err().map(|short| short.at(Place::Header));
            assert!(matches!(error, Some(GgufError::Truncated { has: 10, needs: n, .. }) if n == needs), "{error:?}");
        }
    }
}
