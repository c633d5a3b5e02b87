//! The scanners: each takes the rest of a text and gives the length of its next piece.
//! Must not know which model uses it.
//!
//! The patterns in the docs are the published ones; `L`, `N`, `P` are Unicode general
//! categories and `\s` is White_Space.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// One way to cut a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    Gpt2,
    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,max_digits}|`
    /// ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`, where `L` may include the marks `M`.
    Cl100k { max_digits: usize, marks_are_letters: bool },
    /// `\p{N}`
    EachNumber,
    /// `\p{N}+`
    NumberRuns,
    /// `[0-9][0-9][0-9]`
    AsciiDigitTriples,
    /// `[\p{P}\$\+<=>\^~\|]+`, where the set may include the backtick.
    PunctuationRuns { backtick: bool },
    /// `[\r\n]`
    EachNewline,
    /// `\s?\p{L}+`
    SpacedLetters,
    /// `\s?\p{P}+`
    SpacedPunctuation,
    /// `[一-龥ࠀ-一가-퟿]+`
    CjkRuns,
}

/// What the patterns tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Number,
    Space,
    /// Everything else, bytes outside UTF-8 included.
    Symbol,
}

impl Pass {
    /// Length in bytes of the next piece; not zero unless `rest` is empty. Text between two
    /// matches of the pattern is a piece too.
    pub(super) fn next_len(self, rest: &[u8]) -> usize {
        match self {
            Self::Gpt2 => gpt2(rest),
            Self::Cl100k { max_digits, marks_are_letters } => cl100k(rest, max_digits, marks_are_letters),
            Self::EachNumber => each(rest, |class, _| class == Class::Number),
            Self::EachNewline => each(rest, is_newline),
            Self::SpacedLetters => spaced_run(rest, |class, _| class == Class::Letter),
            Self::SpacedPunctuation => spaced_run(rest, |_, c| c.is_some_and(is_punctuation)),
            Self::CjkRuns => {
                either_run(rest, |_, c| matches!(c, Some('\u{800}'..='\u{9fa5}' | '\u{ac00}'..='\u{d7ff}')))
            }
            Self::NumberRuns => either_run(rest, |class, _| class == Class::Number),
            Self::AsciiDigitTriples => {
                let digits = |window: &[u8]| window.iter().all(u8::is_ascii_digit);
                match rest.windows(3).position(digits) {
                    Some(0) => 3,
                    Some(gap) => gap,
                    None => rest.len(),
                }
            }
            Self::PunctuationRuns { backtick } => either_run(rest, |_, c| {
                c.is_some_and(|c| is_punctuation(c) || is_ascii_math(c) || backtick && c == '`')
            }),
        }
    }
}

fn gpt2(rest: &[u8]) -> usize {
    if let Some(len) = contraction(rest, false) {
        return len;
    }
    let space = usize::from(rest.first() == Some(&b' '));
    let body = &rest[space..];
    match class(body) {
        Some(wanted) if wanted != Class::Space => space + run(body, |class, _| class == wanted),
        _ => whitespace(rest),
    }
}

fn cl100k(rest: &[u8], max_digits: usize, marks_are_letters: bool) -> usize {
    if let Some(len) = contraction(rest, true) {
        return len;
    }
    let class = |class: Class, c: Option<char>| match c {
        Some(c) if marks_are_letters && class == Class::Symbol && is_mark(c) => Class::Letter,
        _ => class,
    };
    let is_letter = |of, c| class(of, c) == Class::Letter;
    let (first, first_len) = decode(rest);
    match class(class_of(first), first) {
        Class::Letter => return run(rest, is_letter),
        Class::Number => {
            return run_of_at_most(rest, max_digits, |class, _| class == Class::Number);
        }
        Class::Space | Class::Symbol if !is_newline(Class::Space, first) => {
            let letters = run(&rest[first_len..], is_letter);
            if letters > 0 {
                return first_len + letters;
            }
        }
        _ => {}
    }
    let space = usize::from(first == Some(' '));
    let symbols = run(&rest[space..], |of, c| class(of, c) == Class::Symbol);
    if symbols > 0 {
        let len = space + symbols;
        return len + run(&rest[len..], is_newline);
    }
    // `\s*[\r\n]+` takes the white space up to its last line end.
    let white = run(rest, |class, _| class == Class::Space);
    match rest[..white].iter().rposition(|b| matches!(b, b'\r' | b'\n')) {
        Some(last) => last + 1,
        None => whitespace(rest),
    }
}

