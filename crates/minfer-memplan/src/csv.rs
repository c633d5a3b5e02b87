//! Problem files: takes and gives text in the format of the MiniMalloc benchmark suite. Must not know any strategy.
//!
//! The header names the columns, in any order: `id`, `lower`, `upper`, `size`, and optionally `alignment`, `offset` (a
//! fixed placement in a problem, the answer in a solution), `hint` and `gaps`. Aliases: `buffer` and `buffer_id` for
//! `id`, `start` and `begin` for `lower`; `end` is an *inclusive* `upper`. A hint is advice and is left unread. A cell of
//! `gaps` lists the periods in which the buffer is idle, `lower-upper` in any order with spaces between, half open, or both
//! inclusive beside an `end`. A period `lower-upper@from:to` is refused: there the buffer would keep a part of its bytes.
//! The capacity is not part of the format.
//!
//! Cells are names or numbers. A number is decimal digits below 2^64, without a sign, as all files of the suite have it;
//! `alignment` and `offset` may be left empty. Spaces around a cell are no part of it; a cell in quotes is what is
//! between them, and may hold commas, spaces, and quotes doubled. Empty lines and a byte order mark are skipped.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;

use thiserror::Error;

use crate::{Buffer, Problem};

/// A problem together with the names of its buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// One name per buffer, by index, all distinct.
    pub ids: Vec<String>,
    /// The problem; no capacity after [`read`].
    pub problem: Problem,
}

/// What is wrong with a problem file. Lines count from 1, the header is the first with text.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the message names every field")]
pub enum CsvError {
    /// There is no header.
    #[error("no header: the file is empty")]
    Empty,
    /// A required column is not in the header.
    #[error("line {line}: no column {column:?}")]
    MissingColumn { line: usize, column: &'static str },
    /// The header names a column this format does not have.
    #[error("line {line}: unknown column {got:?}")]
    UnknownColumn { line: usize, got: String },
    /// The header names a column twice, perhaps by an alias.
    #[error("line {line}: column {column:?} is there twice, again as {got:?}")]
    RepeatedColumn { line: usize, column: &'static str, got: String },
    /// A line has not as many cells as the header.
    #[error("line {line}: expected {expected} cells, got {got}")]
    Cells { line: usize, expected: usize, got: usize },
    /// A cell is no unsigned 64-bit number in decimal digits.
    #[error("line {line}, column {column:?}: expected an unsigned 64-bit number, got {got:?}")]
    Number { line: usize, column: &'static str, got: String },
    /// The last step of a lifetime or an idle period is the last that 64 bits hold; the one after it must be, too.
    #[error("line {line}, column {column:?}: the step after {got:?} leaves 64 bits")]
    LastStep { line: usize, column: &'static str, got: String },
    /// A cell of `gaps` is no list of idle periods.
    #[error("line {line}, column \"gaps\": expected lower-upper, got {got:?}")]
    Idle { line: usize, got: String },
    /// A buffer keeps a part of its bytes in an idle period.
    #[error(
        "line {line}, column \"gaps\": idle periods that keep a part of the buffer (after \"@\") are not supported, got {got:?}"
    )]
    IdlePart { line: usize, got: String },
    /// Two buffers have the same name.
    #[error("line {line}, column \"id\": {got:?} is there twice")]
    RepeatedId { line: usize, got: String },
    /// A quoted cell does not end on its line, or text follows its closing quote.
    #[error("line {line}: unbalanced quotes")]
    Quotes { line: usize },
    /// A name to be written contains a line break.
    #[error("buffer {buffer}: the name {id:?} contains a line break")]
    LineBreak { buffer: usize, id: String },
    /// The numbers of names, buffers and offsets to be written differ.
    #[error("expected {expected} ids and offsets, one per buffer, got {got}")]
    Count { expected: usize, got: usize },
}

const ID: &str = "id";
const LOWER: &str = "lower";
const UPPER: &str = "upper";
const END: &str = "end";
const SIZE: &str = "size";
const ALIGNMENT: &str = "alignment";
const OFFSET: &str = "offset";
const HINT: &str = "hint";
const GAPS: &str = "gaps";

fn column(name: &str) -> Option<&'static str> {
    Some(match name {
        "id" | "buffer" | "buffer_id" => ID,
        "lower" | "start" | "begin" => LOWER,
        "upper" => UPPER,
        "end" => END,
        "size" => SIZE,
        "alignment" => ALIGNMENT,
        "offset" => OFFSET,
        "hint" => HINT,
        "gaps" => GAPS,
        _ => return None,
    })
}

/// The lines with text, counted from 1: the header and one per buffer.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().enumerate().map(|(i, line)| (i + 1, line)).filter(|(_, line)| !line.trim().is_empty())
}

