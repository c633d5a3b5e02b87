//! `minfer tokenize`: text to ids. Needs no weights.

use super::text::read_bytes;
use crate::args::TextOutput;
use crate::exit::Outcome;
use crate::output;
use crate::resolve::Tokenize;
use anyhow::Result;
use minfer_gguf::GgufFile;
use minfer_model::load_tokenizer;
use minfer_text::{EncodeOptions, Tokenizer};
use serde_json::json;

/// Prints the ids of a text.
pub fn tokenize(settings: &Tokenize) -> Result<Outcome> {
    let file = GgufFile::open(&settings.model)?;
    let loaded = load_tokenizer(&file)?;
    loaded.warnings.iter().for_each(|warning| output::warn(&warning.to_string()));
    let tokenizer = Tokenizer::new(loaded.spec)?;
    let text = read_bytes(&settings.source, "--text TEXT, --file FILE, or pipe text into it")?;
    let options = EncodeOptions { add_special: settings.add_special, parse_special: settings.parse_special };
    let ids = tokenizer.encode(text, options);
    match settings.output {
        TextOutput::Json => {
            let piece = |&id: &u32| String::from_utf8_lossy(tokenizer.token_text(id).unwrap_or_default()).into_owned();
            let pieces: Vec<String> = ids.iter().map(piece).collect();
            output::answer_json(&json!({ "ids": ids, "pieces": pieces }))?;
        }
        TextOutput::Text => {
            let words: Vec<String> = ids.iter().map(u32::to_string).collect();
            output::answer(|out| writeln!(out, "{}", words.join(",")))?;
        }
    }
    Ok(Outcome::Done)
}
