//! The tokenizer: takes a specification, then text and gives ids, and ids and gives bytes.
//! Must not know chat formats or files.

use std::borrow::Cow;

use crate::bpe::{Bpe, Scratch};
use crate::end_tokens::{EndToken, end_tokens};
use crate::spec::{SpecialTokens, Strip, TokenKind, TokenizerKind, TokenizerSpec};
use crate::special::{ControlEdges, SpecialIndex};
use crate::spm::Spm;
use crate::unigram::Unigram;
use crate::utf8::{leading_space, trim_end};
use crate::vocab::{ESCAPED_SPACE, Spelling, Vocab, unescape_spaces};
use crate::words::Words;
use crate::{PreTokenizer, Prompt, TextError};

/// Text ↔ ids for one vocabulary. Immutable; share it by reference.
pub struct Tokenizer {
    vocab: Vocab,
    model: Model,
    special_index: SpecialIndex,
    special: SpecialTokens,
    add_bos: bool,
    add_eos: bool,
    add_space_prefix: bool,
    /// Sorted by id.
    strips: Vec<Strip>,
    end_tokens: Vec<EndToken>,
}

enum Model {
    Bpe { pre: PreTokenizer, bpe: Bpe },
    Spm(Spm),
    Unigram(Unigram),
}

/// How to encode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Whether to add the begin and end tokens that the specification asks for. Text from a
    /// chat template brings its own: encode that without.
    pub add_special: bool,
    /// Whether the spelling of a control token in the text is that token. User text must be
    /// encoded without. User-defined tokens are recognised either way.
    pub parse_special: bool,
}

/// How to decode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecodeOptions {
    /// Whether control and unknown tokens give their spelling instead of nothing.
    pub show_special: bool,
    /// Whether the ids continue a text: then a leading space is text, not the prefix that
    /// encoding put in front.
    pub continues: bool,
}

/// A piece of a prompt, by who wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptPart<'a> {
    /// Written by the template: spellings of control tokens are those tokens.
    Scaffold(&'a str),
    /// Written by a user: spellings of control tokens are text.
    Content(&'a str),
}

impl<'a> PromptPart<'a> {
    /// The text, whoever wrote it.
    pub fn text(&self) -> &'a str {
        match *self {
            Self::Scaffold(text) | Self::Content(text) => text,
        }
    }
}

/// A stretch of text in which control tokens are recognised or not; none crosses its end.
struct Span {
    end: usize,
    parse_special: bool,
}

impl Tokenizer {
    /// Builds the lookup tables. Of tokens with equal bytes the lowest id is used.
    ///
    /// # Errors
    /// An empty vocabulary, an id outside it, `add_bos` or `add_eos` without that token, a
    /// SentencePiece vocabulary with fewer scores than tokens, a merge that is no pair of tokens or gives none, a damaged
    /// table of normalised characters, or text that would have neither a token nor an unknown token.
    pub fn new(spec: TokenizerSpec) -> Result<Self, TextError> {
        let n_vocab = u32::try_from(spec.tokens.len()).unwrap_or(u32::MAX);
        if n_vocab == 0 {
            return Err(TextError::EmptyVocabulary);
        }
        for (role, id) in spec.special.roles() {
            if let Some(id) = id.filter(|&id| id >= n_vocab) {
                return Err(TextError::SpecialIdOutOfRange { role, id, n_vocab });
            }
        }
        let required =
            [("add_bos", spec.add_bos, "bos", spec.special.bos), ("add_eos", spec.add_eos, "eos", spec.special.eos)];
        for (flag, set, role, id) in required {
            if set && id.is_none() {
                return Err(TextError::SpecialMissing { flag, role });
            }
        }
        let spelling = match &spec.kind {
            TokenizerKind::Bpe { pre, .. } => pre.spelling(),
            TokenizerKind::Spm | TokenizerKind::Unigram { .. } => Spelling::Sentencepiece,
        };
        let unk = spec.special.unk_for_text();
        let (bytes, kinds, scores) = spec.tokens.into_parts();
        let vocab = Vocab::new(&bytes, kinds, spelling, unk)?;
        drop(bytes);
        let model = match spec.kind {
            TokenizerKind::Bpe { pre, merges, ignore_merges } => {
                Model::Bpe { pre, bpe: Bpe::new(&vocab, &merges, ignore_merges, spelling)? }
            }
            TokenizerKind::Spm => Model::Spm(Spm::new(&vocab, &scores)?),
            TokenizerKind::Unigram { charsmap, merge_spaces } => {
                Model::Unigram(Unigram::new(&vocab, &scores, &charsmap, merge_spaces)?)
            }
        };
        let mut strips = spec.strips;
        strips.sort_by_key(|strip| strip.id);
        Ok(Self {
            special_index: SpecialIndex::new(&vocab),
            end_tokens: end_tokens(&vocab, &spec.special),
            vocab,
            model,
            special: spec.special,
            add_bos: spec.add_bos,
            add_eos: spec.add_eos,
            add_space_prefix: spec.add_space_prefix,
            strips,
        })
    }

