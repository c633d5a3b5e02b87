//! Which tokens end a generation: takes the roles and the vocabulary, gives the union of
//! them and of the known end tokens, each with its source.

use crate::spec::{SpecialTokens, TokenKind};
use crate::vocab::Vocab;

/// Why a token ends a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndSource {
    /// The specification's end of sequence.
    Eos,
    /// The specification's end of turn.
    Eot,
    /// The specification's end of message.
    Eom,
    /// The token's text is a known end of turn, sequence or file.
    KnownText,
}

/// A token that ends a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EndToken {
    /// The token.
    pub id: u32,
    /// The first reason found, in the order of [`EndSource`].
    pub source: EndSource,
}

/// Texts of tokens that end a turn, a sequence or a file in published models.
const KNOWN: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<|tool_response>",
    "<|eot|>",
    "<|end_of_turn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|file_sep|>",
    "<|repo_name|>",
    "<|fim_pad|>",
    "<end_of_turn>",
    "<turn|>",
    "<eos>",
    "<end_of_utterance>",
    "<EOT>",
    "_<EOT>",
    "< EOT >",
    "[EOT]",
    "[EOS]",
    "[e~[",
    "<｜end▁of▁sentence｜>",
    "</s>",
];

/// The end tokens, sorted by id.
pub(crate) fn end_tokens(vocab: &Vocab, special: &SpecialTokens) -> Vec<EndToken> {
    let roles = [(special.eos, EndSource::Eos), (special.eot, EndSource::Eot), (special.eom, EndSource::Eom)];
    let mut found: Vec<EndToken> =
        roles.into_iter().filter_map(|(id, source)| Some(EndToken { id: id?, source })).collect();
    let known: Vec<(u32, &[u8])> = (0..vocab.len())
        .filter_map(|id| {
            let text = vocab.bytes(id)?;
            // Some files do not mark `<|…|>` as control; other spellings must be, because
            // they are plain text elsewhere (`</s>` is an HTML tag in Gemma's vocabulary).
            let trusted = vocab.kind(id)? == TokenKind::Control
                || text.starts_with(b"<|")
                || text.starts_with("<\u{ff5c}".as_bytes());
            let is_listed = || KNOWN.iter().any(|known| known.as_bytes() == text);
            (trusted && is_listed()).then_some((id, text))
        })
        .collect();
    let has = |text: &str| known.iter().any(|&(_, known)| known == text.as_bytes());
    // The harmony format, and Solar's, end turns with the other two and use `<|end|>` between messages.
    let end_is_inner = has("<|return|>") && has("<|call|>") || has("<|flush|>") && has("<|calls|>");
    found.extend(
        known
            .iter()
            .filter(|&&(_, text)| !(end_is_inner && text == b"<|end|>"))
            .map(|&(id, _)| EndToken { id, source: EndSource::KnownText }),
    );
    found.sort_by_key(|end| end.id);
    found.dedup_by_key(|end| end.id);
    found
}
