//! Text and chats become the ids of a prompt. Takes a model and what a user wrote; gives ids; must not know engines.

use crate::error::Error;
use minfer_engine::Model;
use minfer_text::{ChatInput, ChatTemplate, EncodeOptions, Message, Tokenizer};
use std::time::{SystemTime, UNIX_EPOCH};

/// A prompt, ready to be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prompt {
    /// Its text, with what the chat template added.
    pub text: String,
    /// Its ids, with the begin token if the model wants one.
    pub ids: Vec<u32>,
}

/// Text that the model is to go on with. Spellings of control tokens in it are text.
pub fn text_prompt(tokenizer: &Tokenizer, text: &str) -> Prompt {
    // The end token some files ask for is for whole texts, not for ones to go on with.
    // Not `add_special`: that would end the text as well where the file asks for it.
    let mut ids = tokenizer.encode(text, EncodeOptions { add_special: false, parse_special: false });
    ids.splice(0..0, tokenizer.special().bos.filter(|_| tokenizer.adds_bos()));
    Prompt { text: text.to_owned(), ids }
}

/// A conversation that the model is to answer, in the words of its own chat template. Control tokens are recognised in
/// what the template wrote, never in the messages.
///
/// # Errors
/// A model without a template, a template that is broken, or one that refuses these messages.
pub fn chat_prompt(model: &Model, messages: &[Message]) -> Result<Prompt, Error> {
    let source = model.chat_template.as_deref().ok_or(Error::NoChatTemplate)?;
    let tokenizer = &model.tokenizer;
    let input = ChatInput {
        messages,
        add_generation_prompt: true,
        bos_token: &tokenizer.spelling(tokenizer.special().bos),
        eos_token: &tokenizer.spelling(tokenizer.special().eos),
        now_s: SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|now| now.as_secs() as i64),
        ..ChatInput::default()
    };
    let prompt = ChatTemplate::new(source)?.render_prompt(&input, tokenizer)?;
    Ok(Prompt { text: prompt.text().to_owned(), ids: tokenizer.encode_prompt(&prompt) })
}
