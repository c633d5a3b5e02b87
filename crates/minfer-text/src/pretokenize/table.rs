//! The one table of pre-tokenizers: takes nothing, gives a row for each rule with the names that model files use for it.
//! Must not know how a rule is run.
//!
//! The patterns are those of the published `tokenizer.json` files; the names, and which of them take whole words or begin
//! with the first token, are those that the GGUF converters write (`tokenizer.ggml.pre`) and that llama.cpp reads.

use super::class::Set;
use super::ranges::*;
use super::scan::{Alternative, Edges, Pass, Run};
use crate::vocab::Spelling;

/// A rule and its names.
#[derive(Debug)]
pub(super) struct Row {
    /// As model files spell them.
    pub(super) names: &'static [&'static str],
    /// Each cuts the pieces of the one before.
    pub(super) passes: &'static [Pass],
    /// Whether a word that is a token is taken as a whole, before any merge.
    pub(super) whole_words: bool,
    /// Whether a text begins with the first token where the file does not say.
    pub(super) adds_bos: bool,
    /// How tokens and merges are spelled.
    pub(super) spelling: Spelling,
}

const fn row(names: &'static [&'static str], passes: &'static [Pass]) -> Row {
    Row { names, passes, whole_words: false, adds_bos: false, spelling: Spelling::ByteMap }
}

