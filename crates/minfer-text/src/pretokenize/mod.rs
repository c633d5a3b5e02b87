//! Cuts text into words before the merges: takes bytes, gives consecutive slices that
//! together are the input. Must not know the vocabulary.
//!
//! A pre-tokenizer is a list of passes. The first cuts the text, each further one cuts
//! every piece again. Every pass is a linear scanner without backtracking; bytes that are
//! not UTF-8 count as symbols.

mod scan;

use scan::Pass;

/// A pre-tokenizer, by the family of models it was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PreTokenizer {
    /// SmolLM, StarCoder and others: each digit alone, then as GPT-2.
    Smollm,
    /// Qwen2, Qwen3: as Llama 3, but each digit alone.
    Qwen2,
    /// Qwen 3.5: as Qwen2, but combining marks belong to words.
    Qwen35,
    /// Llama 3: digits in groups of up to three.
    LlamaBpe,
    /// GPT-2.
    Gpt2,
    /// Falcon: punctuation runs, GPT-2, digits in groups of three.
    Falcon,
    /// DeepSeek-Coder: line ends, letters, punctuation, CJK and each digit alone.
    DeepseekCoder,
    /// Files that name no other: punctuation runs, GPT-2, digits in groups of three.
    Default,
}

/// Names as model files spell them, one row each.
const NAMES: &[(&str, PreTokenizer)] = &[
    ("default", PreTokenizer::Default),
    ("gpt-2", PreTokenizer::Gpt2),
    ("gpt2", PreTokenizer::Gpt2),
    ("phi-2", PreTokenizer::Gpt2),
    ("mpt", PreTokenizer::Gpt2),
    ("olmo", PreTokenizer::Gpt2),
    ("jina-es", PreTokenizer::Gpt2),
    ("jina-de", PreTokenizer::Gpt2),
    ("smollm", PreTokenizer::Smollm),
    ("starcoder", PreTokenizer::Smollm),
    ("refact", PreTokenizer::Smollm),
    ("command-r", PreTokenizer::Smollm),
    ("codeshell", PreTokenizer::Smollm),
    ("exaone", PreTokenizer::Smollm),
    ("llama-bpe", PreTokenizer::LlamaBpe),
    ("llama3", PreTokenizer::LlamaBpe),
    ("llama-v3", PreTokenizer::LlamaBpe),
    ("smaug-bpe", PreTokenizer::LlamaBpe),
    ("dbrx", PreTokenizer::LlamaBpe),
    ("falcon3", PreTokenizer::LlamaBpe),
    ("qwen2", PreTokenizer::Qwen2),
    ("deepseek-r1-qwen", PreTokenizer::Qwen2),
    ("stablelm2", PreTokenizer::Qwen2),
    ("hunyuan", PreTokenizer::Qwen2),
    ("qwen35", PreTokenizer::Qwen35),
    ("falcon", PreTokenizer::Falcon),
    ("deepseek-coder", PreTokenizer::DeepseekCoder),
];

impl PreTokenizer {
    /// The pre-tokenizer of this name; `None` for a name this table does not hold.
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find_map(|&(known, pre)| (known == name).then_some(pre))
    }

    /// Every name [`Self::from_name`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|&(name, _)| name)
    }

    fn passes(self) -> &'static [Pass] {
        match self {
            Self::Gpt2 => &[Pass::Gpt2],
            Self::Smollm => &[Pass::EachNumber, Pass::Gpt2],
            Self::LlamaBpe => &[Pass::Cl100k { max_digits: 3, marks_are_letters: false }],
            Self::Qwen2 => &[Pass::Cl100k { max_digits: 1, marks_are_letters: false }],
            Self::Qwen35 => &[Pass::Cl100k { max_digits: 1, marks_are_letters: true }],
            Self::Falcon => &[Pass::PunctuationRuns { backtick: true }, Pass::Gpt2, Pass::AsciiDigitTriples],
            Self::DeepseekCoder => {
                &[Pass::EachNewline, Pass::SpacedLetters, Pass::SpacedPunctuation, Pass::CjkRuns, Pass::EachNumber]
            }
            Self::Default => {
                &[Pass::PunctuationRuns { backtick: false }, Pass::Gpt2, Pass::NumberRuns, Pass::AsciiDigitTriples]
            }
        }
    }

    /// Calls `word` with each word of `text`, in order; the words are the whole text.
    pub fn split<'a>(self, text: &'a [u8], mut word: impl FnMut(&'a [u8])) {
        split(self.passes(), text, &mut word);
    }
}

fn split<'a>(passes: &[Pass], text: &'a [u8], word: &mut dyn FnMut(&'a [u8])) {
    let Some((pass, passes)) = passes.split_first() else {
        return word(text);
    };
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(pass.next_len(rest));
        split(passes, piece, word);
        rest = after;
    }
}
