//! The tokenizer of a file. Takes an open file (a model or a vocabulary); gives the specification that `minfer-text` builds
//! a tokenizer from, and the chat template; must not know how text is cut. Defaults for absent keys are those of the
//! converters and of the engine they write for.

use crate::error::ModelError;
use crate::keys;
use minfer_gguf::{GgufFile, Metadata, Strings};
use minfer_text::{Merges, PreTokenizer, SpecialTokens, TokenKind, TokenTable, TokenizerKind, TokenizerSpec};

/// A tokenizer's specification and what was assumed to get it.
#[derive(Clone, Debug)]
pub struct TokenizerLoad {
    /// The specification.
    pub spec: TokenizerSpec,
    /// What a user should be told.
    pub warnings: Vec<TokenizerWarning>,
}

/// Something in a file that is not as it should be, but has a plausible reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerWarning {
    /// The file does not say how text is cut before merging; older files do not.
    #[error("the file has no `{key}`; `default` is assumed, which may tokenize worse than the model expects")]
    MissingPre {
        /// The absent key.
        key: &'static str,
    },
    /// The padding token, which nothing uses, is no token.
    #[error("`{key}` is {id}, which is no token; it is ignored")]
    PaddingOutOfRange {
        /// The key.
        key: &'static str,
        /// Its value.
        id: i64,
    },
}

/// Pre-tokenizers of the Llama 3 family, whose files by default begin a text with the first token and take a whole word
/// that is a token before any merge.
const LLAMA3_PRE: &[&str] = &["llama-bpe", "llama3", "llama-v3", "falcon3"];
/// The pre-tokenizer of files that name none.
const DEFAULT_PRE: &str = "default";
/// Names of the algorithms in files.
const GPT2: &str = "gpt2";
const SENTENCEPIECE: &str = "llama";

/// The tokenizer's specification; see [`load_tokenizer`] for one with its warnings.
pub fn tokenizer_spec(file: &GgufFile) -> Result<TokenizerSpec, ModelError> {
    Ok(load_tokenizer(file)?.spec)
}

/// The tokenizer's specification, with what was assumed.
///
/// Ids with a role are taken as they stand: building the tokenizer refuses those outside the vocabulary.
pub fn load_tokenizer(file: &GgufFile) -> Result<TokenizerLoad, ModelError> {
    let metadata = file.metadata();
    let mut warnings = Vec::new();
    let model = metadata.require(keys::TOKENIZER_MODEL, Metadata::str)?;
    let (kind, defaults) = match model {
        GPT2 => byte_level(metadata, &mut warnings)?,
        SENTENCEPIECE => (TokenizerKind::Spm, Defaults::SENTENCEPIECE),
        other => {
            let supported = vec![GPT2, SENTENCEPIECE];
            return Err(ModelError::UnsupportedTokenizer {
                key: keys::TOKENIZER_MODEL,
                got: other.to_owned(),
                supported,
            });
        }
    };
    let tokens = tokens(metadata, matches!(kind, TokenizerKind::Spm))?;
    let special = special(metadata, &defaults, tokens.len(), &mut warnings)?;
    let spec = TokenizerSpec {
        kind,
        tokens,
        special,
        add_bos: metadata.bool(keys::ADD_BOS)?.unwrap_or(defaults.add_bos),
        add_eos: metadata.bool(keys::ADD_EOS)?.unwrap_or(false),
        add_space_prefix: metadata.bool(keys::ADD_SPACE_PREFIX)?.unwrap_or(defaults.add_space_prefix),
    };
    Ok(TokenizerLoad { spec, warnings })
}

/// The chat template, if the file has one.
pub fn chat_template(file: &GgufFile) -> Result<Option<String>, ModelError> {
    Ok(file.metadata().str(keys::CHAT_TEMPLATE)?.map(str::to_owned))
}

/// What absent keys mean.
struct Defaults {
    add_bos: bool,
    add_space_prefix: bool,
    /// Begin, end, unknown.
    ids: [Option<u32>; 3],
}

impl Defaults {
    /// Those of Llama 2's vocabulary.
    const SENTENCEPIECE: Defaults =
        Defaults { add_bos: true, add_space_prefix: true, ids: [Some(1), Some(2), Some(0)] };
}

