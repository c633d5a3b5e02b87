//! `minfer inspect`: what is in a file, whether or not it can be run.

use super::open;
use crate::args::TextOutput;
use crate::describe::quantisation;
use crate::exit::Outcome;
use crate::output::{self, Table, mib, plain, shortened};
use crate::resolve::Inspect;
use anyhow::Result;
use minfer_gguf::{Array, GgufFile, TensorInfo, Value};
use minfer_model::{ModelSpec, TokenizerLoad, chat_template, load_spec, load_tokenizer};
use minfer_text::{TokenizerKind, TokenizerSpec};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Elements of an array that are shown.
const SHOWN_ELEMS: usize = 6;
/// Characters of a string that are shown as text; JSON has all of them.
const SHOWN_CHARS: usize = 80;

/// A file, and each reader's result: broken parts are shown as what they are.
struct Report<'a> {
    file: &'a GgufFile,
    spec: Result<ModelSpec, String>,
    tokenizer: Result<TokenizerLoad, String>,
    template: Result<Option<String>, String>,
}

/// Prints what is in a file.
pub fn inspect(settings: &Inspect) -> Result<Outcome> {
    let file = open::header(&settings.model)?;
    let report = Report {
        file: &file,
        spec: load_spec(&file).map_err(|error| error.to_string()),
        tokenizer: load_tokenizer(&file).map_err(|error| error.to_string()),
        template: chat_template(&file).map_err(|error| error.to_string()),
    };
    match settings.output {
        TextOutput::Json => output::answer_json(&report.json())?,
        TextOutput::Text => output::answer(|out| report.text(out, settings.tensors))?,
    }
    Ok(Outcome::Done)
}

impl Report<'_> {
    fn text(&self, out: &mut dyn Write, with_tensors: bool) -> io::Result<()> {
        let mut head = Table::default();
        for (index, part) in self.file.parts().iter().enumerate() {
            let path = part.path().map(|path| path.display().to_string()).unwrap_or_default();
            head.row([format!("part {}", index + 1), format!("{path} ({})", mib(part.file_bytes()))]);
        }
        let format = quantisation(self.file).map(|ty| format!(", mostly {ty}")).unwrap_or_default();
        head.row(["file".to_owned(), format!("GGUF version {}, {}{format}", self.file.version(), self.file.kind())]);
        head.row(["runs".to_owned(), self.spec.as_ref().map_or_else(|why| format!("no: {why}"), |_| "yes".into())]);
        head.row(["tokenizer".to_owned(), self.tokenizer_words()]);
        head.row(["template".to_owned(), self.template_words()]);
        head.write(out, "")?;
        for warning in self.tokenizer.iter().flat_map(|loaded| &loaded.warnings) {
            writeln!(out, "warning: {warning}")?;
        }
        if let Ok(spec) = &self.spec {
            writeln!(out, "\nhyper-parameters")?;
            let mut table = Table::default();
            for (name, value) in hyper(spec).filter(|(_, value)| !value.is_null()) {
                table.row([name.to_owned(), value.as_str().map_or_else(|| value.to_string(), plain)]);
            }
            table.write(out, "  ")?;
        }
        writeln!(out, "\nmetadata ({} entries)", self.file.metadata().len())?;
        let mut table = Table::default();
        for entry in self.file.metadata() {
            let value = shortened(&words(&entry.value), SHOWN_CHARS);
            table.row([plain(&entry.key), entry.value.value_type().to_string(), value]);
        }
        table.write(out, "  ")?;
        self.tensors_text(out, with_tensors)
    }

    fn tensors_text(&self, out: &mut dyn Write, with_tensors: bool) -> io::Result<()> {
        let tensors = self.file.tensors();
        let total: u64 = tensors.iter().map(|tensor| tensor.n_bytes).sum();
        writeln!(out, "\ntensors ({}, {})", tensors.len(), mib(total))?;
        let mut table = Table::new(if with_tensors { &[3, 4, 5] } else { &[1, 2] });
        if with_tensors {
            table.row(["name", "format", "shape", "bytes", "offset", "part"]);
            for tensor in tensors {
                table.row([
                    plain(&tensor.name),
                    tensor.ty.to_string(),
                    shape(tensor),
                    tensor.n_bytes.to_string(),
                    tensor.offset.to_string(),
                    (tensor.part + 1).to_string(),
                ]);
            }
        } else {
            let mut by_format: BTreeMap<String, (usize, u64)> = BTreeMap::new();
            for tensor in tensors {
                let sum = by_format.entry(tensor.ty.to_string()).or_default();
                *sum = (sum.0 + 1, sum.1 + tensor.n_bytes);
            }
            for (format, (count, bytes)) in by_format {
                table.row([format, count.to_string(), mib(bytes)]);
            }
        }
        table.write(out, "  ")
    }

    fn tokenizer_words(&self) -> String {
        match &self.tokenizer {
            Err(why) => format!("none that minfer reads: {why}"),
            Ok(loaded) => format!("{}, {} tokens", tokenizer_kind(&loaded.spec), loaded.spec.tokens.len()),
        }
    }

    fn template_words(&self) -> String {
        match &self.template {
            Err(why) => format!("broken: {why}"),
            Ok(None) => "none".into(),
            Ok(Some(text)) => {
                format!("{} characters: {}", text.chars().count(), shortened(&plain(text), SHOWN_CHARS))
            }
        }
    }

    fn json(&self) -> Json {
        let metadata: Map<String, Json> =
            self.file.metadata().iter().map(|entry| (entry.key.clone(), to_json(&entry.value))).collect();
        let tensors: Vec<Json> = self.file.tensors().iter().map(tensor_json).collect();
        let parts: Vec<Json> = self
            .file
            .parts()
            .iter()
            .map(|part| json!({ "path": part.path().map(|p| p.display().to_string()), "bytes": part.file_bytes() }))
            .collect();
        let tokenizer = match &self.tokenizer {
            Ok(TokenizerLoad { spec, warnings }) => {
                let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
                json!({ "kind": tokenizer_kind(spec), "n_tokens": spec.tokens.len(), "warnings": warnings })
            }
            Err(why) => json!({ "problem": why }),
        };
        let hyper_parameters: Option<Map<String, Json>> =
            self.spec.as_ref().ok().map(|spec| hyper(spec).map(|(name, value)| (name.to_owned(), value)).collect());
        json!({
            "version": self.file.version(),
            "kind": self.file.kind().to_string(),
            "bytes": self.file.file_bytes(),
            "parts": parts,
            "runs": self.spec.is_ok(),
            "problem": self.spec.as_ref().err(),
            "quantisation": quantisation(self.file).map(|ty| ty.to_string()),
            "hyper_parameters": hyper_parameters,
            "tokenizer": tokenizer,
            "chat_template": self.template.as_ref().ok(),
            "metadata": metadata,
            "tensors": tensors,
        })
    }
}

