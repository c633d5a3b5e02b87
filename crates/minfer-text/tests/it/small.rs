//! Small vocabularies made by hand: takes nothing, gives specifications.

use minfer_text::{Merges, PreTokenizer, SpecialTokens, TokenKind, TokenTable, TokenizerKind, TokenizerSpec};

/// The character that spells a byte in byte-level vocabularies.
pub fn spelled_byte(byte: u8) -> char {
    let printable = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if printable(byte) {
        return char::from(byte);
    }
    let moved = (0..byte).filter(|&byte| !printable(byte)).count() as u32;
    char::from_u32(0x100 + moved).unwrap()
}

pub fn spelled(bytes: &[u8]) -> String {
    bytes.iter().copied().map(spelled_byte).collect()
}

/// All bytes (ids 0..256), merges towards some words (256..), then `<|start|>`, `<|im_end|>`
/// (control) and `<tool>` (user-defined).
pub fn bpe(pre: &str, ignore_merges: bool) -> TokenizerSpec {
    let mut tokens = TokenTable::new();
    for byte in 0..=255 {
        let text = spelled_byte(byte).to_string();
        tokens.push(text.as_bytes(), TokenKind::Normal, None).unwrap();
    }
    let mut merges = Merges::new();
    let pairs: [(&[u8], &[u8]); 11] = [
        (b"l", b"o"),
        (b"lo", b"w"),
        (b" ", b"low"),
        (b"e", b"r"),
        (b"low", b"er"),
        (b"\xc3", b"\xa9"),
        (b"a", b"a"),
        (b"aa", b"aa"),
        (b" ", b" "),
        (b"\n", b"\n"),
        (b"1", b"2"),
    ];
    for (left, right) in pairs {
        let (left, right) = (spelled(left), spelled(right));
        merges.push(format!("{left} {right}").as_bytes()).unwrap();
        let merged = format!("{left}{right}");
        tokens.push(merged.as_bytes(), TokenKind::Normal, None).unwrap();
    }
    // A word that no merge leads to.
    tokens.push(spelled(" Việt".as_bytes()).as_bytes(), TokenKind::Normal, None).unwrap();
    let mut special = |text: &str, kind| tokens.push(text.as_bytes(), kind, None).unwrap();
    let bos = special("<|start|>", TokenKind::Control);
    let eos = special("<|im_end|>", TokenKind::Control);
    special("<tool>", TokenKind::UserDefined);
    TokenizerSpec {
        kind: TokenizerKind::Bpe { pre: PreTokenizer::from_name(pre).unwrap(), merges, ignore_merges },
        tokens,
        special: SpecialTokens { bos: Some(bos), eos: Some(eos), ..SpecialTokens::default() },
        add_bos: true,
        add_eos: false,
        add_space_prefix: false,
        strips: Vec::new(),
    }
}

/// Rules whose vocabularies are spelled as SentencePiece spells, and cannot be used with [`bpe`].
pub const SPELLED: [&str; 3] = ["gemma4", "sarvam-moe", "granite-embed-multi-311m"];

/// Merges on characters: the tokens of [`spm`], and merges to those of two characters.
pub fn gemma() -> TokenizerSpec {
    let mut merges = Merges::new();
    for line in ["▁ a", "▁a b", "a b", "b c", "▁ ▁"] {
        merges.push(line.as_bytes()).unwrap();
    }
    let pre = PreTokenizer::from_name("gemma4").unwrap();
    TokenizerSpec {
        kind: TokenizerKind::Bpe { pre, merges, ignore_merges: false },
        add_space_prefix: false,
        ..spm(true)
    }
}

/// The tokens of [`spm`], with their scores as those of words. No text is normalised.
pub fn unigram(byte_tokens: bool, merge_spaces: bool) -> TokenizerSpec {
    TokenizerSpec { kind: TokenizerKind::Unigram { charsmap: Vec::new(), merge_spaces }, ..spm(byte_tokens) }
}

/// `<unk>`, `<s>`, `</s>`, 256 byte tokens (ids 3..259) unless left out, then pieces.
pub fn spm(byte_tokens: bool) -> TokenizerSpec {
    let mut tokens = TokenTable::new();
    let mut push = |text: &str, kind, score| tokens.push(text.as_bytes(), kind, Some(score));
    push("<unk>", TokenKind::Unknown, 0.0).unwrap();
    push("<s>", TokenKind::Control, 0.0).unwrap();
    push("</s>", TokenKind::Control, 0.0).unwrap();
    if byte_tokens {
        for byte in 0..=255 {
            push(&format!("<0x{byte:02X}>"), TokenKind::Byte, 0.0).unwrap();
        }
    }
    let pieces = ["▁", "a", "b", "c", "ab", "bc", "▁a", "▁ab", "▁▁", "é"];
    for (rank, piece) in pieces.into_iter().enumerate() {
        push(piece, TokenKind::Normal, -(rank as f32)).unwrap();
    }
    push("<tool>", TokenKind::UserDefined, 0.0).unwrap();
    TokenizerSpec {
        kind: TokenizerKind::Spm,
        tokens,
        special: SpecialTokens { bos: Some(1), eos: Some(2), unk: Some(0), ..SpecialTokens::default() },
        add_bos: true,
        add_eos: false,
        add_space_prefix: true,
        strips: Vec::new(),
    }
}
