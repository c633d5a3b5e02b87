//! What kind of character a position holds: takes bytes, gives one class for each character, and sets of classes. Must
//! not know any pattern.
//!
//! `L`, `M`, `N`, `P`, `S` are Unicode general categories and `\s` is White_Space, as in the published patterns.

use crate::utf8::first_char;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// A set of classes; a character is in exactly one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Set(u32);

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident)*) => { classes!(@ 0; $($(#[$doc])* $name)*); };
    (@ $at:expr; $(#[$doc:meta])* $name:ident $($rest:tt)*) => {
        $(#[$doc])*
        pub(super) const $name: Set = Set(1 << ($at));
        classes!(@ $at + 1; $($rest)*);
    };
    (@ $at:expr;) => {};
}

impl Set {
    /// Nothing: an optional part of a pattern that is not there.
    pub(super) const NONE: Set = Set(0);
    classes! {
        /// `A` to `Z`.
        UPPER_ASCII
        /// `a` to `z`.
        LOWER_ASCII
        /// `Lu`, `Lt` outside ASCII.
        UPPER_WIDE
        /// `Ll` outside ASCII.
        LOWER_WIDE
        /// `Lm`, `Lo` that are not Han.
        CASELESS
        /// `L` of the script Han.
        HAN_LETTER
        /// `M`.
        MARK
        /// `0` to `9`.
        DIGIT_ASCII
        /// `Nd` outside ASCII.
        DIGIT_WIDE
        /// `Nl`, `No` that are not Han.
        NUMBER_OTHER
        /// `N` of the script Han.
        HAN_NUMBER
        /// `/`.
        SLASH
        /// `` ` ``.
        BACKTICK
        /// `P` in ASCII but `/`.
        PUNCTUATION_ASCII
        /// `S` in ASCII but `` ` ``.
        SYMBOL_ASCII
        /// `P` outside ASCII.
        PUNCTUATION_WIDE
        /// `S` outside ASCII that are not Han.
        SYMBOL_WIDE
        /// `S` and `P` of the script Han.
        HAN_SYMBOL
        /// A plain space.
        BLANK
        /// Line feed.
        LINE_FEED
        /// Carriage return.
        CARRIAGE_RETURN
        /// All other white space.
        SPACE_OTHER
        /// Everything else: controls, unassigned characters, bytes outside UTF-8.
        OTHER
    }

    /// `[\r\n]`
    pub(super) const NEWLINE: Set = Self::LINE_FEED.or(Self::CARRIAGE_RETURN);
    /// `\s`
    pub(super) const SPACE: Set = Self::NEWLINE.or(Self::BLANK).or(Self::SPACE_OTHER);
    /// `[A-Za-z]`
    pub(super) const LETTER_ASCII: Set = Self::UPPER_ASCII.or(Self::LOWER_ASCII);
    /// `\p{L}`
    pub(super) const LETTER: Set =
        Self::LETTER_ASCII.or(Self::UPPER_WIDE).or(Self::LOWER_WIDE).or(Self::CASELESS).or(Self::HAN_LETTER);
    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
    pub(super) const UPPER: Set =
        Self::UPPER_ASCII.or(Self::UPPER_WIDE).or(Self::CASELESS).or(Self::HAN_LETTER).or(Self::MARK);
    /// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
    pub(super) const LOWER: Set =
        Self::LOWER_ASCII.or(Self::LOWER_WIDE).or(Self::CASELESS).or(Self::HAN_LETTER).or(Self::MARK);
    /// `\p{Han}`
    pub(super) const HAN: Set = Self::HAN_LETTER.or(Self::HAN_NUMBER).or(Self::HAN_SYMBOL);
    /// `\d`, which is `\p{Nd}`
    pub(super) const DIGIT: Set = Self::DIGIT_ASCII.or(Self::DIGIT_WIDE);
    /// `\p{N}`
    pub(super) const NUMBER: Set = Self::DIGIT.or(Self::NUMBER_OTHER).or(Self::HAN_NUMBER);
    /// `` [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~] ``
    pub(super) const SIGN_ASCII: Set =
        Self::SLASH.or(Self::BACKTICK).or(Self::PUNCTUATION_ASCII).or(Self::SYMBOL_ASCII);
    /// `\p{P}`
    pub(super) const PUNCTUATION: Set = Self::SLASH.or(Self::PUNCTUATION_ASCII).or(Self::PUNCTUATION_WIDE);
    /// `[\p{P}\p{S}]`
    pub(super) const SIGN: Set = Self::SIGN_ASCII.or(Self::PUNCTUATION_WIDE).or(Self::SYMBOL_WIDE).or(Self::HAN_SYMBOL);

    /// Either.
    pub(super) const fn or(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    /// The first but not the second.
    pub(super) const fn without(self, other: Set) -> Set {
        Set(self.0 & !other.0)
    }

    /// All characters that are not in the set.
    pub(super) const fn not(self) -> Set {
        Set(!self.0)
    }

    /// Whether the sets meet; for a class, whether it is in the set.
    #[inline]
    pub(super) const fn has(self, class: Set) -> bool {
        self.0 & class.0 != 0
    }
}

const ASCII: [Set; 128] = {
    let mut classes = [Set::OTHER; 128];
    let mut byte = 0;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'A'..=b'Z' => Set::UPPER_ASCII,
            b'a'..=b'z' => Set::LOWER_ASCII,
            b'0'..=b'9' => Set::DIGIT_ASCII,
            b' ' => Set::BLANK,
            b'\n' => Set::LINE_FEED,
            b'\r' => Set::CARRIAGE_RETURN,
            b'\t' | 0x0b | 0x0c => Set::SPACE_OTHER,
            b'/' => Set::SLASH,
            b'`' => Set::BACKTICK,
            b'$' | b'+' | b'<' | b'=' | b'>' | b'^' | b'|' | b'~' => Set::SYMBOL_ASCII,
            b'!'..=b'~' => Set::PUNCTUATION_ASCII,
            _ => Set::OTHER,
        };
        byte += 1;
    }
    classes
};

/// The class of the first character and its length; a byte that starts no character is [`Set::OTHER`] and 1 long; no
/// class and 0 at the end.
#[inline]
pub(super) fn first(rest: &[u8]) -> (Set, usize) {
    match rest.first() {
        None => (Set::NONE, 0),
        Some(&byte) if byte < 128 => (ASCII[usize::from(byte)], 1),
        Some(_) => {
            let (c, len) = first_char(rest);
            (c.map_or(Set::OTHER, wide_class), len)
        }
    }
}

fn wide_class(c: char) -> Set {
    use GeneralCategory as G;
    if c.is_whitespace() {
        return Set::SPACE_OTHER;
    }
    match c.general_category() {
        G::UppercaseLetter | G::TitlecaseLetter => Set::UPPER_WIDE,
        G::LowercaseLetter => Set::LOWER_WIDE,
        G::ModifierLetter | G::OtherLetter if is_in(c, HAN) => Set::HAN_LETTER,
        G::ModifierLetter | G::OtherLetter => Set::CASELESS,
        // Two Han marks (U+16FF0 and U+16FF1) are marks here: no pattern tells them apart from letters.
        G::NonspacingMark | G::SpacingMark | G::EnclosingMark => Set::MARK,
        G::DecimalNumber => Set::DIGIT_WIDE,
        G::LetterNumber | G::OtherNumber if is_in(c, HAN) => Set::HAN_NUMBER,
        G::LetterNumber | G::OtherNumber => Set::NUMBER_OTHER,
        G::MathSymbol | G::CurrencySymbol | G::ModifierSymbol | G::OtherSymbol if is_in(c, HAN) => Set::HAN_SYMBOL,
        G::MathSymbol | G::CurrencySymbol | G::ModifierSymbol | G::OtherSymbol => Set::SYMBOL_WIDE,
        G::DashPunctuation
        | G::OpenPunctuation
        | G::ClosePunctuation
        | G::ConnectorPunctuation
        | G::InitialPunctuation
        | G::FinalPunctuation
        | G::OtherPunctuation => Set::PUNCTUATION_WIDE,
        _ => Set::OTHER,
    }
}

/// Characters from the first to the last of each pair, in order.
pub(super) type Ranges = &'static [(char, char)];

/// Whether a character is in one of the ranges.
pub(super) fn is_in(c: char, ranges: Ranges) -> bool {
    let after = ranges.partition_point(|&(start, _)| start <= c);
    after > 0 && c <= ranges[after - 1].1
}

/// The script Han (Unicode 16, `Scripts.txt`).
const HAN: Ranges = &[
    ('\u{2e80}', '\u{2e99}'),
    ('\u{2e9b}', '\u{2ef3}'),
    ('\u{2f00}', '\u{2fd5}'),
    ('\u{3005}', '\u{3005}'),
    ('\u{3007}', '\u{3007}'),
    ('\u{3021}', '\u{3029}'),
    ('\u{3038}', '\u{303b}'),
    ('\u{3400}', '\u{4dbf}'),
    ('\u{4e00}', '\u{9fff}'),
    ('\u{f900}', '\u{fa6d}'),
    ('\u{fa70}', '\u{fad9}'),
    ('\u{16fe2}', '\u{16fe3}'),
    ('\u{16ff0}', '\u{16ff1}'),
    ('\u{20000}', '\u{2a6df}'),
    ('\u{2a700}', '\u{2b739}'),
    ('\u{2b740}', '\u{2b81d}'),
    ('\u{2b820}', '\u{2cea1}'),
    ('\u{2ceb0}', '\u{2ebe0}'),
    ('\u{2ebf0}', '\u{2ee5d}'),
    ('\u{2f800}', '\u{2fa1d}'),
    ('\u{30000}', '\u{3134a}'),
    ('\u{31350}', '\u{323af}'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_in_one_class() {
        for c in (0..=0x10ffff).filter_map(char::from_u32) {
            let mut buffer = [0; 4];
            let (class, len) = first(c.encode_utf8(&mut buffer).as_bytes());
            assert!(class.0.is_power_of_two() && len == c.len_utf8(), "{c:?}");
            assert_eq!(Set::SPACE.has(class), c.is_whitespace(), "{c:?}");
        }
        assert_eq!(first(b"\xe6\xad"), (Set::OTHER, 1));
        assert_eq!(first(b""), (Set::NONE, 0));
    }

    #[test]
    fn sets_are_those_of_the_categories() {
        use unicode_properties::GeneralCategoryGroup as G;
        for c in (0..=0x10ffff).filter_map(char::from_u32).filter(|c| !c.is_whitespace()) {
            let mut buffer = [0; 4];
            let class = first(c.encode_utf8(&mut buffer).as_bytes()).0;
            let group = c.general_category_group();
            for (set, groups) in [
                (Set::LETTER, &[G::Letter][..]),
                (Set::NUMBER, &[G::Number]),
                (Set::MARK, &[G::Mark]),
                (Set::SIGN, &[G::Punctuation, G::Symbol]),
                (Set::OTHER, &[G::Other, G::Separator]),
            ] {
                assert_eq!(set.has(class), groups.contains(&group), "{c:?}");
            }
        }
    }

    #[test]
    fn ranges_are_in_order() {
        assert!(HAN.windows(2).all(|pair| pair[0].1 < pair[1].0));
        assert!(is_in('中', HAN) && is_in('〇', HAN) && !is_in('あ', HAN) && !is_in('a', HAN));
    }
}
