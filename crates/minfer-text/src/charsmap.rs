//! SentencePiece's normalisation: takes the `precompiled_charsmap` of a model and text, gives the text with its characters
//! replaced. Must not know tokens.
//!
//! The table is a length in 4 bytes, a double-array trie of that many bytes, and replacements that each end with a zero
//! byte. A unit of the trie is 32 bits: bit 8 says that a key ends here, bits 10 to 30 (with bit 9: times 256) are the
//! offset to its children, bits 0 to 7 with bit 31 its label; of a leaf, bits 0 to 30 are where the replacement starts
//! (Darts-clone, as SentencePiece writes it).

use crate::TextError;

/// Longer keys are not looked for; those of published models have at most 20 bytes.
const MAX_KEY_BYTES: usize = 64;
const HEADER_BYTES: usize = 4;

/// A table of replacements.
pub(crate) struct CharsMap {
    units: Vec<u32>,
    replacements: Vec<u8>,
}

impl CharsMap {
    /// No bytes are a table that replaces nothing.
    pub(crate) fn new(table: &[u8]) -> Result<Self, TextError> {
        if table.is_empty() {
            return Ok(Self { units: Vec::new(), replacements: Vec::new() });
        }
        let short = |expected: u64| TextError::CharsMap { expected, got: table.len() as u64 };
        let (header, rest) = table.split_first_chunk::<HEADER_BYTES>().ok_or_else(|| short(HEADER_BYTES as u64))?;
        let trie_bytes = u32::from_le_bytes(*header);
        let (trie, replacements) = usize::try_from(trie_bytes)
            .ok()
            .and_then(|len| rest.split_at_checked(len))
            .ok_or_else(|| short(HEADER_BYTES as u64 + u64::from(trie_bytes)))?;
        let (units, _) = trie.as_chunks::<4>();
        let units = units.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
        Ok(Self { units, replacements: replacements.to_vec() })
    }

    /// What the longest key at the start of `text` becomes, and the key's length. References of a damaged table lead nowhere.
    pub(crate) fn replace(&self, text: &[u8]) -> Option<(&[u8], usize)> {
        let unit = |at: u32| self.units.get(at as usize).copied();
        let offset = |unit: u32| (unit >> 10) << ((unit & 1 << 9) >> 6);
        let mut at = offset(unit(0)?);
        let mut found = None;
        for (key_len, &byte) in (1..=MAX_KEY_BYTES).zip(text) {
            at ^= u32::from(byte);
            let Some(node) = unit(at).filter(|node| node & (1 << 31 | 0xff) == u32::from(byte)) else {
                break;
            };
            at ^= offset(node);
            if node >> 8 & 1 == 1 {
                found = unit(at).map(|leaf| ((leaf & 0x7fff_ffff) as usize, key_len));
            }
        }
        let (start, key_len) = found?;
        let replacement = self.replacements.get(start..)?;
        let end = replacement.iter().position(|&byte| byte == 0)?;
        Some((&replacement[..end], key_len))
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.units.capacity() * size_of::<u32>() + self.replacements.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trie with the one key `A`, which becomes `a`.
    fn table() -> Vec<u8> {
        let mut units = vec![0u32; 256];
        // The root's children lie at their label xor 128; the child has a leaf at its own place xor 1.
        units[0] = 128 << 10;
        let child = 128 ^ usize::from(b'A');
        units[child] = 1 << 10 | 1 << 8 | u32::from(b'A');
        units[child ^ 1] = 1 << 31;
        let mut table = (units.len() as u32 * 4).to_le_bytes().to_vec();
        table.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        table.extend(b"a\0");
        table
    }

    #[test]
    fn keys_are_replaced() {
        let map = CharsMap::new(&table()).unwrap();
        assert_eq!(map.replace(b"Abc"), Some((&b"a"[..], 1)));
        assert_eq!(map.replace(b"b"), None);
        assert_eq!(map.replace(b""), None);
        assert_eq!(CharsMap::new(b"").unwrap().replace(b"A"), None);
    }

    #[test]
    fn damaged_tables_are_refused_or_replace_nothing() {
        let whole = table();
        assert_eq!(CharsMap::new(&whole[..3]).err(), Some(TextError::CharsMap { expected: 4, got: 3 }));
        assert_eq!(CharsMap::new(&whole[..100]).err(), Some(TextError::CharsMap { expected: 1028, got: 100 }));
        let unended = CharsMap::new(&whole[..whole.len() - 1]).unwrap();
        assert_eq!(unended.replace(b"A"), None);
        let mut wild = whole;
        wild[4..].fill(0xff);
        assert_eq!(CharsMap::new(&wild).unwrap().replace(b"A"), None);
    }
}
