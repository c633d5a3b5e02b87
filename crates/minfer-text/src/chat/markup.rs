//! `x|safe + y`: takes a template's source, gives it with that sum as Python computes it. Must not know what the template says.
//!
//! In Python a safe string that is added to another escapes that one for HTML, in an environment that escapes nothing else;
//! the engine here does so only where everything is escaped. So the sum becomes a chain of calls of a filter.

use std::fmt::Write;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

/// The filter that stands for `+` after a safe string.
pub(super) const FILTER: &str = "plus_markup";

/// More sums are left as they are: published templates have a few, and finding where one ends takes a look at all that
/// follows.
const MAX_SUMS: usize = 500;

/// Rewrites `a|safe + b + c` as `a|safe|plus_markup(b)|plus_markup(c)` in every block.
pub(super) fn rewrite(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut left = MAX_SUMS;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let len = match rest.as_bytes().get(1) {
            Some(b'#') => rest.find("#}").map_or(rest.len(), |end| end + 2),
            Some(b'{' | b'%') => 2 + block(&rest[2..]).map(|len| len.min(rest.len() - 2)).unwrap_or(0),
            _ => 1,
        };
        match rest.as_bytes().get(1) {
            Some(b'{' | b'%') => expression(&rest[..len], &mut left, &mut out),
            _ => out.push_str(&rest[..len]),
        }
        rest = &rest[len..];
    }
    out.push_str(rest);
    out
}

/// Length of a block's inside: up to `}}` or `%}` outside of strings.
fn block(text: &str) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("}}") || text[at..].starts_with("%}") {
            return Some(at);
        }
        at += token(&text[at..]);
    }
    None
}

/// Length of the next token: a string, a name or one character.
fn token(text: &str) -> usize {
    let Some(first) = text.chars().next() else { return 0 };
    match first {
        '"' | '\'' => {
            let mut escaped = false;
            let end = text.char_indices().skip(1).find(|&(_, c)| {
                let is_end = c == first && !escaped;
                escaped = c == '\\' && !escaped;
                is_end
            });
            end.map_or(text.len(), |(at, _)| at + 1)
        }
        c if is_name(c) => text.find(|c| !is_name(c)).unwrap_or(text.len()),
        c => c.len_utf8(),
    }
}

fn is_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Appends an expression, its sums of safe strings rewritten.
fn expression(text: &str, left: &mut usize, out: &mut String) {
    let (mut at, mut before) = (0, ["", ""]);
    while at < text.len() {
        let len = token(&text[at..]);
        let this = &text[at..at + len];
        out.push_str(this);
        at += len;
        if this.trim().is_empty() {
            continue;
        }
        let is_safe = [before[1], this] == ["|", "safe"];
        before = [before[1], this];
        while is_safe
            && *left > 0
            && let Some((plus, end)) = addend(&text[at..])
        {
            *left -= 1;
            out.push('|');
            out.push_str(FILTER);
            out.push('(');
            expression(text[at + plus..at + end].trim_start(), left, out);
            out.push(')');
            at += end;
        }
    }
}

/// Where what is added by a `+` at the start begins and ends.
fn addend(text: &str) -> Option<(usize, usize)> {
    let start = text.len() - text.trim_start().strip_prefix('+')?.len();
    let (mut at, mut depth) = (start, 0u32);
    while at < text.len() {
        let len = token(&text[at..]);
        match &text[at..at + len] {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth > 0 => depth -= 1,
            ")" | "]" | "}" | "," | ":" | "+" | "-" | "<" | ">" | "=" | "!" | "%" if depth == 0 => break,
            "if" | "else" | "and" | "or" | "not" | "in" | "is" if depth == 0 => break,
            _ => {}
        }
        at += len;
    }
    let end = text[..at].trim_end().len();
    Some((start, end)).filter(|_| start < end)
}

/// The filter: a safe string and another, which is escaped unless it is safe as well.
pub(super) fn plus(left: &Value, right: &Value) -> Result<Value, Error> {
    let (Some(text), ValueKind::String, Some(added)) = (left.as_str(), right.kind(), right.as_str()) else {
        let detail = format!("a {} is added to a safe string", right.kind());
        return Err(Error::new(ErrorKind::InvalidOperation, detail));
    };
    let mut out = text.to_owned();
    if right.is_safe() {
        out.push_str(added);
    } else {
        for c in added.chars() {
            match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' | '\'' => write!(out, "&#{};", u32::from(c)).map_err(Error::from)?,
                c => out.push(c),
            }
        }
    }
    Ok(Value::from_safe_string(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_safe_strings_become_filters() {
        let cases = [
            (
                r#"a {{ "x+"|safe + t["a+b"]  + "}}"|safe + u | tojson() }} b"#,
                r#"a {{ "x+"|safe|plus_markup(t["a+b"])|plus_markup("}}"|safe)|plus_markup(u | tojson()) }} b"#,
            ),
            ("{%- if f(a | safe + b, c) -%}", "{%- if f(a | safe|plus_markup(b), c) -%}"),
            ("{{ a|safe + b if c else d }}", "{{ a|safe|plus_markup(b) if c else d }}"),
            ("{{ a|safe + (b|safe + 'c') }}", "{{ a|safe|plus_markup((b|safe|plus_markup('c'))) }}"),
        ];
        for (source, expected) in cases {
            assert_eq!(rewrite(source), expected);
        }
        for same in [
            "{{ a|safe }}",
            "{{ a|safe ~ b + c }}",
            "a|safe + b",
            "{# {{ a|safe + b }} #}",
            "{{ 'a|safe + b' }}",
            "{{ a|safe + ",
            "{{ a|safer + b }}",
            "{",
            "{{ '",
            "{{ a|safe + }}",
        ] {
            assert_eq!(rewrite(same), same);
        }
    }
}