fn hyper(spec: &ModelSpec) -> impl Iterator<Item = (&'static str, Json)> {
    let first = spec.n_kv_head.first().copied().unwrap_or(0);
    let n_kv_head = if spec.n_kv_head.iter().all(|&n| n == first) { json!(first) } else { json!(spec.n_kv_head) };
    [
        ("arch", json!(spec.arch)),
        ("name", json!(spec.name)),
        ("n_layer", json!(spec.n_layer)),
        ("n_embd", json!(spec.n_embd)),
        ("n_head", json!(spec.n_head)),
        ("n_kv_head", n_kv_head),
        ("head_dim", json!(spec.head_dim)),
        ("n_ff", json!(spec.n_ff)),
        ("n_vocab", json!(spec.n_vocab)),
        ("n_ctx_train", json!(spec.n_ctx_train)),
        ("norm_eps", short(spec.norm_eps)),
        ("rope_dims", json!(spec.rope.n_dims)),
        ("rope_base", short(spec.rope.base)),
        ("window_tokens", json!(spec.options.window.as_ref().map(|window| window.n_tokens))),
        ("tied_output", json!(spec.options.tied_output)),
        ("weight_bytes", json!(spec.weights.total_bytes())),
    ]
    .into_iter()
}

/// The shortest number that is this one in single precision; JSON would show it in double.
fn short(value: f32) -> Json {
    value.to_string().parse::<f64>().map_or(Json::Null, |value| json!(value))
}

fn tokenizer_kind(spec: &TokenizerSpec) -> String {
    match &spec.kind {
        TokenizerKind::Bpe { pre, merges, .. } => {
            let level = if pre.is_byte_level() { "byte-level BPE" } else { "BPE" };
            format!("{level} ({}, {} merges)", pre.name(), merges.len())
        }
        TokenizerKind::Spm => "SentencePiece".into(),
        TokenizerKind::Unigram { .. } => "SentencePiece Unigram".into(),
    }
}

/// Sizes, outermost first.
fn shape(tensor: &TensorInfo) -> String {
    let dims: Vec<String> = tensor.dims.iter().rev().map(u64::to_string).collect();
    format!("[{}]", dims.join(", "))
}

fn tensor_json(tensor: &TensorInfo) -> Json {
    let dims: Vec<u64> = tensor.dims.iter().rev().copied().collect();
    json!({
        "name": tensor.name, "type": tensor.ty.to_string(), "shape": dims, "bytes": tensor.n_bytes,
        "offset": tensor.offset, "part": tensor.part,
    })
}

/// A value in one line; of an array its type, its length and its first elements.
fn words(value: &Value) -> String {
    match value.as_array() {
        Some(array) => {
            let (elems, all) = first_elems(array);
            let words: Vec<String> = elems.iter().map(|elem| elem.as_str().map_or(elem.to_string(), plain)).collect();
            format!("{array} {}{}", words.join(", "), if all { "" } else { ", …" })
        }
        None => value.to_string(),
    }
}

/// The same for programs; a long array is an object that says so.
fn to_json(value: &Value) -> Json {
    match value {
        Value::Bool(value) => json!(value),
        Value::F32(value) => short(*value),
        Value::F64(value) => json!(value),
        Value::String(text) => json!(String::from_utf8_lossy(text.as_bytes())),
        Value::Array(array) => match first_elems(array) {
            (elems, true) => json!(elems),
            (elems, false) => {
                json!({ "array_of": array.elem_type().name(), "len": array.len(), "first": elems })
            }
        },
        // Integers beyond 64 bits do not exist in files.
        other => other.as_int().map_or(Json::Null, |int| match u64::try_from(int) {
            Ok(int) => json!(int),
            Err(_) => json!(i64::try_from(int).unwrap_or(i64::MIN)),
        }),
    }
}

/// The first elements, and whether those are all.
fn first_elems(array: &Array) -> (Vec<Json>, bool) {
    let all = array.len() <= SHOWN_ELEMS;
    let elems: Vec<Json> = if let Some(strings) = array.strings() {
        strings.take(SHOWN_ELEMS).map(|bytes| json!(String::from_utf8_lossy(bytes))).collect()
    } else if let Some(ints) = array.ints() {
        ints.take(SHOWN_ELEMS).map(Json::from).collect()
    } else if let Some(floats) = array.f32s() {
        floats.take(SHOWN_ELEMS).map(short).collect()
    } else if let Some(bools) = array.bools() {
        bools.take(SHOWN_ELEMS).map(Json::from).collect()
    } else {
        return (Vec::new(), array.is_empty());
    };
    (elems, all)
}