/// `\s+(?!\S)|\s+`: a run of white space, but the last one is left to the word that follows.
/// Everything else that no pattern takes is one character.
fn whitespace(rest: &[u8]) -> usize {
    let (mut len, mut last) = (0, 0);
    while let (c, n @ 1..) = decode(&rest[len..])
        && class_of(c) == Class::Space
    {
        len += n;
        last = n;
    }
    match len {
        0 => decode(rest).1,
        _ if len == rest.len() || len == last => len,
        _ => len - last,
    }
}

/// `'s|'t|'re|'ve|'m|'ll|'d`. Ignoring case, U+017F (ſ) folds to `s`.
fn contraction(rest: &[u8], ignore_case: bool) -> Option<usize> {
    let (&b'\'', tail) = rest.split_first()? else {
        return None;
    };
    if ignore_case && tail.starts_with("ſ".as_bytes()) {
        return Some(1 + "ſ".len());
    }
    let letter = |at: usize| {
        let byte = tail.get(at).copied().unwrap_or(0);
        if ignore_case { byte.to_ascii_lowercase() } else { byte }
    };
    match (letter(0), letter(1)) {
        (b's' | b't' | b'm' | b'd', _) => Some(2),
        (b'r' | b'v', b'e') | (b'l', b'l') => Some(3),
        _ => None,
    }
}

/// One character of the set, or all before the next one.
fn each(rest: &[u8], is_in: impl Fn(Class, Option<char>) -> bool) -> usize {
    match run(rest, |class, c| !is_in(class, c)) {
        0 => decode(rest).1,
        gap => gap,
    }
}

/// A run in the set with one white space before it if there is one, or all before the next.
fn spaced_run(rest: &[u8], is_in: impl Fn(Class, Option<char>) -> bool) -> usize {
    let mut gap = 0;
    while let (c, n @ 1..) = decode(&rest[gap..]) {
        let start = if class_of(c) == Class::Space { gap + n } else { gap };
        match run(&rest[start..], &is_in) {
            0 => gap += n,
            len if gap == 0 => return start + len,
            _ => return gap,
        }
    }
    gap
}

/// The run at the start of `rest` that is wholly in or wholly out of the set.
fn either_run(rest: &[u8], is_in: impl Fn(Class, Option<char>) -> bool) -> usize {
    match run(rest, &is_in) {
        0 => run(rest, |class, c| !is_in(class, c)),
        len => len,
    }
}

fn run(rest: &[u8], is_in: impl Fn(Class, Option<char>) -> bool) -> usize {
    run_of_at_most(rest, usize::MAX, is_in)
}

/// Length in bytes of the longest run of at most `max` characters in the set.
#[inline]
fn run_of_at_most(rest: &[u8], max: usize, is_in: impl Fn(Class, Option<char>) -> bool) -> usize {
    let (mut len, mut count) = (0, 0);
    while count < max
        && let (c, n @ 1..) = decode(&rest[len..])
        && is_in(class_of(c), c)
    {
        len += n;
        count += 1;
    }
    len
}

fn class(rest: &[u8]) -> Option<Class> {
    (!rest.is_empty()).then(|| class_of(decode(rest).0))
}

/// The first character and its length; `None` and 1 for a byte that starts none; `None` and
/// 0 at the end.
#[inline]
fn decode(rest: &[u8]) -> (Option<char>, usize) {
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

#[inline]
fn class_of(c: Option<char>) -> Class {
    let Some(c) = c else { return Class::Symbol };
    match c {
        'a'..='z' | 'A'..='Z' => Class::Letter,
        '0'..='9' => Class::Number,
        _ if c.is_whitespace() => Class::Space,
        '\0'..='\x7f' => Class::Symbol,
        _ => match c.general_category_group() {
            GeneralCategoryGroup::Letter => Class::Letter,
            GeneralCategoryGroup::Number => Class::Number,
            _ => Class::Symbol,
        },
    }
}

fn is_newline(_: Class, c: Option<char>) -> bool {
    matches!(c, Some('\r' | '\n'))
}

fn is_mark(c: char) -> bool {
    !c.is_ascii() && c.general_category_group() == GeneralCategoryGroup::Mark
}

fn is_punctuation(c: char) -> bool {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' => false,
        _ => c.general_category_group() == GeneralCategoryGroup::Punctuation,
    }
}

fn is_ascii_math(c: char) -> bool {
    matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '~' | '|')
}
