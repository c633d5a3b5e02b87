//! `minfer memplan`: places, checks and draws buffers that are given as a table. Knows no model.

use super::text::read_bytes;
use crate::args::TableOutput;
use crate::exit::{Failure, Outcome};
use crate::output::{self, Table as Columns, note, plain};
use crate::outputs::Outputs;
use crate::resolve::{Memplan, MemplanAction, TextSource};
use crate::room;
use anyhow::Result;
use minfer_memplan::csv::{self, Table};
use minfer_memplan::{
    Options, PlaceError, Placed, Strategy, Verdict, check, check_certificate, place_until, search_bytes, svg,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Names listed in a sentence; JSON has all of them.
const SHOWN_NAMES: usize = 20;

/// Greedy work before the search: a few hundredths of a second.
const GREEDY_NODES: u64 = 5_000_000;

/// Does what was asked.
pub fn memplan(settings: &Memplan) -> Result<Outcome> {
    let mut input = read(&settings.source)?;
    input.table.problem.capacity = settings.capacity;
    match &settings.action {
        MemplanAction::Solve { minimize, limit, output } => solve(&input, *minimize, *limit, *output),
        MemplanAction::Check { problem } => verify(input, problem.as_ref()),
        MemplanAction::Render { limit, file } => render(input, &settings.source, *limit, file.as_deref()),
    }
}

/// A problem as it was given.
struct Input {
    name: String,
    text: String,
    table: Table,
}

fn read(source: &TextSource) -> Result<Input> {
    let name = match source {
        TextSource::File(path) => path.display().to_string(),
        _ => "stdin".to_owned(),
    };
    let bytes = read_bytes(source, "minfer memplan solve FILE.csv, or pipe a problem into it")?;
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::new(format!("{name}: not a table: it is not valid UTF-8")))?;
    let table = csv::read(&text).map_err(|error| Failure::new(format!("{name}: {error}")))?;
    Ok(Input { name, text, table })
}

/// What came of a search.
enum Found {
    Placed(Placed),
    /// The lowest, but above the capacity; nothing proven.
    TooHigh(Placed),
    /// Nothing fits: the sentence that says so, and the buffers that alone do not fit.
    Nothing {
        why: String,
        blame: Vec<usize>,
        is_irreducible: bool,
    },
}

fn search(input: &Input, minimize: bool, limit: Duration) -> Result<Found> {
    let table = &input.table;
    let mut options = Options::default();
    options.node_budget = GREEDY_NODES;
    (options.search_nodes, options.minimize) = (u64::MAX, minimize);
    // A second thread keeps as much again.
    options.parallel = room::left().is_none_or(|left| left >= search_bytes(&table.problem, true));
    let start = Instant::now();
    let found = match place_until(&table.problem, Strategy::Planned, &options, &|| start.elapsed() >= limit) {
        Ok(placed) => Found::Placed(placed),
        Err(PlaceError::AboveCapacity { found, .. }) => Found::TooHigh(*found),
        Err(PlaceError::Infeasible { capacity, lower_bound }) => Found::Nothing {
            why: format!(
                "nothing fits within {capacity} bytes: at step {} {} bytes are live",
                lower_bound.step, lower_bound.bytes
            ),
            blame: lower_bound.live,
            is_irreducible: false,
        },
        Err(PlaceError::Unplaceable { capacity, blame, .. }) => Found::Nothing {
            why: format!("nothing fits within {capacity} bytes: all ways were tried"),
            blame: blame.buffers,
            is_irreducible: blame.is_irreducible,
        },
        Err(PlaceError::Problem(error)) => return Err(failure(input, &error.to_string(), &error.buffers()).into()),
        Err(error) => return Err(failure(input, &error.to_string(), &[]).into()),
    };
    if let Found::Placed(placed) | Found::TooHigh(placed) = &found {
        let mut problem = table.problem.clone();
        problem.capacity = problem.capacity.filter(|_| matches!(found, Found::Placed(_)));
        check_certificate(&problem, placed)
            .map_err(|wrong| failure(input, &format!("the planner is wrong: {wrong}"), &wrong.buffers()))?;
    }
    Ok(found)
}

fn failure(input: &Input, what: &str, buffers: &[usize]) -> Failure {
    Failure::new(format!("{}: {what}{}", input.name, whereabouts(input, buffers)))
}

/// Who the buffers are that a sentence of the library names by index, and where the file tells of them. (A wrong witness can
/// name what is not there.)
fn whereabouts(input: &Input, buffers: &[usize]) -> String {
    let lines = buffers.iter().filter_map(|&i| csv::line_of(&input.text, i));
    let lines: Vec<String> = lines.take(SHOWN_NAMES).map(|line| line.to_string()).collect();
    let names = names(&input.table, buffers);
    match lines.len() {
        0 => String::new(),
        1 => format!(" (counted from 0; id {names}, line {} of {})", lines[0], input.name),
        _ => format!(" (counted from 0; ids {names}, lines {} of {})", some_of(lines, buffers.len()), input.name),
    }
}

