//! JSON ↔ template values: takes either, gives the other, spelled as Python's `json.dumps`
//! spells it. Must not know what the values mean.

use std::fmt::Write;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

/// Deeper values are refused: they would recurse.
const MAX_DEPTH: usize = 128;

fn error(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail.into())
}

/// A template value, with every string passed through `text`; names of fields are kept.
pub(super) fn to_value(json: &serde_json::Value, text: &dyn Fn(&str) -> Value) -> Result<Value, Error> {
    to_value_at(json, text, 0)
}

fn to_value_at(json: &serde_json::Value, text: &dyn Fn(&str) -> Value, depth: usize) -> Result<Value, Error> {
    if depth > MAX_DEPTH {
        return Err(error("the value is nested too deeply"));
    }
    Ok(match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(value) => Value::from(*value),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Value::from(value),
            (None, Some(value)) => Value::from(value),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(value) => text(value),
        serde_json::Value::Array(items) => {
            items.iter().map(|item| to_value_at(item, text, depth + 1)).collect::<Result<Vec<Value>, Error>>()?.into()
        }
        serde_json::Value::Object(fields) => {
            let pairs = fields
                .iter()
                .map(|(name, value)| Ok((name.as_str(), to_value_at(value, text, depth + 1)?)))
                .collect::<Result<Vec<_>, Error>>()?;
            Value::from_pairs(pairs)
        }
    })
}

/// The filter `fromjson`.
pub(super) fn fromjson(text: &str) -> Result<Value, Error> {
    let json: serde_json::Value = serde_json::from_str(text).map_err(|cause| error(format!("fromjson: {cause}")))?;
    to_value(&json, &|text| text.into())
}

/// The filter `tojson` as Hugging Face defines it: `json.dumps` with `ensure_ascii`
/// (default false), `indent`, `separators` and `sort_keys`; nothing is escaped for HTML.
pub(super) fn tojson(state: &mut State, value: &Value, indent: Option<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => kwargs.get("indent")?,
    };
    let indent = match indent {
        None => None,
        Some(value) if value.is_none() => None,
        Some(value) => match value.as_str() {
            Some(text) => Some(text.to_owned()),
            None => Some(" ".repeat(u8::try_from(value)?.into())),
        },
    };
    let separators: Option<Vec<String>> = kwargs.get("separators")?;
    let (item, field) = match separators.as_deref() {
        None if indent.is_some() => (",", ": "),
        None => (", ", ": "),
        Some([item, field]) => (item.as_str(), field.as_str()),
        Some(_) => return Err(error("tojson: separators must be two strings")),
    };
    let mut writer = Writer {
        out: String::new(),
        indent: indent.as_deref(),
        item,
        field,
        ensure_ascii: kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort_keys: kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        state,
    };
    kwargs.assert_all_used()?;
    writer.value(value, 0)?;
    Ok(Value::from(writer.out))
}

struct Writer<'a, 'b> {
    out: String,
    /// One level of indentation; `None` keeps all on one line.
    indent: Option<&'a str>,
    item: &'a str,
    field: &'a str,
    ensure_ascii: bool,
    sort_keys: bool,
    state: &'a State<'b, 'b>,
}

impl Writer<'_, '_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.state.consume_fuel(1)?;
        if depth > MAX_DEPTH {
            return Err(error("tojson: the value is nested too deeply"));
        }
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool if value.is_true() => self.out.push_str("true"),
            ValueKind::Bool => self.out.push_str("false"),
            ValueKind::Number => self.out.push_str(&number(value)),
            ValueKind::String => self.string(value.as_str().unwrap_or_default())?,
            ValueKind::Seq | ValueKind::Iterable => {
                let items = value.try_iter()?;
                self.open('[');
                let mut is_empty = true;
                for item in items {
                    self.next(&mut is_empty, depth + 1);
                    self.value(&item, depth + 1)?;
                }
                self.close(']', is_empty, depth);
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    keys.sort();
                }
                self.open('{');
                let mut is_empty = true;
                for key in keys {
                    self.next(&mut is_empty, depth + 1);
                    match key.kind() {
                        ValueKind::String => self.string(key.as_str().unwrap_or_default())?,
                        ValueKind::Bool | ValueKind::Number | ValueKind::None => {
                            self.out.push('"');
                            self.value(&key, depth + 1)?;
                            self.out.push('"');
                        }
                        kind => return Err(error(format!("tojson: a key is a {kind}"))),
                    }
                    self.out.push_str(self.field);
                    self.value(&value.get_item(&key)?, depth + 1)?;
                }
                self.close('}', is_empty, depth);
            }
            kind => return Err(error(format!("tojson: a {kind} value has no JSON"))),
        }
        Ok(())
    }

    fn open(&mut self, bracket: char) {
        self.out.push(bracket);
    }

    fn next(&mut self, is_first: &mut bool, depth: usize) {
        if !std::mem::take(is_first) {
            self.out.push_str(self.item);
        }
        self.line(depth);
    }

    fn close(&mut self, bracket: char, is_empty: bool, depth: usize) {
        if !is_empty {
            self.line(depth);
        }
        self.out.push(bracket);
    }

    fn line(&mut self, depth: usize) {
        if let Some(indent) = self.indent {
            self.out.push('\n');
            (0..depth).for_each(|_| self.out.push_str(indent));
        }
    }

    fn string(&mut self, text: &str) -> Result<(), Error> {
        self.state.consume_fuel(text.len() as u64 / 64)?;
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                '\0'..='\x1f' => self.escape(c),
                '\x7f'.. if self.ensure_ascii && c != '\x7f' => self.escape(c),
                _ => self.out.push(c),
            }
        }
        self.out.push('"');
        Ok(())
    }

    fn escape(&mut self, c: char) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(self.out, "\\u{unit:04x}");
        }
    }
}

/// A number as Python's `repr` spells it.
fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float)
}

/// A float as Python's `repr` spells it: shortest digits; an exponent below 1e-4 and from
/// 1e16 on.
pub(super) fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if value == 0.0 || (1e-4..1e16).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}
