//! What templates expect from Python beyond the engine: methods of strings, and how values
//! are printed. Takes values, gives values; must not know the template.

use minijinja::value::{ValueKind, from_args};
use minijinja::{Error, Output, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::json::float;

/// Methods the engine does not have itself.
pub(super) fn call(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        match method {
            "removeprefix" => {
                let (prefix,): (&str,) = from_args(args)?;
                return Ok(text.strip_prefix(prefix).unwrap_or(text).into());
            }
            "removesuffix" => {
                let (suffix,): (&str,) = from_args(args)?;
                return Ok(text.strip_suffix(suffix).unwrap_or(text).into());
            }
            "partition" | "rpartition" => {
                let (separator,): (&str,) = from_args(args)?;
                let from_end = method == "rpartition";
                let halves = match from_end {
                    true => text.rsplit_once(separator),
                    false => text.split_once(separator),
                };
                let parts: [&str; 3] = match halves {
                    Some((before, after)) => [before, separator, after],
                    None if from_end => ["", "", text],
                    None => [text, "", ""],
                };
                return Ok(parts.into_iter().map(Value::from).collect());
            }
            _ => {}
        }
    }
    unknown_method_callback(state, value, method, args)
}

/// The test `iterable`: as in Python, nothing can be iterated in `None`.
pub(super) fn is_iterable(value: &Value) -> bool {
    !value.is_none() && value.try_iter().is_ok()
}

/// Prints a value as Python's `str` does: `None`, `True`, `False`, `1e+16`.
pub(super) fn print(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let text = match value.kind() {
        ValueKind::None => "None",
        ValueKind::Bool if value.is_true() => "True",
        ValueKind::Bool => "False",
        ValueKind::Number if !value.is_integer() => {
            let number = f64::try_from(value.clone())?;
            return out.write_str(&float(number)).map_err(Error::from);
        }
        _ => return minijinja::escape_formatter(out, state, value),
    };
    out.write_str(text).map_err(Error::from)
}
