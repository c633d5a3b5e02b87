//! The one error type of this crate. Gives fields, not prose; must not know who asked.

/// What can be wrong with a tokenizer specification or a chat template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The vocabulary has no token.
    #[error("the vocabulary is empty")]
    EmptyVocabulary,
    /// The vocabulary or the merges do not fit 32-bit offsets or ids.
    #[error("{what}: {got} exceeds the limit of {limit}")]
    TooLarge {
        /// What was counted, with its unit.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The size asked for.
        got: u64,
    },
    /// A special token id is not an id of the vocabulary.
    #[error("{role} token id {id} is not below the vocabulary size {n_vocab}")]
    SpecialIdOutOfRange {
        /// `bos`, `eos`, `eot`, `eom`, `unk` or `pad`.
        role: &'static str,
        /// The id given.
        id: u32,
        /// Number of tokens in the vocabulary.
        n_vocab: u32,
    },
    /// A flag asks for a special token that the specification does not name.
    #[error("{flag} is set, but there is no {role} token id")]
    SpecialMissing {
        /// The flag: `add_bos` or `add_eos`.
        flag: &'static str,
        /// The token it needs: `bos` or `eos`.
        role: &'static str,
    },
    /// A SentencePiece vocabulary has fewer scores than tokens.
    #[error("{got} scores for {expected} tokens")]
    ScoresMissing {
        /// Number of tokens.
        expected: usize,
        /// Number of scores.
        got: usize,
    },
    /// A line of the merges that is no pair.
    #[error(
        "merge {rank} (counted from 0), `{}`, is no pair of tokens; the vocabulary is damaged, get or convert the file again",
        line.escape_debug()
    )]
    MergeWithoutPair {
        /// Its rank.
        rank: u32,
        /// The line, or its start.
        line: String,
    },
    /// A merge of what the vocabulary does not have, or to it.
    #[error(
        "merge {rank} (counted from 0), `{}`, needs `{}`, which is no token; the vocabulary is damaged, get or convert the \
         file again",
        line.escape_debug(),
        piece.escape_debug()
    )]
    MergeOfNoToken {
        /// Its rank.
        rank: u32,
        /// The line, or its start.
        line: String,
        /// Left or right part, or both together.
        piece: String,
    },
    /// Some bytes have no token, and neither unknown text nor U+FFFD has one that could stand for them.
    #[error(
        "{n_missing} bytes that text can hold have no token (the first is 0x{first:02X}), and nothing can stand for them"
    )]
    BytesMissing {
        /// How many of the bytes that occur in text.
        n_missing: usize,
        /// The lowest of them.
        first: u8,
    },
    /// The normalisation table of a Unigram tokenizer is damaged.
    #[error("the table of normalised characters has {got} bytes where {expected} are needed")]
    CharsMap {
        /// Bytes that its header asks for, or of a header.
        expected: u64,
        /// Bytes there are.
        got: u64,
    },
    /// The chat template does not compile.
    #[error("chat template, line {}: {message}", line.map_or("?".to_owned(), |line| line.to_string()))]
    TemplateSyntax {
        /// The template engine's message.
        message: String,
        /// Line of the template, counted from 1, where known.
        line: Option<usize>,
    },
    /// The chat template refused its input with `raise_exception`.
    #[error("the chat template refuses this conversation: {message}")]
    TemplateRefused {
        /// The template's own message.
        message: String,
    },
    /// The chat template failed while it ran.
    #[error("chat template, line {}: {message}", line.map_or("?".to_owned(), |line| line.to_string()))]
    TemplateFailed {
        /// The template engine's message.
        message: String,
        /// Line of the template, counted from 1, where known.
        line: Option<usize>,
    },
    /// The chat template used more than it may.
    #[error("the chat template exceeds its limit of {limit} {what}")]
    TemplateLimit {
        /// What ran out: `steps`, `bytes of output` or `bytes of template`.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// No stack for the values that a template might nest in each other.
    #[error(
        "the system starts no thread with a stack of {bytes} bytes, which the chat template could need for this \
         conversation: {reason}; a shorter one needs less stack"
    )]
    TemplateStack {
        /// Bytes of addresses asked for.
        bytes: u64,
        /// What the system says.
        reason: String,
    },
    /// The conversation holds every code point that could mark guarded text.
    #[error("the conversation uses all of the noncharacters U+FDD0..=U+FDEF")]
    NoFreeGuard,
}