fn solve(input: &Input, minimize: bool, limit: Duration, output: TableOutput) -> Result<Outcome> {
    let buffers = &input.table.problem.buffers;
    let found = search(input, minimize, limit)?;
    let capacity = input.table.problem.capacity;
    let (placed, outcome) = match &found {
        Found::Placed(placed) => (placed, Outcome::Done),
        Found::TooHigh(placed) => (placed, Outcome::No),
        Found::Nothing { why, blame, is_irreducible } => {
            output::line(why);
            let less = if *is_irreducible || blame.len() == 1 {
                "none of them can be left out"
            } else {
                "perhaps fewer would do"
            };
            output::line(&format!("alone too many: {} ({less})", names(&input.table, blame)));
            if output == TableOutput::Json {
                let ids: Vec<&String> = blame.iter().map(|&i| &input.table.ids[i]).collect();
                let proof = json!({ "buffers": ids, "irreducible": is_irreducible });
                output::answer_json(&json!({ "fits": false, "capacity": capacity, "infeasible": proof }))?;
            }
            return Ok(Outcome::No);
        }
    };
    match output {
        TableOutput::Csv => {
            let text = csv::with_offsets(&input.text, &placed.placement.offsets)?;
            output::answer(|out| out.write_all(text.as_bytes()))?;
        }
        TableOutput::Json => output::answer_json(&placed_json(&input.table, placed))?,
        TableOutput::Table => {
            let with_idle = buffers.iter().any(|b| !b.idle.is_empty());
            let mut columns = Columns::new(if with_idle { &[1, 2, 3, 5] } else { &[1, 2, 3, 4] });
            let mut row = |plain: [String; 4], gaps: String, offset: String| {
                columns.row(plain.into_iter().chain(with_idle.then_some(gaps)).chain([offset]));
            };
            row(["id", "lower", "upper", "size"].map(str::to_owned), "gaps".to_owned(), "offset".to_owned());
            for (k, b) in buffers.iter().enumerate() {
                let [lower, upper, size] = [b.lower, b.upper, b.size].map(|n| n.to_string());
                let offset = placed.placement.offsets[k].to_string();
                row([plain(&input.table.ids[k]), lower, upper, size], csv::idle_cell(b), offset);
            }
            output::answer(|out| columns.write(out, ""))?;
        }
    }
    certificate_notes(&input.table, placed);
    if outcome == Outcome::No {
        tell_that_it_is_open(&input.table);
    }
    Ok(outcome)
}

fn tell_that_it_is_open(table: &Table) {
    let capacity = table.problem.capacity.unwrap_or_default();
    output::line(&format!("no placement within {capacity} bytes was found in time; whether there is one is open"));
}

fn certificate_notes(table: &Table, placed: &Placed) {
    let certificate = &placed.certificate;
    note("height", &format!("{} bytes", certificate.height));
    let bound = &certificate.lower_bound;
    let live = if bound.live.is_empty() { "nothing".to_owned() } else { names(table, &bound.live) };
    note("bound", &format!("{} bytes are live at step {}: {live}", bound.bytes, bound.step));
    let verdict = match certificate.verdict {
        Verdict::Optimal => "the least height: as many bytes are live at one step".to_owned(),
        Verdict::OptimalBySearch if certificate.height == fixed_top(table) => {
            "the least height: a fixed buffer ends there, or all lower ones were ruled out".to_owned()
        }
        Verdict::OptimalBySearch => "the least height: all lower ones were ruled out".to_owned(),
        Verdict::Gap { bytes } => {
            format!(
                "the least height is from {} to {}: {bytes} bytes are open",
                certificate.proven_bytes, certificate.height
            )
        }
    };
    note("proven", &verdict);
}

fn fixed_top(table: &Table) -> u64 {
    table.problem.buffers.iter().filter_map(|b| b.offset.map(|o| o + b.size)).max().unwrap_or(0)
}

fn names(table: &Table, buffers: &[usize]) -> String {
    let ids = buffers.iter().filter_map(|&i| table.ids.get(i));
    some_of(ids.take(SHOWN_NAMES).map(|id| plain(id)).collect(), buffers.len())
}

/// The first words of so many.
fn some_of(mut words: Vec<String>, n: usize) -> String {
    if n > SHOWN_NAMES {
        words.push(format!("and {} more", n - SHOWN_NAMES));
    }
    words.join(", ")
}

