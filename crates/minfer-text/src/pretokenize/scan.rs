//! The scanners: each takes the rest of a text and gives the length of its next piece. Must not know which model uses it.
//!
//! A pattern is a list of alternatives, tried in order at each position as a regular-expression engine does; the docs
//! give the expression each stands for. All are linear: none backtracks over more than the run it has just read.

use super::class::{Ranges, Set, first, is_in};
use crate::utf8::first_char;

/// One way to cut a text.
#[derive(Debug)]
pub(super) enum Pass {
    /// Pieces are what the first alternative that matches takes, and all text between two matches.
    Match(&'static [Alternative]),
    /// Runs of the set in threes, counted from their right end; all text between two runs is a piece.
    ThreesFromTheRight { set: Set, edges: Edges },
    /// White space without line ends in powers of two of at most 512, the largest first.
    SpacesInPowersOfTwo,
}

/// Where a run that is cut in threes may stand, and whether it is cut from the text around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edges {
    /// Cut from the text on both sides: `\d+`, then `\G(?=(\d{3})+$)`.
    Cut,
    /// Only runs that no letter, mark, number or connector follows: `\d{1,3}(?=(?:\d{3})*\b)`.
    CutAtWordEnd,
    /// Not cut but before a three: `(?=(\d{3})+(?!\d))`.
    Joined,
}

/// A part of a pattern between two `|`.
#[derive(Debug)]
pub(super) enum Alternative {
    /// `'s|'t|'re|'ve|'m|'ll|'d`
    Contraction { ignore_case: bool },
    /// `before?body{min,max}after{0,max_after}`
    Run(Run),
    /// `first[A-Za-z]+` and the like: both parts must be there.
    Pair { first: Set, body: Set },
    /// `before?[ranges]+`
    Ranges { before: Set, ranges: Ranges },
    /// `before?[upper]*[lower]+|before?[upper]+[lower]*`, both with a contraction after it if there is one and it is asked for.
    CasedWord { before: Set, upper: Set, lower: Set, contraction: bool },
    /// `before?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+`: words with single spaces between them.
    Phrase { before: Set },
    /// `\s*[\r\n]+`
    LineEnd,
    /// `\s+$`
    SpacesAtEnd,
    /// `\s+(?!\S)|\s+`: a run of white space, but its last character is left to the word that follows.
    Spaces,
}

/// `before?body{min,max}after{0,max_after}`; an empty set is a part that is not there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) before: Set,
    pub(super) body: Set,
    pub(super) min: usize,
    pub(super) max: usize,
    pub(super) after: Set,
    pub(super) max_after: usize,
}

impl Run {
    /// `body+`
    pub(super) const fn of(body: Set) -> Self {
        Self { before: Set::NONE, body, min: 1, max: usize::MAX, after: Set::NONE, max_after: usize::MAX }
    }
}

impl Pass {
    /// Calls `word` with each piece of `text`, in order; the pieces are the whole text.
    pub(super) fn split<'a>(&self, text: &'a [u8], word: &mut dyn FnMut(&'a [u8])) {
        match *self {
            Self::Match(alternatives) => split_matches(alternatives, text, word),
            Self::ThreesFromTheRight { set, edges } => split_threes(set, edges, text, word),
            Self::SpacesInPowersOfTwo => split_spaces(text, word),
        }
    }
}

fn split_matches<'a>(alternatives: &[Alternative], mut text: &'a [u8], word: &mut dyn FnMut(&'a [u8])) {
    let mut gap = 0;
    while gap < text.len() {
        let rest = &text[gap..];
        let (class, class_len) = first(rest);
        match alternatives.iter().find_map(|alternative| alternative.matches(rest, class, class_len)) {
            Some(len) => {
                if gap > 0 {
                    word(&text[..gap]);
                }
                word(&rest[..len]);
                text = &rest[len..];
                gap = 0;
            }
            None => gap += class_len,
        }
    }
    if gap > 0 {
        word(text);
    }
}

impl Alternative {
    /// Length in bytes of what it takes at the start of `rest`, whose first character is of `class` and `class_len` long.
    #[inline]
    fn matches(&self, rest: &[u8], class: Set, class_len: usize) -> Option<usize> {
        let after_first = &rest[class_len..];
        match *self {
            Self::Contraction { ignore_case } => contraction(rest, ignore_case),
            Self::Run(Run { before, body, min, max, after, max_after }) => {
                let at = |start: usize| {
                    let (len, count) = run_of_at_most(&rest[start..], max, body);
                    (count >= min).then(|| start + len)
                };
                let end = before.has(class).then(|| at(class_len)).flatten();
                let end = end.or_else(|| body.has(class).then(|| at(0)).flatten())?;
                Some(if after == Set::NONE { end } else { end + run_of_at_most(&rest[end..], max_after, after).0 })
            }
            Self::Pair { first, body } => {
                let len = if first.has(class) { run(after_first, body) } else { 0 };
                (len > 0).then_some(class_len + len)
            }
            Self::Ranges { before, ranges } => {
                let at = |start: usize| Some(range_run(&rest[start..], ranges)).filter(|&len| len > 0);
                let len = before.has(class).then(|| at(class_len)).flatten().map(|len| class_len + len);
                len.or_else(|| at(0))
            }
            Self::CasedWord { before, upper, lower, contraction: with_contraction } => {
                // The first expression is tried with and without the character before it, then the second.
                let either = |find: fn(&[u8], Set, Set) -> Option<usize>| {
                    let at = |start: usize| Some(start + find(&rest[start..], upper, lower)?);
                    before.has(class).then(|| at(class_len)).flatten().or_else(|| at(0))
                };
                let end = either(lower_ended).or_else(|| either(upper_started))?;
                let tail = if with_contraction { contraction(&rest[end..], true) } else { None };
                Some(end + tail.unwrap_or(0))
            }
            Self::Phrase { before } => {
                let len = if before.has(class) { phrase(after_first) } else { 0 };
                match len {
                    0 => Some(phrase(rest)).filter(|&len| len > 0),
                    len => Some(class_len + len),
                }
            }
            Self::LineEnd => {
                if !Set::SPACE.has(class) {
                    return None;
                }
                let white = run(rest, Set::SPACE);
                let last = rest[..white].iter().rposition(|byte| matches!(byte, b'\r' | b'\n'))?;
                Some(last + 1)
            }
            Self::SpacesAtEnd => (Set::SPACE.has(class) && run(rest, Set::SPACE) == rest.len()).then_some(rest.len()),
            Self::Spaces => spaces(rest, class),
        }
    }
}

