//! The tokenizer of a file. Takes an open file (a model or a vocabulary); gives the specification that `minfer-text` builds
//! a tokenizer from, and the chat template; must not know how text is cut. Defaults for absent keys are those of the
//! converters and of the engine they write for.

use crate::error::ModelError;
use crate::keys;
use minfer_gguf::{GgufFile, Metadata, Strings};
use minfer_text::{Merges, PreTokenizer, SpecialTokens, Strip, TokenKind, TokenTable, TokenizerKind, TokenizerSpec};

/// A tokenizer's specification and what was assumed to get it.
#[derive(Clone, Debug)]
pub struct TokenizerLoad {
    /// The specification.
    pub spec: TokenizerSpec,
    /// What a user should be told.
    pub warnings: Vec<TokenizerWarning>,
}

/// Something in a file that is not as it should be, but has a plausible reading.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerWarning {
    /// The file does not say how text is cut before merging; older files do not.
    #[error(
        "THE FILE DOES NOT SAY HOW TO CUT TEXT: it has no `{key}`. The rule `{assumed}` is taken; if the model was made with \
         another, its answers are worse. Find out which, and name it with --pre"
    )]
    MissingPre {
        /// The absent key.
        key: &'static str,
        /// The rule taken instead.
        assumed: &'static str,
    },
    /// The file names a way to cut text that is not known here.
    #[error(
        "THE RULE FOR CUTTING TEXT IS NOT KNOWN: `{key}` is `{}`. The rule `{assumed}` is taken instead, so answers may be \
         worse. If the model cuts text as another family does, name that with --pre",
        got.escape_debug()
    )]
    UnknownPre {
        /// The key.
        key: &'static str,
        /// Its value.
        got: String,
        /// The rule taken instead.
        assumed: &'static str,
    },
    /// A rule was chosen for a tokenizer that has none.
    #[error("the tokenizer `{model}` does not cut text before merging: the rule `{pre}` is ignored")]
    UnusedPre {
        /// The tokenizer.
        model: &'static str,
        /// The rule.
        pre: &'static str,
    },
    /// Some bytes have no token: where text has them, the token for unknown text stands, or U+FFFD.
    #[error("{n_missing} bytes that text can hold have no token: where text has one, the model reads a substitute")]
    BytesMissing {
        /// How many.
        n_missing: usize,
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

/// Names of the algorithms in files.
const GPT2: &str = "gpt2";
const SENTENCEPIECE: &str = "llama";
const UNIGRAM: &str = "t5";
/// Byte pair encoding with the spelling of SentencePiece; such files name no pre-tokenizer.
const GEMMA4: &str = "gemma4";

/// The tokenizer's specification; see [`load_tokenizer`] for one with its warnings.
pub fn tokenizer_spec(file: &GgufFile) -> Result<TokenizerSpec, ModelError> {
    Ok(load_tokenizer(file)?.spec)
}

/// The tokenizer's specification, with what was assumed; see [`load_tokenizer_as`] to choose how text is cut.
pub fn load_tokenizer(file: &GgufFile) -> Result<TokenizerLoad, ModelError> {
    load_tokenizer_as(file, None)
}

/// The tokenizer's specification, with what was assumed. `pre` replaces the way to cut text that the file names.
///
/// Ids with a role are taken as they stand: building the tokenizer refuses those outside the vocabulary.
pub fn load_tokenizer_as(file: &GgufFile, pre: Option<PreTokenizer>) -> Result<TokenizerLoad, ModelError> {
    let metadata = file.metadata();
    let mut warnings = Vec::new();
    let model = metadata.require(keys::TOKENIZER_MODEL, Metadata::str)?;
    let mut without_pre = |model: &'static str| {
        warnings.extend(pre.map(|pre| TokenizerWarning::UnusedPre { model, pre: pre.name() }));
    };
    let (kind, defaults) = match model {
        GPT2 => pair_encoding(metadata, pre, metadata.str(keys::TOKENIZER_PRE)?, &mut warnings)?,
        GEMMA4 => pair_encoding(metadata, pre, Some(GEMMA4), &mut warnings)?,
        SENTENCEPIECE => {
            without_pre(SENTENCEPIECE);
            (TokenizerKind::Spm, Defaults::SENTENCEPIECE)
        }
        UNIGRAM => {
            without_pre(UNIGRAM);
            (unigram(metadata)?, Defaults::UNIGRAM)
        }
        other => {
            let supported = vec![GPT2, SENTENCEPIECE, UNIGRAM, GEMMA4];
            return Err(ModelError::UnsupportedTokenizer {
                key: keys::TOKENIZER_MODEL,
                got: other.to_owned(),
                supported,
            });
        }
    };
    let with_scores = matches!(kind, TokenizerKind::Spm | TokenizerKind::Unigram { .. });
    let tokens = tokens(metadata, with_scores)?;
    let special = special(metadata, &defaults, tokens.len(), &mut warnings)?;
    let strips = strips(metadata, &kind, &tokens)?;
    let spec = TokenizerSpec {
        kind,
        tokens,
        special,
        add_bos: metadata.bool(keys::ADD_BOS)?.unwrap_or(defaults.add_bos),
        add_eos: metadata.bool(keys::ADD_EOS)?.unwrap_or(defaults.add_eos),
        add_space_prefix: metadata.bool(keys::ADD_SPACE_PREFIX)?.unwrap_or(defaults.add_space_prefix),
        strips,
    };
    // SentencePiece may do without; byte-level vocabularies are made of all bytes.
    if let (TokenizerKind::Bpe { .. }, n_missing @ 1..) = (&spec.kind, spec.missing_bytes()) {
        warnings.push(TokenizerWarning::BytesMissing { n_missing });
    }
    Ok(TokenizerLoad { spec, warnings })
}

