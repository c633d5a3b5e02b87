//! Text inside markup. Takes strings and numbers; gives what may stand in XML, in HTML or in a script; must not know
//! what they mean.

/// Characters of a name that are shown before it is cut.
const LONGEST_NAME: usize = 120;

/// Text that is safe in XML and HTML, as content and inside quoted attributes. White space becomes a space; other control
/// characters, and what XML 1.0 does not allow (production 2, `Char`), become the replacement character.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A name of bounded length, escaped.
pub(super) fn name(text: &str) -> String {
    escape(&cut(text, LONGEST_NAME))
}

/// At most `longest` characters.
pub(super) fn cut(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_string();
    }
    text.chars().take(longest.saturating_sub(1)).chain(['…']).collect()
}

/// JSON that may stand inside a `script` element: nothing in it can end the element or open a comment.
pub(super) fn for_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Bytes with three digits or so: `1.25 MiB`.
pub(super) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 100.0 { 0 } else { 2 - usize::from(value >= 10.0) };
    let number = format!("{value:.digits$}");
    let number = if digits > 0 { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number} {}", UNITS[unit])
}

/// A count with its thousands apart: `1 048 576`, with narrow no-break spaces.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Width of text of this size, in the same unit; an average over the letters of a sans-serif font.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.58
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_well() {
        for (n, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (362_496, "354 KiB"),
            (98 << 20, "98 MiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(bytes(n), text);
        }
        assert_eq!(grouped(1_048_576), "1\u{202f}048\u{202f}576");
        assert_eq!(grouped(12), "12");
    }

    #[test]
    fn nothing_breaks_out() {
        assert_eq!(escape("a<b>\"'&\u{0}\u{9b}\n"), "a&lt;b&gt;&quot;&#39;&amp;\u{fffd}\u{fffd} ");
        assert_eq!(for_script("\"</script><!--&\""), "\"\\u003c/script\\u003e\\u003c!--\\u0026\"");
        assert_eq!(name(&"ä".repeat(200)).chars().count(), LONGEST_NAME);
        assert_eq!(cut("", 0), "");
    }
}
