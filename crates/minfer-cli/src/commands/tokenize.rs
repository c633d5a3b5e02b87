//! `minfer tokenize`: text or a conversation to ids, and ids to text. Needs no weights.

use super::open;
use super::template::{Conversation, in_file, template_of};
use super::text::read_bytes;
use crate::args::TokenOutput;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::resolve::{Tokenize, TokenizeWhat, ids_of};
use anyhow::Result;
use minfer_model::load_tokenizer_as;
use minfer_text::{DecodeOptions, EncodeOptions, TokenKind, Tokenizer};
use serde_json::json;

/// Prints the ids of a text, or the text of ids.
pub fn tokenize(settings: &Tokenize) -> Result<Outcome> {
    let file = open::header(&settings.model)?;
    let loaded = in_file(&settings.model, load_tokenizer_as(&file, settings.words.pre))?;
    loaded.warnings.iter().for_each(|warning| output::warn(&warning.to_string()));
    let tokenizer = in_file(&settings.model, Tokenizer::new(loaded.spec))?;
    let ids = match &settings.what {
        TokenizeWhat::Text { source, add_special, parse_special } => {
            let text = read_bytes(source, "--text TEXT, --file FILE, --chat FILE, or pipe text into it")?;
            let (add_special, parse_special) = (*add_special, *parse_special);
            tokenizer.encode(text, EncodeOptions { add_special, parse_special })
        }
        TokenizeWhat::Chat(path) => {
            let conversation = Conversation::read(path)?;
            let source = template_of(&file, &settings.model, settings.words.chat_template.as_deref())?;
            tokenizer.encode_prompt(&in_file(&settings.model, conversation.render(&source, &tokenizer))?)
        }
        TokenizeWhat::Ids { source, show_special } => {
            let list = read_bytes(source, "--text IDS, --file FILE, or pipe ids into it")?;
            let list = String::from_utf8(list).map_err(|_| Failure::new("the ids are not valid UTF-8"))?;
            let ids = ids_of("--decode", &list)?;
            return decode(&tokenizer, &ids, *show_special, settings.output);
        }
    };
    match settings.output {
        TokenOutput::Text => {
            let words: Vec<String> = ids.iter().map(u32::to_string).collect();
            output::answer(|out| writeln!(out, "{}", words.join(",")))?;
        }
        more => show(&tokenizer, &ids, more)?,
    }
    Ok(Outcome::Done)
}

/// The bytes of ids, as they are.
fn decode(tokenizer: &Tokenizer, ids: &[u32], show_special: bool, form: TokenOutput) -> Result<Outcome> {
    let n_vocab = tokenizer.n_vocab();
    if let Some(id) = ids.iter().find(|&&id| id as usize >= n_vocab) {
        return Err(
            Failure::new(format!("--decode has {id}, but the ids of this vocabulary are below {n_vocab}")).into()
        );
    }
    match form {
        TokenOutput::Text => {
            let text = tokenizer.decode_with(ids, DecodeOptions { show_special, continues: false });
            output::answer(|out| out.write_all(&text))?;
        }
        more => show(tokenizer, ids, more)?,
    }
    Ok(Outcome::Done)
}

/// Each token with its text, its bytes and its kind.
fn show(tokenizer: &Tokenizer, ids: &[u32], form: TokenOutput) -> Result<()> {
    let bytes = |id: u32| tokenizer.token_text(id).unwrap_or_default();
    let piece = |&id: &u32| String::from_utf8_lossy(bytes(id)).into_owned();
    let hex = |&id: &u32| bytes(id).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let kind = |&id: &u32| tokenizer.token_kind(id).map_or("", kind_name);
    if form == TokenOutput::Json {
        let pieces: Vec<String> = ids.iter().map(piece).collect();
        let bytes: Vec<String> = ids.iter().map(hex).collect();
        let kinds: Vec<&str> = ids.iter().map(kind).collect();
        return output::answer_json(&json!({ "ids": ids, "pieces": pieces, "bytes": bytes, "kinds": kinds }));
    }
    let mut table = output::Table::new(&[0]);
    table.row(["id", "piece", "bytes", "kind"]);
    for id in ids {
        table.row([&id.to_string(), &format!("{:?}", piece(id)), &hex(id), kind(id)]);
    }
    output::answer(|out| table.write(out, ""))
}

fn kind_name(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Normal => "normal",
        TokenKind::Unknown => "unknown",
        TokenKind::Control => "control",
        TokenKind::UserDefined => "user-defined",
        TokenKind::Unused => "unused",
        TokenKind::Byte => "byte",
    }
}
