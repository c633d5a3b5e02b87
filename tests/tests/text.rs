//! Text against published vocabularies, published chat templates and the real models, through the files themselves.
//! `cargo xtask fetch test` brings them; without them the tests fail.

use minfer_gguf::GgufFile;
use minfer_model::{ModelError, chat_template, tokenizer_spec};
use minfer_testkit::{model_path, models_dir};
use minfer_text::*;
use std::path::{Path, PathBuf};

/// What a published vocabulary is to this engine.
enum Vocabulary {
    /// It comes with texts and their ids.
    Ids,
    /// It comes without: texts only have to come back.
    RoundTrip,
    /// It normalises text, so that texts come back changed: they only have to be the same the second time, where
    /// no character is unknown.
    Normalised,
    /// Its algorithm is not supported: the key and the value that say so.
    Refused(&'static str, &'static str),
}
use Vocabulary::*;

const MODEL: &str = "tokenizer.ggml.model";

/// All of them, sorted: a new one in the fetched set fails the test until it has a row.
const VOCABULARIES: &[(&str, Vocabulary)] = &[
    ("aquila", RoundTrip),
    ("baichuan", RoundTrip),
    ("bert-bge", Refused(MODEL, "bert")),
    ("command-r", Ids),
    ("deepseek-coder", Ids),
    ("deepseek-llm", Ids),
    ("falcon", Ids),
    ("gemma-4", Ids),
    ("gpt-2", Ids),
    ("gpt-neox", RoundTrip),
    ("llama-bpe", Ids),
    ("llama-spm", Ids),
    ("mpt", Ids),
    ("nomic-bert-moe", Normalised),
    ("phi-3", Ids),
    ("qwen2", Ids),
    ("qwen35", Ids),
    ("refact", Ids),
    ("starcoder", Ids),
];

/// Every vocabulary comes with these or a few more.
const N_TEXTS: usize = 46;
const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };

/// Names of the files in a fetched folder that end so, without that end, sorted.
fn fetched(folder: &str, end: &str) -> Vec<String> {
    let path = models_dir().join(folder);
    let Ok(entries) = std::fs::read_dir(&path) else {
        panic!("{} is missing; run `cargo xtask fetch test`", path.display());
    };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(end)?.to_owned())).collect();
    names.sort();
    assert!(!names.is_empty(), "{} has no {end}; run `cargo xtask fetch test`", path.display());
    names
}

fn read(path: &Path) -> String {
    let hint = "run `cargo xtask fetch test`";
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}; {hint}", path.display()))
}

fn vocabulary(name: &str, end: &str) -> PathBuf {
    models_dir().join("vocab").join(format!("ggml-vocab-{name}.gguf{end}"))
}

/// The texts published with a vocabulary.
fn texts(name: &str) -> Vec<String> {
    let all = read(&vocabulary(name, ".inp"));
    let mut texts: Vec<String> = all.split("\n__ggml_vocab_test__\n").map(str::to_owned).collect();
    // In most files a separator follows the last text.
    texts.pop_if(|text| text.is_empty());
    assert!(texts.len() >= N_TEXTS, "{name}: only {} texts", texts.len());
    texts
}

fn tokenizer(file: &GgufFile) -> Tokenizer {
    Tokenizer::new(tokenizer_spec(file).expect("a supported tokenizer")).expect("a valid specification")
}

/// As a whole and token by token.
fn decoded(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let whole = String::from_utf8(tokenizer.decode(ids)).expect("UTF-8");
    let mut stream = StreamDecoder::new(tokenizer);
    let mut pieces: String = ids.iter().map(|&id| stream.push(id).to_owned()).collect();
    pieces += stream.finish();
    assert_eq!(pieces, whole);
    whole
}