/// `[upper]*[lower]+`
fn lower_ended(rest: &[u8], upper: Set, lower: Set) -> Option<usize> {
    let (mut len, mut last_both) = (0, None);
    while let (class, class_len) = first(&rest[len..])
        && upper.has(class)
    {
        len += class_len;
        if lower.has(class) {
            last_both = Some(len);
        }
    }
    match run(&rest[len..], lower) {
        // The first part gives back up to a character that the second takes as well.
        0 => last_both,
        lower_len => Some(len + lower_len),
    }
}

/// `[upper]+[lower]*`, where nothing begins with `[upper]*[lower]+`.
fn upper_started(rest: &[u8], upper: Set, _lower: Set) -> Option<usize> {
    Some(run(rest, upper)).filter(|&len| len > 0)
}

fn phrase(rest: &[u8]) -> usize {
    let word = |rest: &[u8]| match first(rest) {
        (class, len) if Set::LETTER.has(class) => len + run(&rest[len..], Set::MARK),
        _ => 0,
    };
    let mut len = 0;
    loop {
        let space = usize::from(len > 0 && rest.get(len) == Some(&b' '));
        match word(&rest[len + space..]) {
            0 => return len,
            word_len => len += space + word_len,
        }
    }
}

fn spaces(rest: &[u8], class: Set) -> Option<usize> {
    if !Set::SPACE.has(class) {
        return None;
    }
    let (mut len, mut last) = (0, 0);
    while let (class, class_len) = first(&rest[len..])
        && Set::SPACE.has(class)
    {
        len += class_len;
        last = class_len;
    }
    Some(if len == rest.len() || len == last { len } else { len - last })
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

fn split_threes<'a>(set: Set, edges: Edges, text: &'a [u8], word: &mut dyn FnMut(&'a [u8])) {
    // Letters, marks, numbers and connectors (of which only `_` is looked at) make words.
    let is_word =
        |rest: &[u8]| rest.first() == Some(&b'_') || Set::LETTER.or(Set::MARK).or(Set::NUMBER).has(first(rest).0);
    let mut start = 0;
    let mut cut = |at: usize| {
        if at > start {
            word(&text[start..at]);
            start = at;
        }
    };
    let mut at = 0;
    while at < text.len() {
        let (len, count) = run_of_at_most(&text[at..], usize::MAX, set);
        let end = at + len;
        if count == 0 {
            at += first(&text[at..]).1;
            continue;
        }
        if edges != Edges::CutAtWordEnd || !is_word(&text[end..]) {
            let is_cut = edges != Edges::Joined;
            if is_cut {
                cut(at);
            }
            let mut three = at + run_of_at_most(&text[at..], count % 3, set).0;
            while three < end {
                cut(three);
                three += run_of_at_most(&text[three..], 3, set).0;
            }
            if is_cut {
                cut(end);
            }
        }
        at = end;
    }
    cut(text.len());
}

fn split_spaces<'a>(text: &'a [u8], word: &mut dyn FnMut(&'a [u8])) {
    let (len, mut count) = run_of_at_most(text, usize::MAX, Set::SPACE.without(Set::NEWLINE));
    if len < text.len() || text.is_empty() {
        return word(text);
    }
    let mut rest = text;
    while count > 0 {
        let take = (1 << count.ilog2()).min(512);
        let (piece, after) = rest.split_at(run_of_at_most(rest, take, Set::SPACE).0);
        word(piece);
        rest = after;
        count -= take;
    }
}

fn range_run(rest: &[u8], ranges: Ranges) -> usize {
    let mut len = 0;
    while let (Some(c), char_len) = first_char(&rest[len..])
        && is_in(c, ranges)
    {
        len += char_len;
    }
    len
}

/// Length in bytes of the longest run in the set.
#[inline]
fn run(rest: &[u8], set: Set) -> usize {
    run_of_at_most(rest, usize::MAX, set).0
}

/// Length in bytes, and in characters, of the longest run of at most `max` characters in the set.
#[inline]
fn run_of_at_most(rest: &[u8], max: usize, set: Set) -> (usize, usize) {
    let (mut len, mut count) = (0, 0);
    while count < max
        && let (class, class_len) = first(&rest[len..])
        && set.has(class)
    {
        len += class_len;
        count += 1;
    }
    (len, count)
}