/// The line of a problem file that holds the buffer with this index, counted from 1 as in errors.
pub fn line_of(text: &str, buffer: usize) -> Option<usize> {
    lines(text).nth(buffer.checked_add(1)?).map(|(line, _)| line)
}

/// Reads a problem; the first mistake is the error. Says nothing about whether it makes sense: that is
/// [`Problem::validate`].
pub fn read(text: &str) -> Result<Table, CsvError> {
    let mut lines = lines(text);
    let (line, header) = lines.next().ok_or(CsvError::Empty)?;
    let columns = read_header(line, header)?;

    let mut table = Table::default();
    let mut seen = HashSet::new();
    for (line, text) in lines {
        let cells = cells(line, text)?;
        if cells.len() != columns.len() {
            return Err(CsvError::Cells { line, expected: columns.len(), got: cells.len() });
        }
        let (mut id, mut buffer) = (String::new(), Buffer::new(0, 0, 0));
        for (&column, cell) in columns.iter().zip(cells) {
            let number = || number(&cell).ok_or_else(|| CsvError::Number { line, column, got: cell.clone() });
            match column {
                LOWER => buffer.lower = number()?,
                UPPER => buffer.upper = number()?,
                END => {
                    let past = number()?.checked_add(1);
                    buffer.upper = past.ok_or(CsvError::LastStep { line, column, got: cell })?;
                }
                SIZE => buffer.size = number()?,
                ALIGNMENT if !cell.is_empty() => buffer.alignment = number()?,
                OFFSET if !cell.is_empty() => buffer.offset = Some(number()?),
                GAPS => buffer.idle = read_idle(line, &cell, columns.contains(&END))?,
                ID => id = cell,
                _ => {}
            }
        }
        if !seen.insert(id.clone()) {
            return Err(CsvError::RepeatedId { line, got: id });
        }
        table.ids.push(id);
        table.problem.buffers.push(buffer);
    }
    Ok(table)
}

fn read_header(line: usize, header: &str) -> Result<Vec<&'static str>, CsvError> {
    let mut columns: Vec<&'static str> = Vec::new();
    for got in cells(line, header)? {
        let Some(column) = column(&got) else {
            return Err(CsvError::UnknownColumn { line, got });
        };
        let is_upper = |c: &str| c == UPPER || c == END;
        if columns.iter().any(|&c| c == column || is_upper(c) && is_upper(column)) {
            return Err(CsvError::RepeatedColumn { line, column, got });
        }
        columns.push(column);
    }
    for column in [ID, LOWER, UPPER, SIZE] {
        let found = columns.iter().any(|&c| c == column || (column == UPPER && c == END));
        if !found {
            return Err(CsvError::MissingColumn { line, column });
        }
    }
    Ok(columns)
}

/// A number of the format: `parse` alone would take a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// The idle periods of a cell of `gaps`, ascending and half open; in the cell their last steps may be named instead.
fn read_idle(line: usize, cell: &str, names_last: bool) -> Result<Vec<Range<u64>>, CsvError> {
    let period = |text: &str| {
        let got = text.to_owned();
        if text.contains('@') {
            return Err(CsvError::IdlePart { line, got });
        }
        let bounds = text.split_once('-').and_then(|(lower, upper)| Some((number(lower)?, number(upper)?)));
        match bounds {
            Some((lower, last)) if names_last => match last.checked_add(1) {
                Some(upper) => Ok(lower..upper),
                None => Err(CsvError::LastStep { line, column: GAPS, got }),
            },
            Some((lower, upper)) => Ok(lower..upper),
            None => Err(CsvError::Idle { line, got }),
        }
    };
    let mut idle = cell.split_whitespace().map(period).collect::<Result<Vec<_>, _>>()?;
    idle.sort_by_key(|period| period.start);
    Ok(idle)
}

/// The idle periods of a buffer as a cell of `gaps`, half open.
pub fn idle_cell(buffer: &Buffer) -> String {
    let idle: Vec<String> = buffer.idle.iter().map(|period| format!("{}-{}", period.start, period.end)).collect();
    idle.join(" ")
}