/// The chat template, if the file has one.
pub fn chat_template(file: &GgufFile) -> Result<Option<String>, ModelError> {
    Ok(file.metadata().str(keys::CHAT_TEMPLATE)?.map(str::to_owned))
}

/// The file's further chat templates: names (`tool_use`, `rag`, ...) and sources.
pub fn named_chat_templates(file: &GgufFile) -> Result<Vec<(String, String)>, ModelError> {
    let metadata = file.metadata();
    let mut found = Vec::new();
    for name in metadata.strings(keys::CHAT_TEMPLATES)?.into_iter().flatten() {
        let name = String::from_utf8_lossy(name).into_owned();
        if let Some(source) = metadata.str(&format!("{}.{name}", keys::CHAT_TEMPLATE))? {
            found.push((name, source.to_owned()));
        }
    }
    Ok(found)
}

/// What absent keys mean.
struct Defaults {
    add_bos: bool,
    add_eos: bool,
    add_space_prefix: bool,
    /// Begin, end, unknown.
    ids: [Option<u32>; 3],
}

impl Defaults {
    /// Those of Llama 2's vocabulary.
    const SENTENCEPIECE: Defaults =
        Defaults { add_bos: true, add_eos: false, add_space_prefix: true, ids: [Some(1), Some(2), Some(0)] };
    /// Those of T5's vocabulary.
    const UNIGRAM: Defaults =
        Defaults { add_bos: false, add_eos: true, add_space_prefix: true, ids: [None, Some(1), Some(2)] };
}

fn pair_encoding(
    metadata: &Metadata,
    chosen: Option<PreTokenizer>,
    named: Option<&str>,
    warnings: &mut Vec<TokenizerWarning>,
) -> Result<(TokenizerKind, Defaults), ModelError> {
    let pre = chosen.or_else(|| PreTokenizer::from_name(named?)).unwrap_or_else(|| {
        let (key, assumed) = (keys::TOKENIZER_PRE, PreTokenizer::DEFAULT_NAME);
        warnings.push(match named {
            Some(got) => TokenizerWarning::UnknownPre { key, got: got.to_owned(), assumed },
            None => TokenizerWarning::MissingPre { key, assumed },
        });
        PreTokenizer::default()
    });
    let lines = metadata.require(keys::MERGES, Metadata::strings)?;
    let mut merges = Merges::with_capacity(lines.len(), text_bytes(&lines));
    for line in lines {
        merges.push(line)?;
    }
    let defaults = Defaults { add_bos: pre.adds_bos(), add_eos: false, add_space_prefix: false, ids: [None; 3] };
    Ok((TokenizerKind::Bpe { pre, merges, ignore_merges: pre.takes_whole_words() }, defaults))
}

fn unigram(metadata: &Metadata) -> Result<TokenizerKind, ModelError> {
    let charsmap = metadata.ints(keys::CHARSMAP)?.map(|bytes| bytes.map(|byte| byte as u8).collect());
    Ok(TokenizerKind::Unigram {
        charsmap: charsmap.unwrap_or_default(),
        // Where the file does not say: what SentencePiece does.
        merge_spaces: metadata.bool(keys::REMOVE_EXTRA_SPACES)?.unwrap_or(true),
    })
}

/// Files do not say which tokens take white space along. Known are Phi-3, whose tokens take what follows but for three, and
/// the mask of Unigram vocabularies (XLM-RoBERTa), which takes what is before it: `tokenizer_config.json` of each.
fn strips(metadata: &Metadata, kind: &TokenizerKind, tokens: &TokenTable) -> Result<Vec<Strip>, ModelError> {
    match kind {
        TokenizerKind::Spm => {
            let name = metadata.str(keys::NAME)?.unwrap_or_default().to_ascii_lowercase();
            let is_phi3 =
                metadata.str(keys::ARCHITECTURE)? == Some("phi3") || name.contains("phi-3") || name.contains("phi3");
            let takes_space = |&id: &u32| {
                let is_special = tokens.kind(id) == Some(TokenKind::Control)
                    || tokens.kind(id) == Some(TokenKind::UserDefined)
                    || tokens.kind(id) == Some(TokenKind::Unknown);
                is_special && !matches!(tokens.bytes(id), Some(b"<unk>" | b"<s>" | b"<|endoftext|>"))
            };
            let ids = (0..tokens.len() as u32).filter(|id| is_phi3 && takes_space(id));
            Ok(ids.map(|id| Strip { id, left: false, right: true }).collect())
        }
        TokenizerKind::Unigram { .. } => {
            let mask = metadata.u32(keys::MASK_ID)?;
            Ok(mask.into_iter().map(|id| Strip { id, left: true, right: false }).collect())
        }
        TokenizerKind::Bpe { .. } => Ok(Vec::new()),
    }
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