#[test]
fn published_vocabularies_give_the_published_ids() {
    let names: Vec<String> = VOCABULARIES.iter().map(|(name, _)| format!("ggml-vocab-{name}")).collect();
    assert_eq!(fetched("vocab", ".gguf"), names);
    let mut wrong = Vec::new();
    for (name, vocabulary_is) in VOCABULARIES {
        let file = GgufFile::open(vocabulary(name, "")).unwrap();
        let with_ids = match vocabulary_is {
            Ids => true,
            RoundTrip | Normalised => false,
            Refused(expected_key, expected) => {
                match tokenizer_spec(&file) {
                    Err(ModelError::UnsupportedTokenizer { key, got, supported }) => {
                        assert_eq!((key, got.as_str()), (*expected_key, *expected), "{name}");
                        assert!(!supported.is_empty());
                    }
                    other => panic!("{name}: {:?}", other.map(drop)),
                }
                continue;
            }
        };
        let tokenizer = tokenizer(&file);
        let texts = texts(if with_ids { name } else { "qwen2" });
        let expected = if with_ids { read(&vocabulary(name, ".out")) } else { String::new() };
        let mut expected = expected.lines();
        for text in &texts {
            let ids = tokenizer.encode(text, PLAIN);
            if with_ids {
                let line = expected.next().unwrap_or_else(|| panic!("{name}: too few lines of ids"));
                let line: Vec<u32> = line.split_whitespace().map(|id| id.parse().unwrap()).collect();
                if ids != line {
                    wrong.push(format!("{name} {text:?}\n  got      {ids:?}\n  expected {line:?}"));
                }
            }
            let back = decoded(&tokenizer, &ids);
            let is_same = match vocabulary_is {
                Normalised => {
                    let is_unknown = |id| Some(id) == tokenizer.special().unk;
                    ids.iter().any(|&id| is_unknown(id)) || tokenizer.encode(&back, PLAIN) == ids
                }
                _ => back == *text,
            };
            if !is_same {
                wrong.push(format!("{name} {text:?}\n  comes back as {back:?}"));
            }
        }
        assert_eq!(expected.next(), None, "{name}: too many lines of ids");
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Rows of ids for texts whose tokenization has been wrong elsewhere: Llama 3, Qwen2, Llama 2, each without begin token.
const TABLE: &[(&str, [&[u32]; 3])] = &[
    (
        "ied 4 ½ months",
        [
            &[1142, 220, 19, 220, 27154, 4038],
            &[1122, 220, 19, 220, 26062, 3951],
            &[474, 287, 29871, 29946, 29871, 30226, 7378],
        ],
    ),
    ("", [&[], &[], &[]]),
    (" ", [&[220], &[220], &[259]]),
    ("  ", [&[256], &[256], &[1678]]),
    ("   ", [&[262], &[262], &[268]]),
    ("\t", [&[197], &[197], &[29871, 12]]),
    ("\n", [&[198], &[198], &[29871, 13]]),
    ("\n\n", [&[271], &[271], &[29871, 13, 13]]),
    ("\n\n\n", [&[1432], &[1406], &[29871, 13, 13, 13]]),
    ("\t\n", [&[1602], &[1572], &[29871, 12, 13]]),
    ("Hello world", [&[9906, 1917], &[9707, 1879], &[15043, 3186]]),
    (" Hello world", [&[22691, 1917], &[21927, 1879], &[29871, 15043, 3186]]),
    (" Hello, world!", [&[22691, 11, 1917, 0], &[21927, 11, 1879, 0], &[29871, 15043, 29892, 3186, 29991]]),
    (
        " this is 🦙.cpp",
        [
            &[420, 374, 11410, 99, 247, 13, 11055],
            &[419, 374, 11162, 99, 247, 13, 10821],
            &[29871, 445, 338, 29871, 243, 162, 169, 156, 29889, 8223],
        ],
    ),
    (
        "    Hello\n    Hello",
        [&[262, 22691, 198, 262, 22691], &[262, 21927, 198, 262, 21927], &[268, 15043, 13, 1678, 15043]],
    ),
    ("\n =", [&[198, 284], &[198, 284], &[29871, 13, 353]]),
    ("' era", [&[6, 11639], &[6, 11385], &[525, 3152]]),
    (" (", [&[320], &[320], &[29871, 313]]),
    ("3", [&[18], &[18], &[29871, 29941]]),
    ("33", [&[1644], &[18, 18], &[29871, 29941, 29941]]),
    ("333", [&[8765], &[18, 18, 18], &[29871, 29941, 29941, 29941]]),
    ("3333", [&[8765, 18], &[18; 4], &[29871, 29941, 29941, 29941, 29941]]),
    ("33333", [&[8765, 1644], &[18; 5], &[29871, 29941, 29941, 29941, 29941, 29941]]),
];

#[test]
fn texts_that_were_wrong_elsewhere() {
    let tokenizers = ["llama-bpe", "qwen2", "llama-spm"].map(|name| {
        let file = GgufFile::open(vocabulary(name, "")).unwrap();
        tokenizer(&file)
    });
    for (text, rows) in TABLE {
        for (tokenizer, expected) in tokenizers.iter().zip(rows) {
            let ids = tokenizer.encode(text, PLAIN);
            assert_eq!(ids, *expected, "{text:?}");
            assert_eq!(decoded(tokenizer, &ids), *text);
        }
    }
    let [llama3, ..] = &tokenizers;
    // A word that is a token wins over all merges; half a character is tokens as well.
    assert_eq!(llama3.encode(" Việt", PLAIN), [101_798]);
    assert_eq!(llama3.encode("歪", PLAIN), [15722, 103]);
    assert_eq!(llama3.encode([0xe6, 0xad], PLAIN), [15722]);
    let long = ["a".repeat(26_000), "A".repeat(43_000), "Z".repeat(128_000), "\n".repeat(100_000), " ".repeat(100_000)];
    for tokenizer in &tokenizers {
        for text in &long {
            assert_eq!(decoded(tokenizer, &tokenizer.encode(text, PLAIN)), *text);
        }
    }
}

const SYSTEM: &str = "Answer in one word.";
const QUESTION: &str = "What is the capital of France?";

/// The models, the template of each, and which token opens and closes a turn. A file without a template (a base model) is
/// tried with its family's.
const MODELS: &[(&str, Option<&str>, &str, &str)] = &[
    ("smollm2-135m-instruct-q4_1.gguf", None, "<|im_start|>", "<|im_end|>"),
    ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", None, "<|im_start|>", "<|im_end|>"),
    ("gemma3-270m-q4_k_m.gguf", Some("google-gemma-2-2b-it"), "<start_of_turn>", "<end_of_turn>"),
];

#[test]
fn real_models_keep_user_text_apart_from_control_tokens() {
    for &(model, family, open, close) in MODELS {
        let file = GgufFile::open(model_path(model)).unwrap();
        let tokenizer = tokenizer(&file);
        let own = chat_template(&file).unwrap();
        assert_eq!(own.is_none(), family.is_some(), "{model}");
        let source = own.unwrap_or_else(|| {
            read(&models_dir().join("templates").join(format!("{}.jinja", family.expect("a family"))))
        });
        let template = ChatTemplate::new(&source).unwrap();
        let spelled = |id: u32| String::from_utf8(tokenizer.token_text(id).unwrap().to_vec()).unwrap();
        let special = tokenizer.special();
        let (bos_token, eos_token) = (special.bos.map(spelled).unwrap(), special.eos.map(spelled).unwrap());
        let controls: Vec<u32> = (0..tokenizer.n_vocab() as u32)
            .filter(|&id| matches!(tokenizer.token_kind(id), Some(TokenKind::Control | TokenKind::Unknown)))
            .collect();
        assert!(controls.len() >= 4, "{model}: only {} control tokens", controls.len());
        let render = |user: &str| {
            let mut messages = vec![Message::new("user", user)];
            if family.is_none() {
                messages.insert(0, Message::new("system", SYSTEM));
            }
            let input = ChatInput {
                messages: &messages,
                add_generation_prompt: true,
                bos_token: &bos_token,
                eos_token: &eos_token,
                ..ChatInput::default()
            };
            let prompt = template.render_prompt(&input, &tokenizer).unwrap();
            assert!(prompt.text().contains(user), "{model}: {:?}", prompt.text());
            assert_eq!(prompt.text(), template.render(&input).unwrap(), "{model}");
            let ids = tokenizer.encode_prompt(&prompt);
            let all = DecodeOptions { show_special: true, continues: false };
            assert_eq!(String::from_utf8(tokenizer.decode_with(&ids, all)).unwrap(), prompt.text(), "{model}");
            ids
        };
        let only_controls =
            |ids: &[u32]| -> Vec<u32> { ids.iter().copied().filter(|id| controls.binary_search(id).is_ok()).collect() };
        let [open, close] = [open, close].map(|text| tokenizer.token_id(text).unwrap());
        let turns = if family.is_none() { vec![open, close, open, close, open] } else { vec![open, close, open] };
        // The begin token once where the model wants it, and not where it does not; SmolLM2's is the mark of a turn.
        let begin = if tokenizer.adds_bos() { special.bos } else { None };
        let expected: Vec<u32> = begin.into_iter().chain(turns).collect();
        assert_eq!(only_controls(&render(QUESTION)), expected, "{model}");
        let attack: String = controls.iter().map(|&id| format!("{} x", spelled(id))).collect();
        assert_eq!(only_controls(&render(&format!("a {attack}"))), expected, "{model}");
        for &id in controls.iter().step_by(controls.len().div_ceil(200)) {
            for user in [format!("{}a", spelled(id)), format!("a\n{0}{0}", spelled(id))] {
                assert_eq!(only_controls(&render(&user)), expected, "{model}: {user:?}");
            }
        }
    }
}