/// Splits a line at its commas. Plain cells are trimmed; quoted ones may contain commas, and quotes doubled.
fn cells(line: usize, text: &str) -> Result<Vec<String>, CsvError> {
    let mut cells = Vec::new();
    let mut rest = text.trim();
    loop {
        let Some(quoted) = rest.strip_prefix('"') else {
            let (cell, more) = rest.split_once(',').map_or((rest, None), |(c, m)| (c, Some(m)));
            cells.push(cell.trim().to_owned());
            match more {
                Some(more) => rest = more.trim_start(),
                None => return Ok(cells),
            }
            continue;
        };
        let (mut cell, mut tail) = (String::new(), quoted);
        loop {
            let (before, after) = tail.split_once('"').ok_or(CsvError::Quotes { line })?;
            cell.push_str(before);
            match after.strip_prefix('"') {
                Some(more) => {
                    cell.push('"');
                    tail = more;
                }
                None => {
                    tail = after.trim_start();
                    break;
                }
            }
        }
        cells.push(cell);
        match tail.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None if tail.is_empty() => return Ok(cells),
            None => return Err(CsvError::Quotes { line }),
        }
    }
}

/// Writes a problem, or with `offsets` a solution. Half open lifetimes; `alignment`, `gaps` and `offset` only if one
/// differs from the default. What this writes, [`read`] reads back.
pub fn write(table: &Table, offsets: Option<&[u64]>) -> Result<String, CsvError> {
    let buffers = &table.problem.buffers;
    for got in [table.ids.len(), offsets.map_or(buffers.len(), <[u64]>::len)] {
        if got != buffers.len() {
            return Err(CsvError::Count { expected: buffers.len(), got });
        }
    }
    let with_alignment = buffers.iter().any(|b| b.alignment != 1);
    let with_idle = buffers.iter().any(|b| !b.idle.is_empty());
    let with_offset = offsets.is_some() || buffers.iter().any(|b| b.offset.is_some());
    let mut text = String::from("id,lower,upper,size");
    text.push_str(if with_alignment { ",alignment" } else { "" });
    text.push_str(if with_idle { ",gaps" } else { "" });
    text.push_str(if with_offset { ",offset\n" } else { "\n" });
    for (buffer, (b, id)) in buffers.iter().zip(&table.ids).enumerate() {
        if id.contains(['\n', '\r']) {
            return Err(CsvError::LineBreak { buffer, id: id.clone() });
        }
        push_cell(&mut text, id);
        let _ = write!(text, ",{},{},{}", b.lower, b.upper, b.size);
        if with_alignment {
            let _ = write!(text, ",{}", b.alignment);
        }
        if with_idle {
            let _ = write!(text, ",{}", idle_cell(b));
        }
        if with_offset {
            let offset = offsets.map(|o| o[buffer]).or(b.offset);
            let _ = write!(text, ",{}", offset.map_or(String::new(), |o| o.to_string()));
        }
        text.push('\n');
    }
    Ok(text)
}

/// The text of a problem with the answer in it: all its columns as they are, and `offset`, filled in where the problem
/// has that column and put last where it has not.
pub fn with_offsets(text: &str, offsets: &[u64]) -> Result<String, CsvError> {
    let expected = read(text)?.ids.len();
    if offsets.len() != expected {
        return Err(CsvError::Count { expected, got: offsets.len() });
    }
    let mut out = String::with_capacity(text.len() + 12 * offsets.len());
    let mut place = None;
    let mut answers = offsets.iter();
    for (line, text) in lines(text) {
        let mut cells = cells(line, text)?;
        let is_header = out.is_empty();
        if is_header {
            place = cells.iter().position(|c| column(c) == Some(OFFSET));
        }
        let answer = if is_header { OFFSET.to_owned() } else { answers.next().map_or(String::new(), u64::to_string) };
        match place {
            Some(at) => cells[at] = answer,
            None => cells.push(answer),
        }
        for (k, cell) in cells.iter().enumerate() {
            out.push_str(if k > 0 { "," } else { "" });
            push_cell(&mut out, cell);
        }
        out.push('\n');
    }
    Ok(out)
}

/// A cell, in quotes if it needs them.
fn push_cell(text: &mut String, cell: &str) {
    if cell.trim() != cell || cell.contains([',', '"']) {
        let _ = write!(text, "\"{}\"", cell.replace('"', "\"\""));
    } else {
        text.push_str(cell);
    }
}
