//! Any text becomes ids and comes back as the same bytes, in both tokenizer families.
#![cfg_attr(fuzzing, no_main)]

use minfer_text::{
    EncodeOptions, Merges, PreTokenizer, SpecialTokens, TextError, TokenKind, TokenTable, Tokenizer, TokenizerKind,
    TokenizerSpec,
};

/// The first byte chooses the tokenizer, the rest is the text.
fn body(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    let rules: Vec<PreTokenizer> = PreTokenizer::names().filter_map(PreTokenizer::from_name).collect();
    let pre = rules.get(usize::from(*choice) % (rules.len() + 1)).filter(|pre| pre.is_byte_level());
    let is_spm = pre.is_none();
    let tokenizer = pre.map_or_else(spm, |pre| bpe(*pre)).expect("a valid specification");
    let ids = tokenizer.encode(text.as_bytes(), EncodeOptions::default());
    // SentencePiece spells a space as U+2581, so those two cannot be told apart afterwards.
    let expected = if is_spm { text.replace('\u{2581}', " ") } else { text.into_owned() };
    assert_eq!(String::from_utf8_lossy(&tokenizer.decode(&ids)), expected);
}

fn spec(kind: TokenizerKind, tokens: TokenTable) -> TokenizerSpec {
    let special = SpecialTokens::default();
    TokenizerSpec { kind, tokens, special, add_bos: false, add_eos: false, add_space_prefix: false, strips: Vec::new() }
}

/// All bytes in the spelling of GPT-2, and two merges.
fn bpe(pre: PreTokenizer) -> Result<Tokenizer, TextError> {
    let mut tokens = TokenTable::new();
    let mut spare = 256..;
    for byte in 0..=255u8 {
        let plain = matches!(byte, 33..=126 | 161..=172 | 174..=255);
        let code = if plain { u32::from(byte) } else { spare.next().unwrap_or_default() };
        let text = char::from_u32(code).unwrap_or_default().to_string();
        tokens.push(text.as_bytes(), TokenKind::Normal, None)?;
    }
    let mut merges = Merges::new();
    for (pair, joined) in [("a b", "ab"), ("ab c", "abc")] {
        tokens.push(joined.as_bytes(), TokenKind::Normal, None)?;
        merges.push(pair.as_bytes())?;
    }
    Tokenizer::new(spec(TokenizerKind::Bpe { pre, merges, ignore_merges: false }, tokens))
}

/// All bytes as byte tokens, and a few pieces.
fn spm() -> Result<Tokenizer, TextError> {
    let mut tokens = TokenTable::new();
    for byte in 0..=255u8 {
        tokens.push(format!("<0x{byte:02X}>").as_bytes(), TokenKind::Byte, Some(0.0))?;
    }
    for (i, piece) in ["\u{2581}", "a", "b", "ab", "\u{2581}ab"].iter().enumerate() {
        tokens.push(piece.as_bytes(), TokenKind::Normal, Some(i as f32))?;
    }
    Tokenizer::new(spec(TokenizerKind::Spm, tokens))
}

minfer_fuzz::target!("tokenizer_encode", body);