/// Every rule.
pub(super) const TABLE: &[Row] = &[
    row(
        &["default"],
        &[
            Pass::Match(&[run(Set::PUNCTUATION.or(Set::SYMBOL_ASCII))]),
            GPT2,
            Pass::Match(&[run(Set::NUMBER)]),
            Pass::Match(&[counted(Set::DIGIT_ASCII, 3, 3)]),
        ],
    ),
    row(
        &[
            "gpt-2",
            "gpt2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "exaone4",
            "gigachat",
            "mellum",
            "a.x-4.0",
            "modern-bert",
            "roberta-bpe",
            "jina-es",
            "jina-de",
            "jina-v1-en",
            "jina-v2-es",
            "jina-v2-de",
            "jina-v2-code",
        ],
        &[GPT2],
    ),
    row(
        &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"],
        &[EACH_NUMBER, GPT2],
    ),
    Row {
        whole_words: true,
        adds_bos: true,
        ..row(
            &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"],
            &[LLAMA3],
        )
    },
    Row { whole_words: true, ..row(&["glm4", "glm5"], &[LLAMA3]) },
    row(&["chatglm-bpe", "chatglm4", "dbrx", "smaug-bpe", "smaug"], &[LLAMA3]),
    row(
        &[
            "qwen2",
            "deepseek-r1-qwen",
            "stablelm2",
            "hunyuan",
            "megrez",
            "solar-open",
            "grok-2",
            "bailingmoe",
            "bailingmoe2",
            "llada-moe",
            "kormo",
            "f2llmv2",
        ],
        &[QWEN2],
    ),
    row(
        &["qwen35"],
        &[Pass::Match(&[
            CONTRACTION,
            word(NOT_LINE_LETTER_NUMBER, Set::LETTER.or(Set::MARK)),
            counted(Set::NUMBER, 1, 1),
            symbols(Set::SPACE.or(Set::LETTER).or(Set::MARK).or(Set::NUMBER).not(), Set::NEWLINE),
            Alternative::LineEnd,
            Alternative::Spaces,
        ])],
    ),
    row(
        &["falcon"],
        &[
            Pass::Match(&[run(Set::PUNCTUATION.or(Set::SYMBOL_ASCII).or(Set::BACKTICK))]),
            GPT2,
            Pass::Match(&[counted(Set::DIGIT_ASCII, 3, 3)]),
        ],
    ),
    row(
        &["deepseek-llm"],
        &[
            Pass::Match(&[counted(Set::NEWLINE, 1, 1)]),
            Pass::Match(&[Alternative::Ranges { before: Set::SPACE, ranges: DEEPSEEK_LETTERS }]),
            Pass::Match(&[Alternative::Ranges { before: Set::SPACE, ranges: DEEPSEEK_SIGNS }]),
            Pass::Match(&[Alternative::SpacesAtEnd]),
            Pass::Match(&[Alternative::Ranges { before: Set::NONE, ranges: DEEPSEEK_CJK }]),
            Pass::Match(&[run(Set::NUMBER)]),
        ],
    ),
    row(
        &["deepseek-coder"],
        &[
            Pass::Match(&[counted(Set::NEWLINE, 1, 1)]),
            Pass::Match(&[word(Set::SPACE, Set::LETTER)]),
            Pass::Match(&[word(Set::SPACE, Set::PUNCTUATION)]),
            Pass::Match(&[Alternative::Ranges { before: Set::NONE, ranges: DEEPSEEK_CJK }]),
            EACH_NUMBER,
        ],
    ),
    row(
        &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        &[
            NUMBERS_OF_3,
            Pass::Match(&[Alternative::Ranges { before: Set::NONE, ranges: CJK_AND_KANA }]),
            DEEPSEEK_V3_WORDS,
        ],
    ),
    row(
        &["spark2_5"],
        &[
            NUMBERS_OF_3,
            Pass::Match(&[Alternative::Ranges { before: Set::NONE, ranges: CJK_AND_KANA }]),
            Pass::Match(&[
                Alternative::Pair { first: Set::SIGN_ASCII, body: Set::LETTER_ASCII },
                DEEPSEEK_V3_WORD,
                symbols(Set::SIGN, Set::NONE),
                counted(Set::NEWLINE, 1, 1),
                Alternative::Spaces,
            ]),
            EACH_NUMBER,
        ],
    ),
    row(
        &["afmoe"],
        &[
            Pass::ThreesFromTheRight { set: Set::NUMBER, edges: Edges::Cut },
            Pass::Match(&[Alternative::Ranges { before: Set::NONE, ranges: ASIAN_SCRIPTS }]),
            DEEPSEEK_V3_WORDS,
        ],
    ),
    row(&["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"], &[GPT4O]),
    Row { whole_words: true, ..row(&["granite-embed-multi-97m"], &[GPT4O]) },
    row(
        &["tiny_aya", "cohere2moe"],
        &[Pass::ThreesFromTheRight { set: Set::DIGIT, edges: Edges::CutAtWordEnd }, GPT4O],
    ),
    Row {
        whole_words: true,
        adds_bos: true,
        ..row(
            &["tekken"],
            &[Pass::Match(&[
                cased_word(Set::NONE, false),
                counted(Set::NUMBER, 1, 1),
                symbols(NOT_SPACE_LETTER_NUMBER, Set::NEWLINE.or(Set::SLASH)),
                Alternative::LineEnd,
                Alternative::Spaces,
            ])],
        )
    },
    Row {
        whole_words: true,
        ..row(
            &["youtu"],
            &[
                Pass::Match(&[
                    Alternative::Ranges { before: Set::NONE, ranges: HANGUL },
                    Alternative::Ranges { before: Set::NONE, ranges: CJK_SIGNS },
                    Alternative::Ranges { before: Set::NONE, ranges: BOPOMOFO },
                    Alternative::Ranges { before: Set::NONE, ranges: CJK_AND_KANA },
                ]),
                Pass::Match(&[
                    cased_word(Set::NONE, true),
                    counted(Set::NUMBER, 1, 1),
                    symbols(NOT_SPACE_LETTER_NUMBER, Set::NEWLINE.or(Set::SLASH)),
                    Alternative::LineEnd,
                    Alternative::Spaces,
                ]),
            ],
        )
    },
    row(
        &["kimi-k2"],
        &[Pass::Match(&[
            run(Set::HAN),
            cased_word(Set::HAN, true),
            counted(Set::NUMBER, 1, 3),
            symbols(NOT_SPACE_LETTER_NUMBER, Set::NEWLINE),
            Alternative::LineEnd,
            Alternative::Spaces,
        ])],
    ),
    row(&["bloom", "poro-chat", "gpt3-finnish"], &[BLOOM]),
    row(&["viking"], &[BLOOM, EACH_NUMBER]),
    row(
        &["superbpe"],
        &[Pass::Match(&[run(Set::NUMBER)]), Pass::ThreesFromTheRight { set: Set::DIGIT, edges: Edges::Joined }],
    ),
    row(
        &["seed-coder"],
        &[Pass::Match(&[
            CONTRACTION,
            WORD,
            counted(Set::NUMBER, 1, 1),
            symbols(NOT_SPACE_LETTER_NUMBER, Set::NONE),
            Alternative::LineEnd,
            Alternative::Spaces,
        ])],
    ),
    row(
        &["ufakzeka"],
        &[Pass::Match(&[
            WORD,
            counted(Set::NUMBER, 1, 1),
            symbols(NOT_SPACE_LETTER_NUMBER, Set::NEWLINE),
            Alternative::LineEnd,
            Alternative::Spaces,
        ])],
    ),
    row(&["laguna"], &[Pass::Match(&[run(Set::LINE_FEED.not()), run(Set::LINE_FEED)]), QWEN2]),
    row(
        &["exaone-moe"],
        &[Pass::Match(&[
            CONTRACTION,
            Alternative::Phrase { before: NOT_LINE_LETTER_NUMBER },
            counted(Set::NUMBER, 1, 1),
            Alternative::Run(Run {
                before: Set::BLANK,
                after: Set::NEWLINE,
                max_after: 1,
                ..Run::of(NOT_SPACE_LETTER_NUMBER)
            }),
            Alternative::LineEnd,
            Alternative::Spaces,
        ])],
    ),
    Row {
        whole_words: true,
        ..row(
            &["minicpm5"],
            &[
                NUMBERS_OF_3,
                Pass::Match(&[
                    CONTRACTION,
                    WORD,
                    run(Set::NUMBER),
                    symbols(NOT_SPACE_LETTER_NUMBER, Set::NEWLINE),
                    Alternative::LineEnd,
                    Alternative::Spaces,
                ]),
            ],
        )
    },
    row(&["jais-2"], &[LLAMA3, Pass::SpacesInPowersOfTwo]),
    // The whole text is one word.
    Row { adds_bos: true, spelling: Spelling::Sentencepiece, ..row(&["gemma4"], &[]) },
    Row { spelling: Spelling::Sentencepiece, ..row(&["sarvam-moe", "granite-embed-multi-311m"], &[]) },
];

