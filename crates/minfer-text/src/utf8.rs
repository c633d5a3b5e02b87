//! Characters of bytes that may not be UTF-8: takes bytes, gives the first or the last character. Must not know what they
//! mean.

/// The first character and its length; `None` and 1 for a byte that starts none; `None` and 0 at the end.
#[inline]
pub(crate) fn first_char(rest: &[u8]) -> (Option<char>, usize) {
    let Some(&first) = rest.first() else {
        return (None, 0);
    };
    let len = match first {
        0..=0x7f => return (Some(char::from(first)), 1),
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return (None, 1),
    };
    let c = rest.get(..len).and_then(|bytes| std::str::from_utf8(bytes).ok()).and_then(|text| text.chars().next());
    (c, if c.is_some() { len } else { 1 })
}

/// Length of the white space that `text` begins with.
pub(crate) fn leading_space(text: &[u8]) -> usize {
    let mut len = 0;
    while let (Some(c), char_len) = first_char(&text[len..])
        && c.is_whitespace()
    {
        len += char_len;
    }
    len
}

/// `text` without white space at its end.
pub(crate) fn trim_end(mut text: &[u8]) -> &[u8] {
    loop {
        let starts = (1..=text.len().min(4)).map(|len| text.len() - len);
        let is_space = |&start: &usize| match first_char(&text[start..]) {
            (Some(c), len) => c.is_whitespace() && start + len == text.len(),
            _ => false,
        };
        match starts.into_iter().find(is_space) {
            Some(start) => text = &text[..start],
            None => return text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_stray_bytes() {
        assert_eq!(first_char("é".as_bytes()), (Some('é'), 2));
        assert_eq!(first_char(b"\xc3x"), (None, 1));
        assert_eq!(first_char(b"\xa9"), (None, 1));
        assert_eq!(first_char(b"\xe0\x80\x80"), (None, 1));
        assert_eq!(first_char(b""), (None, 0));
    }

    #[test]
    fn white_space_at_either_end() {
        assert_eq!(leading_space("\u{3000} \n\u{a0}a ".as_bytes()), 7);
        assert_eq!(leading_space(b"\xe3\x80"), 0);
        assert_eq!(trim_end(" a\u{3000} \n\u{a0}".as_bytes()), b" a");
        assert_eq!(trim_end(b"a\xa0 "), b"a\xa0");
        assert_eq!(trim_end(b" "), b"");
    }
}
