//! The byte map of byte-level BPE: 256 bytes ↔ 256 printable characters.
//!
//! The rule (GPT-2): the bytes `!`..`~`, `¡`..`¬` and `®`..`ÿ` are the character of the
//! same number; the other 68, in order, are the characters from U+0100 on.

/// Number of the first character that stands for a byte with no character of its own.
const FIRST_MOVED: u32 = 0x100;

const fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)
}

/// The bytes that are moved to U+0100 and up, in order.
const MOVED: [u8; 68] = {
    let mut moved = [0; 68];
    let (mut byte, mut n) = (0u32, 0);
    while byte < 256 {
        if !is_printable(byte as u8) {
            moved[n] = byte as u8;
            n += 1;
        }
        byte += 1;
    }
    moved
};

/// The byte that a character of a token stands for.
pub(crate) fn byte_of(spelled: char) -> Option<u8> {
    let number = spelled as u32;
    match u8::try_from(number) {
        Ok(byte) => is_printable(byte).then_some(byte),
        Err(_) => MOVED.get((number - FIRST_MOVED) as usize).copied(),
    }
}

/// Appends the bytes that a spelled token stands for. `false`, and `out` as it was, when
/// the spelling is not of this map.
pub(crate) fn unspell(spelled: &[u8], out: &mut Vec<u8>) -> bool {
    let before = out.len();
    let Ok(spelled) = std::str::from_utf8(spelled) else {
        return false;
    };
    for spelled in spelled.chars() {
        match byte_of(spelled) {
            Some(byte) => out.push(byte),
            None => {
                out.truncate(before);
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
pub(crate) fn char_of(byte: u8) -> char {
    match MOVED.iter().position(|&moved| moved == byte) {
        Some(n) => char::from_u32(FIRST_MOVED + n as u32).unwrap(),
        None => byte as char,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_map_is_a_bijection() {
        for byte in 0..=255 {
            assert_eq!(byte_of(char_of(byte)), Some(byte));
        }
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
        assert_eq!(byte_of(' '), None);
        assert_eq!(byte_of('\u{ad}'), None);
        assert_eq!(byte_of('\u{144}'), None);
        assert_eq!(byte_of('界'), None);
    }
}