fn byte_level(
    metadata: &Metadata,
    warnings: &mut Vec<TokenizerWarning>,
) -> Result<(TokenizerKind, Defaults), ModelError> {
    let name = metadata.str(keys::TOKENIZER_PRE)?.unwrap_or_else(|| {
        warnings.push(TokenizerWarning::MissingPre { key: keys::TOKENIZER_PRE });
        DEFAULT_PRE
    });
    let pre = PreTokenizer::from_name(name).ok_or_else(|| ModelError::UnsupportedTokenizer {
        key: keys::TOKENIZER_PRE,
        got: name.to_owned(),
        supported: PreTokenizer::names().collect(),
    })?;
    let llama3 = LLAMA3_PRE.contains(&name);
    let lines = metadata.require(keys::MERGES, Metadata::strings)?;
    let mut merges = Merges::with_capacity(lines.len(), text_bytes(&lines));
    for line in lines {
        merges.push(line)?;
    }
    let kind = TokenizerKind::Bpe { pre, merges, ignore_merges: llama3 };
    Ok((kind, Defaults { add_bos: llama3, add_space_prefix: false, ids: [None; 3] }))
}

/// Bytes of all strings together.
fn text_bytes(strings: &Strings<'_>) -> usize {
    strings.clone().map(<[u8]>::len).sum()
}

fn tokens(metadata: &Metadata, with_scores: bool) -> Result<TokenTable, ModelError> {
    let texts = metadata.require(keys::TOKENS, Metadata::strings)?;
    let n_tokens = texts.len();
    let fits = |key: &str, got: usize| match got == n_tokens {
        true => Ok(()),
        false => Err(ModelError::ArrayLength { key: key.to_owned(), expected: n_tokens as u64, got: got as u64 }),
    };
    let kinds = metadata.ints(keys::TOKEN_TYPES)?;
    if let Some(kinds) = &kinds {
        fits(keys::TOKEN_TYPES, kinds.len())?;
    }
    let scores = if with_scores { Some(metadata.require(keys::SCORES, Metadata::f32s)?) } else { None };
    if let Some(scores) = &scores {
        fits(keys::SCORES, scores.len())?;
    }
    let mut table = TokenTable::with_capacity(n_tokens, text_bytes(&texts));
    let (mut kinds, mut scores) = (kinds.into_iter().flatten(), scores.into_iter().flatten());
    for (index, text) in texts.enumerate() {
        let kind = kinds.next().map_or(Ok(TokenKind::Normal), |kind| token_kind(index, kind))?;
        table.push(text, kind, scores.next())?;
    }
    Ok(table)
}

/// The numbers of SentencePiece's token types; 0 is what a converter writes that does not know.
fn token_kind(index: usize, number: i64) -> Result<TokenKind, ModelError> {
    Ok(match number {
        0 | 1 => TokenKind::Normal,
        2 => TokenKind::Unknown,
        3 => TokenKind::Control,
        4 => TokenKind::UserDefined,
        5 => TokenKind::Unused,
        6 => TokenKind::Byte,
        other => {
            return Err(ModelError::TokenizerItem {
                key: keys::TOKEN_TYPES,
                index,
                expected: "a number from 0 to 6",
                got: other.to_string(),
            });
        }
    })
}

fn special(
    metadata: &Metadata,
    defaults: &Defaults,
    n_tokens: usize,
    warnings: &mut Vec<TokenizerWarning>,
) -> Result<SpecialTokens, ModelError> {
    let [bos, eos, unk] = defaults.ids.map(|id| id.filter(|&id| (id as usize) < n_tokens));
    let pad = metadata.i64(keys::PAD_ID)?;
    let known_pad = pad.and_then(|id| u32::try_from(id).ok()).filter(|&id| (id as usize) < n_tokens);
    if let (Some(id), None) = (pad, known_pad) {
        warnings.push(TokenizerWarning::PaddingOutOfRange { key: keys::PAD_ID, id });
    }
    Ok(SpecialTokens {
        bos: metadata.u32(keys::BOS_ID)?.or(bos),
        eos: metadata.u32(keys::EOS_ID)?.or(eos),
        eot: metadata.u32(keys::EOT_ID)?,
        eom: metadata.u32(keys::EOM_ID)?,
        unk: metadata.u32(keys::UNK_ID)?.or(unk),
        pad: known_pad,
    })
}