fn placed_json(table: &Table, placed: &Placed) -> Value {
    let certificate = &placed.certificate;
    let row = |i: usize| {
        let b = &table.problem.buffers[i];
        json!({
            "id": table.ids[i],
            "lower": b.lower,
            "upper": b.upper,
            "size": b.size,
            "alignment": b.alignment,
            "gaps": b.idle.iter().map(|period| [period.start, period.end]).collect::<Vec<_>>(),
            "offset": placed.placement.offsets[i],
        })
    };
    let live: Vec<&String> = certificate.lower_bound.live.iter().map(|&i| &table.ids[i]).collect();
    let verdict = match certificate.verdict {
        Verdict::Optimal => "optimal",
        Verdict::OptimalBySearch => "optimal by search",
        Verdict::Gap { .. } => "gap",
    };
    let mut answer = json!({
        "fits": table.problem.capacity.is_none_or(|c| certificate.height <= c),
        "capacity": table.problem.capacity,
        "height": certificate.height,
        "lower_bound": { "bytes": certificate.lower_bound.bytes, "step": certificate.lower_bound.step, "live": live },
        "proven": certificate.proven_bytes,
        "verdict": verdict,
    });
    answer["buffers"] = (0..table.ids.len()).map(row).collect(); // `json!` would copy them
    answer
}

/// Takes the offsets out of a table: the placement to be judged or drawn. `Err` is a buffer without one.
fn take_offsets(table: &mut Table) -> Result<Vec<u64>, usize> {
    let buffers = &mut table.problem.buffers;
    if let Some(missing) = buffers.iter().position(|b| b.offset.is_none()) {
        return Err(missing);
    }
    Ok(buffers.iter_mut().filter_map(|b| b.offset.take()).collect())
}

fn verify(mut input: Input, problem: Option<&TextSource>) -> Result<Outcome> {
    let mut offsets = take_offsets(&mut input.table).map_err(|missing| {
        let id = plain(&input.table.ids[missing]);
        Failure::new(format!("{}: buffer {id} has no offset", input.name)).hint("`minfer memplan solve` fills them in")
    })?;
    if let Some(problem) = problem {
        let mut other = read(problem)?;
        let by_id: HashMap<&String, u64> = input.table.ids.iter().zip(offsets).collect();
        let found = other.table.ids.iter().map(|id| by_id.get(id).copied().ok_or(id));
        offsets = match found.collect::<Result<Vec<u64>, &String>>() {
            Ok(found) if found.len() == by_id.len() => found,
            Ok(_) => return Ok(wrong(&format!("{} has buffers that {} has not", input.name, other.name))),
            Err(id) => {
                return Ok(wrong(&format!("{}: buffer {} of {} is not there", input.name, plain(id), other.name)));
            }
        };
        other.table.problem.capacity = input.table.problem.capacity;
        input = other;
    }
    match check(&input.table.problem, &offsets) {
        Ok(height) => {
            let n = offsets.len();
            output::answer(|out| writeln!(out, "valid: {n} buffers, height {height} bytes"))?;
            Ok(Outcome::Done)
        }
        Err(violation) => Ok(wrong(&format!("{violation}{}", whereabouts(&input, &violation.buffers())))),
    }
}

/// A negative answer of the checker.
fn wrong(why: &str) -> Outcome {
    // The answer goes to stdout; a closed end is nobody's problem.
    let _ = output::answer(|out| writeln!(out, "wrong: {}", plain(why)));
    Outcome::No
}

/// A placement that is given is drawn even if it is wrong: to see where is what the picture is for.
fn render(mut input: Input, source: &TextSource, limit: Duration, file: Option<&Path>) -> Result<Outcome> {
    let mut outcome = Outcome::Done;
    let mut marked = Vec::new();
    let offsets = match take_offsets(&mut input.table) {
        Ok(offsets) => {
            if let Err(violation) = check(&input.table.problem, &offsets) {
                outcome = Outcome::No;
                marked = violation.buffers();
                output::line(&format!("wrong: {}", plain(&format!("{violation}{}", whereabouts(&input, &marked)))));
            }
            offsets
        }
        Err(_) => match search(&input, false, limit)? {
            Found::Placed(placed) => placed.placement.offsets,
            Found::TooHigh(placed) => {
                outcome = Outcome::No;
                tell_that_it_is_open(&input.table);
                placed.placement.offsets
            }
            Found::Nothing { why, .. } => {
                output::line(&why);
                return Ok(Outcome::No);
            }
        },
    };
    let picture = svg::draw(&input.table, &offsets, &marked);
    match file {
        None => output::answer(|out| out.write_all(picture.as_bytes()))?,
        Some(path) => Outputs::default().keep_text(source, "the problem").write(path, picture.as_bytes())?,
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_lines_end_and_need_not_exist() {
        let text = (0..30).fold("id,lower,upper,size\n".to_owned(), |text, i| format!("{text}b{i},0,1,1\n"));
        let input = Input { name: "t.csv".into(), table: csv::read(&text).unwrap(), text };
        let all: Vec<usize> = (0..30).collect();
        let words = whereabouts(&input, &all);
        assert!(
            words.contains("b19, and 10 more, lines 2, ") && words.contains(" 21, and 10 more of t.csv"),
            "{words}"
        );
        assert_eq!(whereabouts(&input, &[99]), "");
        assert_eq!(whereabouts(&input, &[3]), " (counted from 0; id b3, line 5 of t.csv)");
    }
}