    /// The ids of a text. Takes any bytes; what is not UTF-8 becomes byte tokens.
    pub fn encode(&self, text: impl AsRef<[u8]>, opts: EncodeOptions) -> Vec<u32> {
        let text = text.as_ref();
        let span = Span { end: text.len(), parse_special: opts.parse_special };
        self.encode_spans(text, &[span], opts.add_special)
    }

    /// The ids of a prompt: the parts are one text, but control tokens are recognised only
    /// where they lie wholly in one scaffold part.
    pub fn encode_parts(&self, parts: &[PromptPart<'_>], add_special: bool) -> Vec<u32> {
        let mut text = String::with_capacity(parts.iter().map(|part| part.text().len()).sum());
        let mut spans = Vec::with_capacity(parts.len());
        for part in parts {
            text.push_str(part.text());
            spans.push(Span { end: text.len(), parse_special: matches!(part, PromptPart::Scaffold(_)) });
        }
        self.encode_spans(text.as_bytes(), &spans, add_special)
    }

    /// The ids of a rendered prompt. Where the specification asks for the begin token and the template did not write it,
    /// it is added: exactly one either way.
    pub fn encode_prompt(&self, prompt: &Prompt) -> Vec<u32> {
        let mut ids = self.encode_parts(&prompt.parts(), false);
        if let Some(bos) = self.special.bos.filter(|bos| self.add_bos && ids.first() != Some(bos)) {
            ids.insert(0, bos);
        }
        ids
    }

    fn encode_spans(&self, text: &[u8], spans: &[Span], add_special: bool) -> Vec<u32> {
        // Most text has 3 to 5 bytes per token.
        let mut out = Vec::with_capacity(text.len() / 3 + 2);
        if add_special && self.add_bos {
            out.extend(self.special.bos);
        }
        let (mut scratch, mut words) = (Scratch::default(), Words::default());
        let mut spans = spans.iter().peekable();
        let (mut at, mut raw_start, mut starts_text) = (0, 0, true);
        while at < text.len() {
            if !self.special_index.may_start(text[at]) {
                at += 1;
                continue;
            }
            while spans.next_if(|span| span.end <= at).is_some() {}
            let control_limit = match spans.peek() {
                Some(span) if span.parse_special => span.end - at,
                _ => 0,
            };
            match self.special_index.longest(&self.vocab, &text[at..], control_limit) {
                Some((id, len)) => {
                    let strip = self.strip(id);
                    let mut raw = &text[raw_start..at];
                    if strip.left {
                        raw = trim_end(raw);
                    }
                    self.encode_raw(raw, starts_text, &mut scratch, &mut words, &mut out);
                    out.push(id);
                    starts_text = self.special.bos == Some(id);
                    at += len;
                    if strip.right {
                        at += leading_space(&text[at..]);
                    }
                    raw_start = at;
                }
                None => at += 1,
            }
        }
        self.encode_raw(&text[raw_start..], starts_text, &mut scratch, &mut words, &mut out);
        if add_special && self.add_eos {
            out.extend(self.special.eos);
        }
        out
    }

    /// Which white space a token takes along.
    fn strip(&self, id: u32) -> Strip {
        match self.strips.binary_search_by_key(&id, |strip| strip.id) {
            Ok(at) => self.strips[at],
            Err(_) => Strip { id, left: false, right: false },
        }
    }

    /// Appends the ids of text without special tokens.
    fn encode_raw(&self, text: &[u8], at_start: bool, scratch: &mut Scratch, words: &mut Words, out: &mut Vec<u32>) {
        if text.is_empty() {
            return;
        }
        match &self.model {
            Model::Bpe { pre, bpe } => {
                let mut encode = |word: &[u8]| {
                    words.encode(word, out, |out| bpe.encode_word(&self.vocab, word, scratch, out));
                };
                match pre.spelling() {
                    Spelling::ByteMap => pre.split(text, encode),
                    Spelling::Sentencepiece => {
                        pre.split(&unescaped(text, false), |part| self.vocab.split_at_spaces(part, &mut encode));
                    }
                }
            }
            Model::Spm(spm) => {
                let text = unescaped(text, self.add_space_prefix && at_start);
                self.vocab.split_at_spaces(&text, |word| {
                    words.encode(word, out, |out| spm.encode(&self.vocab, word, out));
                });
            }
            Model::Unigram(unigram) => {
                let text = unigram.normalise(&unescaped(text, false), self.add_space_prefix && at_start);
                self.vocab.split_at_spaces(&text, |word| {
                    words.encode(word, out, |out| unigram.encode(&self.vocab, word, out));
                });
            }
        }
    }

    /// What a token stands for in text: its bytes, nothing for control and unknown tokens.
    /// `None` for an id outside the vocabulary. May be part of a character.
    pub fn token_bytes(&self, id: u32) -> Option<Cow<'_, [u8]>> {
        let bytes = self.vocab.bytes(id)?;
        Some(Cow::Borrowed(match self.vocab.kind(id)? {
            TokenKind::Control | TokenKind::Unknown => &[],
            _ => bytes,
        }))
    }

