//! What is printed. Takes values; gives lines, sizes and tables. stdout carries only the answer; all else goes to stderr,
//! where a closed end is nobody's problem.

use crate::exit::Failure;
use serde_json::Value;
use std::io::{self, BufWriter, Write};

/// A line on stderr.
pub fn line(text: &str) {
    // Not `eprintln`, which panics when stderr is closed.
    let _ = writeln!(io::stderr().lock(), "{}", printable(text));
}

/// Most characters of a line; a file can name itself at any length.
const MAX_LINE_CHARS: usize = 4000;

/// What files and arguments hold must not steer the terminal: control characters but line breaks and tabs are spelled.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MAX_LINE_CHARS));
    for c in text.chars().take(MAX_LINE_CHARS) {
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    if text.chars().nth(MAX_LINE_CHARS).is_some() {
        out.push('…');
    }
    out
}

/// A warning on stderr.
pub fn warn(text: &str) {
    line(&format!("warning: {text}"));
}

/// A named line on stderr, aligned with others.
pub fn note(name: &str, text: &str) {
    line(&format!("{name:<9}{text}"));
}

/// Writes all of a command's answer to stdout.
pub fn answer(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    write(&mut out).and_then(|()| out.flush()).map_err(stdout_failed)
}

/// Writes a JSON object to stdout.
pub fn answer_json(value: &Value) -> anyhow::Result<()> {
    answer(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
}

/// An error of stdout. A closed pipe keeps its kind, so that it can be silent.
pub fn stdout_failed(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => error.into(),
        _ => Failure::new(format!("cannot write to stdout: {error}")).into(),
    }
}

/// A size in MiB with one decimal.
pub fn mib(bytes: u64) -> String {
    format!("{} MiB", mib_number(bytes))
}

/// The same without its unit.
pub fn mib_number(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

/// Text of a file, in one line and without anything that a terminal obeys.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() }).collect()
}

/// The start of a text, with `…` if that is not all.
pub fn shortened(text: &str, n_chars: usize) -> String {
    match text.char_indices().nth(n_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Rows of words in columns.
#[derive(Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Columns whose words end at the same place.
    right: &'static [usize],
}

impl Table {
    /// A table in which these columns are aligned to the right.
    pub fn new(right: &'static [usize]) -> Self {
        Self { rows: Vec::new(), right }
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, words: impl IntoIterator<Item = S>) {
        self.rows.push(words.into_iter().map(Into::into).collect());
    }

    /// Writes all rows, each after `indent`.
    pub fn write(&self, out: &mut dyn Write, indent: &str) -> io::Result<()> {
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|word| word.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.rows.iter().map(Vec::len).max().unwrap_or(0)).map(width).collect();
        for row in &self.rows {
            let mut text = String::from(indent);
            for (column, word) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column] - word.chars().count());
                let (before, after) = if self.right.contains(&column) { (&pad[..], "") } else { ("", &pad[..]) };
                text.push_str(&format!("{before}{word}{after}  "));
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_mib_with_one_decimal() {
        assert_eq!(mib(0), "0.0 MiB");
        assert_eq!(mib(98 * (1 << 20) + (1 << 19)), "98.5 MiB");
    }

    #[test]
    fn files_cannot_send_orders_to_the_terminal() {
        assert_eq!(plain("a\x1b[31mb\nc"), "a\\u{1b}[31mb\\nc");
        assert_eq!(shortened("äöü", 2), "äö…");
        assert_eq!(shortened("äö", 2), "äö");
    }

    #[test]
    fn tables_are_aligned() {
        let mut table = Table::new(&[1]);
        table.row(["name", "1"]);
        table.row(["n", "1000"]);
        let mut out = Vec::new();
        table.write(&mut out, "  ").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "  name     1\n  n     1000\n");
    }
}
