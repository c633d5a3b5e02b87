//! A byte-level BPE vocabulary for tiny models: the 256 bytes, a few merges, filler, control tokens. Takes a size; gives
//! token texts, kinds and merges as GGUF spells them.

/// How many control tokens the vocabulary ends with.
pub const VOCAB_CONTROLS: u32 = 4;

/// The control tokens, the last ids of the vocabulary.
const CONTROLS: [&str; VOCAB_CONTROLS as usize] = ["<|bos|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"];

/// Merges, best first; `Ġ` is the spelling of a space.
const MERGES: &[(&str, &str)] = &[
    ("Ġ", "t"),
    ("h", "e"),
    ("Ġt", "he"),
    ("i", "n"),
    ("Ġ", "a"),
    ("e", "r"),
    ("o", "n"),
    ("r", "e"),
    ("a", "n"),
    ("Ġa", "n"),
    ("an", "d"),
    ("Ġ", "and"),
    ("i", "s"),
    ("Ġ", "is"),
    ("o", "r"),
    ("in", "g"),
    ("Ġ", "w"),
    ("l", "l"),
    ("e", "n"),
    ("Ġ", "Ġ"),
];

/// A vocabulary as arrays of a file.
pub(super) struct Vocabulary {
    /// By id.
    pub(super) tokens: Vec<String>,
    /// By id: 1 normal, 3 control, 5 unused.
    pub(super) kinds: Vec<i32>,
    /// Best first.
    pub(super) merges: Vec<String>,
    /// Id of `<|bos|>`.
    pub(super) bos: u32,
    /// Id of `<|endoftext|>`.
    pub(super) eos: u32,
    /// Id of `<|im_end|>`.
    pub(super) eot: u32,
}

/// The vocabulary of `n_vocab` tokens.
///
/// # Panics
/// If it is smaller than bytes, merges and control tokens together.
pub(super) fn vocabulary(n_vocab: u32) -> Vocabulary {
    let mut tokens: Vec<String> = (0..=255).map(|byte| byte_char(byte).to_string()).collect();
    let mut merges = Vec::new();
    for (left, right) in MERGES {
        merges.push(format!("{left} {right}"));
        let token = format!("{left}{right}");
        if !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    let n_plain = (n_vocab as usize).checked_sub(CONTROLS.len()).filter(|&n_plain| n_plain >= tokens.len());
    let n_plain = n_plain.unwrap_or_else(|| panic!("{n_vocab} tokens are too few for bytes, merges and controls"));
    let mut kinds = vec![1; tokens.len()];
    for filler in tokens.len()..n_plain {
        tokens.push(format!("<|unused{filler}|>"));
        kinds.push(5);
    }
    tokens.extend(CONTROLS.map(str::to_owned));
    kinds.extend([3; CONTROLS.len()]);
    let [bos, eos, _, eot] = std::array::from_fn(|index| (n_plain + index) as u32);
    Vocabulary { tokens, kinds, merges, bos, eos, eot }
}

/// The character that spells a byte: itself where it is printable in Latin-1, else one from U+0100 on, in byte order (the
/// byte map of GPT-2).
fn byte_char(byte: u8) -> char {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if printable(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&byte| !printable(byte)).count() as u32;
    char::from_u32(0x100 + before).unwrap_or('\u{fffd}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_of_bytes() {
        assert_eq!(byte_char(b'a'), 'a');
        assert_eq!(byte_char(b' '), 'Ġ');
        assert_eq!(byte_char(b'\n'), 'Ċ');
        let mut all: Vec<char> = (0..=255).map(byte_char).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 256);
    }

    #[test]
    fn tokens_are_unique_and_merges_exist() {
        let vocab = vocabulary(320);
        assert_eq!((vocab.tokens.len(), vocab.kinds.len()), (320, 320));
        let mut unique = vocab.tokens.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), 320);
        for merge in &vocab.merges {
            let (left, right) = merge.split_once(' ').unwrap();
            for piece in [left.to_owned(), right.to_owned(), format!("{left}{right}")] {
                assert!(vocab.tokens.contains(&piece), "{piece} of {merge}");
            }
        }
        assert_eq!(vocab.tokens[vocab.eot as usize], "<|im_end|>");
        assert_eq!(vocab.tokens[vocab.eos as usize], "<|endoftext|>");
    }
}