    /// As [`Self::token_bytes`], but control and unknown tokens give their spelling.
    pub fn token_text(&self, id: u32) -> Option<&[u8]> {
        self.vocab.bytes(id)
    }

    /// A special token as chat templates write it; empty where there is none.
    pub fn spelling(&self, id: Option<u32>) -> Cow<'_, str> {
        String::from_utf8_lossy(id.and_then(|id| self.token_text(id)).unwrap_or_default())
    }

    /// The kind of a token. `None` for an id outside the vocabulary.
    pub fn token_kind(&self, id: u32) -> Option<TokenKind> {
        self.vocab.kind(id)
    }

    /// The lowest id of a token that stands for exactly these bytes; of any kind, so that
    /// control tokens can be found by their spelling. Walks the vocabulary.
    pub fn token_id(&self, text: impl AsRef<[u8]>) -> Option<u32> {
        self.vocab.find_any(text.as_ref())
    }

    /// The text of ids from its start, without control tokens and without the space that
    /// encoding puts in front. Ids outside the vocabulary give nothing.
    pub fn decode(&self, ids: &[u32]) -> Vec<u8> {
        self.decode_with(ids, DecodeOptions::default())
    }

    /// As [`Self::decode`], with options.
    pub fn decode_with(&self, ids: &[u32], opts: DecodeOptions) -> Vec<u8> {
        let mut out = Vec::with_capacity(ids.len() * 4);
        let mut at_start = !opts.continues;
        for &id in ids {
            out.extend_from_slice(self.piece(id, opts.show_special, &mut at_start));
        }
        out
    }

    /// The bytes of the next token; `at_start` is whether no text came before, and is kept
    /// up to date.
    pub(crate) fn piece(&self, id: u32, show_special: bool, at_start: &mut bool) -> &[u8] {
        let bytes = self.vocab.bytes(id).unwrap_or_default();
        *at_start |= self.special.bos == Some(id);
        match self.vocab.kind(id) {
            Some(TokenKind::Control | TokenKind::Unknown) if show_special => bytes,
            None | Some(TokenKind::Control | TokenKind::Unknown) => &[],
            Some(_) if bytes.is_empty() => bytes,
            Some(_) => {
                let strip = std::mem::take(at_start) && self.add_space_prefix;
                match bytes.strip_prefix(b" ") {
                    Some(rest) if strip => rest,
                    _ => bytes,
                }
            }
        }
    }

    /// Whether a generation is over with this token.
    pub fn is_end_of_generation(&self, id: u32) -> bool {
        self.end_tokens.binary_search_by_key(&id, |end| end.id).is_ok()
    }

    /// The tokens that end a generation, by id, and why each does.
    pub fn end_tokens(&self) -> &[EndToken] {
        &self.end_tokens
    }

    /// Number of tokens.
    pub fn n_vocab(&self) -> usize {
        self.vocab.len() as usize
    }

    /// Bytes that have no token: in text they become the unknown token, or U+FFFD if there is none. Byte-level vocabularies
    /// should have none of these; SentencePiece ones may.
    pub fn missing_bytes(&self) -> Vec<u8> {
        self.vocab.missing_bytes().collect()
    }

    /// Number of merges in use; 0 for SentencePiece.
    pub fn n_merges(&self) -> usize {
        match &self.model {
            Model::Bpe { bpe, .. } => bpe.n_merges(),
            Model::Spm(_) | Model::Unigram(_) => 0,
        }
    }

    /// The ids with a role.
    pub fn special(&self) -> &SpecialTokens {
        &self.special
    }

    /// Whether encoding with `add_special` starts with the begin token.
    pub fn adds_bos(&self) -> bool {
        self.add_bos
    }

    /// Where control tokens could be read that overlap user text: with their first byte in it, or with their last.
    pub(crate) fn control_edges(&self) -> ControlEdges<'_> {
        self.special_index.control_edges(&self.vocab)
    }

    /// Bytes on the heap that live as long as the tokenizer.
    pub fn heap_bytes(&self) -> usize {
        self.vocab.heap_bytes()
            + self.special_index.heap_bytes()
            + self.end_tokens.capacity() * size_of::<EndToken>()
            + self.strips.capacity() * size_of::<Strip>()
            + match &self.model {
                Model::Bpe { bpe, .. } => bpe.heap_bytes(),
                Model::Spm(spm) => spm.heap_bytes(),
                Model::Unigram(unigram) => unigram.heap_bytes(),
            }
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("n_vocab", &self.n_vocab())
            .field("special", &self.special)
            .finish_non_exhaustive()
    }
}

/// `text` with each `▁` as a space, which SentencePiece does not tell apart, and with `prefix` one more space in front.
fn unescaped(text: &[u8], prefix: bool) -> Cow<'_, [u8]> {
    let is_escaped = |window: &[u8]| window == ESCAPED_SPACE;
    if !prefix && !text.windows(ESCAPED_SPACE.len()).any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(1 + text.len());
    plain.extend(prefix.then_some(b' '));
    unescape_spaces(text, &mut plain);
    Cow::Owned(plain)
}