/// `[^\r\n\p{L}\p{N}]`
const NOT_LINE_LETTER_NUMBER: Set = Set::NEWLINE.or(Set::LETTER).or(Set::NUMBER).not();
/// `[^\s\p{L}\p{N}]`
const NOT_SPACE_LETTER_NUMBER: Set = Set::SPACE.or(Set::LETTER).or(Set::NUMBER).not();

/// `set{min,max}`
const fn counted(set: Set, min: usize, max: usize) -> Alternative {
    Alternative::Run(Run { min, max, ..Run::of(set) })
}

/// `set+`
const fn run(set: Set) -> Alternative {
    Alternative::Run(Run::of(set))
}

/// `before?set+`
const fn word(before: Set, set: Set) -> Alternative {
    Alternative::Run(Run { before, ..Run::of(set) })
}

/// ` ?set+after*`
const fn symbols(set: Set, after: Set) -> Alternative {
    Alternative::Run(Run { before: Set::BLANK, after, ..Run::of(set) })
}

/// `[^\r\n\p{L}\p{N}]?` and a word that begins with capitals or has none, of no character in `except`.
const fn cased_word(except: Set, contraction: bool) -> Alternative {
    Alternative::CasedWord {
        before: NOT_LINE_LETTER_NUMBER,
        upper: Set::UPPER.without(except),
        lower: Set::LOWER.without(except),
        contraction,
    }
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
const CONTRACTION: Alternative = Alternative::Contraction { ignore_case: true };
/// `[^\r\n\p{L}\p{N}]?\p{L}+`
const WORD: Alternative = word(NOT_LINE_LETTER_NUMBER, Set::LETTER);
/// `[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+`
const DEEPSEEK_V3_WORD: Alternative = word(Set::NEWLINE.or(Set::LETTER).or(Set::SIGN).not(), Set::LETTER.or(Set::MARK));

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
const GPT2: Pass = Pass::Match(&[
    Alternative::Contraction { ignore_case: false },
    word(Set::BLANK, Set::LETTER),
    word(Set::BLANK, Set::NUMBER),
    word(Set::BLANK, NOT_SPACE_LETTER_NUMBER),
    Alternative::Spaces,
]);
/// `\p{N}`
const EACH_NUMBER: Pass = Pass::Match(&[counted(Set::NUMBER, 1, 1)]);
/// `\p{N}{1,3}`
const NUMBERS_OF_3: Pass = Pass::Match(&[counted(Set::NUMBER, 1, 3)]);
/// `CONTRACTION|WORD|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
const LLAMA3: Pass = Pass::Match(&[
    CONTRACTION,
    WORD,
    counted(Set::NUMBER, 1, 3),
    symbols(NOT_SPACE_LETTER_NUMBER, Set::NEWLINE),
    Alternative::LineEnd,
    Alternative::Spaces,
]);
/// As Llama 3, but `\p{N}`.
const QWEN2: Pass = Pass::Match(&[
    CONTRACTION,
    WORD,
    counted(Set::NUMBER, 1, 1),
    symbols(NOT_SPACE_LETTER_NUMBER, Set::NEWLINE),
    Alternative::LineEnd,
    Alternative::Spaces,
]);
/// `SIGN_ASCII[A-Za-z]+|DEEPSEEK_V3_WORD| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
const DEEPSEEK_V3_WORDS: Pass = Pass::Match(&[
    Alternative::Pair { first: Set::SIGN_ASCII, body: Set::LETTER_ASCII },
    DEEPSEEK_V3_WORD,
    symbols(Set::SIGN, Set::NEWLINE),
    Alternative::LineEnd,
    Alternative::Spaces,
]);
/// Cased words with contractions, `\p{N}{1,3}`, ` ?[^\s\p{L}\p{N}]+[\r\n/]*`, `\s*[\r\n]+`, `\s+(?!\S)`, `\s+`
const GPT4O: Pass = Pass::Match(&[
    cased_word(Set::NONE, true),
    counted(Set::NUMBER, 1, 3),
    symbols(NOT_SPACE_LETTER_NUMBER, Set::NEWLINE.or(Set::SLASH)),
    Alternative::LineEnd,
    Alternative::Spaces,
]);
/// ` ?[^(\s|.,!?…。，、।۔،)]+`
const BLOOM: Pass = Pass::Match(&[Alternative::Ranges { before: Set::BLANK, ranges: BLOOM_WORDS }]);
