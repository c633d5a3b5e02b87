//! Published vocabularies against their published ids. Takes the folder in
//! `MINFER_TEXT_VOCABS`: `NAME.json` (see `dump`) with `NAME.inp` and `NAME.out`
//! (texts between `__ggml_vocab_test__` lines, ids one line each), or `NAME.golden.json`
//! (cases with `prompt` and `ids`). Without the folder there is nothing to check.

use crate::dump;
use std::path::PathBuf;
use std::time::Instant;

use minfer_text::{EncodeOptions, StreamDecoder, Tokenizer};

#[test]
fn ids_are_the_published_ones() {
    let Some(folder) = std::env::var_os("MINFER_TEXT_VOCABS").map(PathBuf::from) else {
        return;
    };
    let mut wrong = Vec::new();
    let mut names: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.to_string_lossy();
            name.ends_with(".json") && !name.ends_with(".golden.json")
        })
        .collect();
    names.sort();
    for path in names {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let dump = dump::dump(&path);
        let Some(spec) = dump::spec(&dump) else {
            println!("{name}: not supported");
            continue;
        };
        let started = Instant::now();
        let tokenizer = Tokenizer::new(spec).unwrap();
        let elapsed = started.elapsed();
        println!(
            "{name}: built in {elapsed:.1?}, {} tokens, {} merges, {:.2} MB, ends {:?}",
            tokenizer.n_vocab(),
            tokenizer.n_merges(),
            tokenizer.heap_bytes() as f64 / 1e6,
            tokenizer
                .end_tokens()
                .iter()
                .map(|end| String::from_utf8_lossy(tokenizer.token_text(end.id).unwrap()))
                .collect::<Vec<_>>()
        );
        let plain = EncodeOptions::default();
        let mut cases: Vec<(String, Vec<u32>, EncodeOptions)> = Vec::new();
        if let Ok(texts) = std::fs::read_to_string(path.with_extension("inp")) {
            let ids = std::fs::read_to_string(path.with_extension("out")).unwrap();
            let texts = texts.split("\n__ggml_vocab_test__\n");
            for (text, ids) in texts.zip(ids.lines()) {
                let ids = ids.split_whitespace().map(|id| id.parse().unwrap());
                cases.push((text.to_owned(), ids.collect(), plain));
            }
        }
        if let Ok(golden) = std::fs::read(path.with_extension("golden.json")) {
            let golden: serde_json::Value = serde_json::from_slice(&golden).unwrap();
            for case in golden["cases"].as_array().unwrap() {
                let opts = EncodeOptions { add_special: true, parse_special: true };
                cases.push((
                    case["prompt"].as_str().unwrap().to_owned(),
                    serde_json::from_value(case["ids"].clone()).unwrap(),
                    opts,
                ));
            }
        }
        let mut right = 0;
        for (text, expected, opts) in &cases {
            let ids = tokenizer.encode(text, *opts);
            let decoded = String::from_utf8(tokenizer.decode(&ids)).unwrap();
            let mut stream = StreamDecoder::new(&tokenizer);
            let mut streamed: String = ids.iter().map(|&id| stream.push(id).to_owned()).collect();
            streamed += stream.finish();
            if ids != *expected {
                wrong.push(format!("{name} {text:?}\n  got {ids:?}\n  expected {expected:?}"));
            } else if decoded != *text && !opts.parse_special || streamed != decoded {
                wrong.push(format!("{name} {text:?} decodes to {decoded:?}, {streamed:?}"));
            } else {
                right += 1;
            }
        }
        let prose = cases.iter().map(|case| case.0.as_str()).collect::<String>().repeat(600);
        let started = Instant::now();
        let n = tokenizer.encode(&prose, plain).len();
        let took = started.elapsed();
        println!(
            "{name}: {right} of {} right, {n} ids at {:.1} MB/s",
            cases.len(),
            prose.len() as f64 / 1e6 / took.as_secs_f64()
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
