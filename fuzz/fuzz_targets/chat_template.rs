//! Any template is compiled, rendered or refused, within its limits; a rendered prompt becomes ids that spell it.
#![cfg_attr(fuzzing, no_main)]

use minfer_text::{
    ChatInput, ChatLimits, ChatTemplate, DecodeOptions, Message, SpecialTokens, TextError, TokenKind, TokenTable,
    Tokenizer, TokenizerKind, TokenizerSpec,
};

/// More only makes a run slower.
const LIMITS: ChatLimits = ChatLimits { source_bytes: 4 << 10, steps: 2000, recursion: 50, output_bytes: 64 << 10 };

/// The first line is the user's text, the rest is the template.
fn body(data: &[u8]) {
    let data = String::from_utf8_lossy(data);
    let (text, source) = data.split_once('\n').unwrap_or(("", &data));
    let Ok(template) = ChatTemplate::with_limits(source, LIMITS) else {
        return;
    };
    let tokenizer = tokenizer().expect("a valid specification");
    let messages = [Message::new("system", "<s>"), Message::new("user", text), Message::new("user", "a</s")];
    let input = ChatInput {
        messages: &messages,
        add_generation_prompt: true,
        bos_token: "<s>",
        eos_token: "</s>",
        now_s: Some(0),
        ..ChatInput::default()
    };
    let Ok(prompt) = template.render_prompt(&input, &tokenizer) else {
        return;
    };
    let ids = tokenizer.encode_parts(&prompt.parts(), false);
    let all = DecodeOptions { show_special: true, continues: false };
    // SentencePiece spells a space as U+2581, so those two cannot be told apart afterwards.
    let expected = prompt.text().replace('\u{2581}', " ");
    assert_eq!(String::from_utf8_lossy(&tokenizer.decode_with(&ids, all)), expected);
}

/// All bytes and two control tokens.
fn tokenizer() -> Result<Tokenizer, TextError> {
    let mut tokens = TokenTable::new();
    for byte in 0..=255u8 {
        tokens.push(format!("<0x{byte:02X}>").as_bytes(), TokenKind::Byte, Some(0.0))?;
    }
    let bos = tokens.push(b"<s>", TokenKind::Control, Some(0.0))?;
    let eos = tokens.push(b"</s>", TokenKind::Control, Some(0.0))?;
    Tokenizer::new(TokenizerSpec {
        kind: TokenizerKind::Spm,
        tokens,
        special: SpecialTokens { bos: Some(bos), eos: Some(eos), ..SpecialTokens::default() },
        add_bos: true,
        add_eos: false,
        add_space_prefix: false,
        strips: Vec::new(),
    })
}

minfer_fuzz::target!("chat_template", body);
