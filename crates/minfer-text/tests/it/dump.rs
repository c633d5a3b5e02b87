//! Builds a specification from a vocabulary that was dumped to JSON: takes the metadata keys
//! below `tokenizer.` with their values. Used only where such a dump is at hand.

use std::path::Path;

use minfer_text::{Merges, PreTokenizer, SpecialTokens, TokenKind, TokenTable, TokenizerKind, TokenizerSpec};
use serde_json::Value;

const KINDS: [TokenKind; 6] = [
    TokenKind::Normal,
    TokenKind::Unknown,
    TokenKind::Control,
    TokenKind::UserDefined,
    TokenKind::Unused,
    TokenKind::Byte,
];

pub fn dump(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// `None` for a pre-tokenizer or model that the crate does not have.
pub fn spec(dump: &Value) -> Option<TokenizerSpec> {
    let array = |key: &str| dump.get(key).and_then(Value::as_array);
    let id = |key: &str| dump.get(key).and_then(Value::as_u64).map(|id| id as u32);
    let flag = |key: &str, default| dump.get(key).and_then(Value::as_bool).unwrap_or(default);
    let texts = array("ggml.tokens").unwrap();
    let mut tokens = TokenTable::new();
    for (at, text) in texts.iter().enumerate() {
        let kind =
            array("ggml.token_type").map_or(TokenKind::Normal, |kinds| KINDS[kinds[at].as_u64().unwrap() as usize - 1]);
        let score = array("ggml.scores").map(|scores| scores[at].as_f64().unwrap() as f32);
        tokens.push(text.as_str().unwrap().as_bytes(), kind, score).unwrap();
    }
    let pre = dump.get("ggml.pre").and_then(Value::as_str);
    let spm = dump["ggml.model"] == "llama";
    let kind = if spm {
        TokenizerKind::Spm
    } else if dump["ggml.model"] == "gpt2" {
        let mut merges = Merges::new();
        for line in array("ggml.merges").unwrap() {
            merges.push(line.as_str().unwrap().as_bytes()).unwrap();
        }
        TokenizerKind::Bpe {
            pre: PreTokenizer::from_name(pre.unwrap_or("default"))?,
            merges,
            ignore_merges: pre == Some("llama-bpe"),
        }
    } else {
        return None;
    };
    let special = SpecialTokens {
        bos: id("ggml.bos_token_id"),
        eos: id("ggml.eos_token_id"),
        eot: id("ggml.eot_token_id"),
        eom: id("ggml.eom_token_id"),
        unk: id("ggml.unknown_token_id"),
        pad: id("ggml.padding_token_id"),
    };
    Some(TokenizerSpec {
        kind,
        tokens,
        special,
        add_bos: flag("ggml.add_bos_token", spm || pre == Some("llama-bpe")),
        add_eos: flag("ggml.add_eos_token", false),
        add_space_prefix: flag("ggml.add_space_prefix", spm),
    })
}
