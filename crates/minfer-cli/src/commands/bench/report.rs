//! Results in four forms. Takes a report; prints a table, Markdown, CSV or JSON on stdout.

use super::Report;
use super::profile::{OpRow, Profile};
use super::rounds::{Measured, Test};
use crate::args::BenchOutput;
use crate::commands::backend_words;
use crate::describe;
use crate::output::{self, Table};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::Duration;

/// Heads of the results; those of numbers are aligned to the right.
const HEADS: [&str; 11] =
    ["test", "cache", "threads", "batch", "depth", "mean ± sd", "median", "GB/s", "of reads", "GOP/s", "of int8"];
const HEADS_RIGHT: &[usize] = &[2, 3, 4, 5, 6, 7, 8, 9, 10];
/// The same of a profile.
const OP_HEADS: [&str; 7] = ["operation", "weights", "calls", "ms", "share", "GB/s", "GOP/s"];
const OP_RIGHT: &[usize] = &[2, 3, 4, 5, 6];

/// How close a result comes to the limits: rates of the round in the middle.
pub(super) struct Roofline {
    /// Weights and KV cells read, 10⁹ bytes per second.
    pub gb_s: f64,
    /// Part of what was measured for reads alone.
    pub read_share: f64,
    /// Operations of products, 10⁹ per second.
    pub gop_s: f64,
    /// Part of what was measured for 8-bit dots alone.
    pub int8_share: f64,
}

impl Report<'_> {
    /// Prints the answer.
    pub(super) fn print(&self) -> Result<()> {
        match self.settings.output {
            BenchOutput::Table => output::answer(|out| self.write_text(out, "", write_table)),
            BenchOutput::Markdown => output::answer(|out| self.write_text(out, "  ", write_markdown)),
            BenchOutput::Csv => output::answer(|out| self.write_csv(out)),
            BenchOutput::Json => output::answer_json(&self.json()),
        }
    }

    pub(super) fn roofline(&self, measured: &Measured) -> Roofline {
        let limits = self.limits_of(&measured.setup);
        let per_s = |count: u64| count as f64 / measured.median_s();
        let share = |rate: f64, limit: f64| if limit > 0.0 { rate / limit } else { 0.0 };
        let (read, ops) = (per_s(measured.demand.read_bytes()), per_s(measured.demand.product_ops));
        Roofline {
            gb_s: read / 1e9,
            read_share: share(read, limits.read_bytes_per_s),
            gop_s: ops / 1e9,
            int8_share: share(ops, limits.int8_ops_per_s),
        }
    }

    /// Lines above all tables: model, backend and limits.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![describe::model(&self.model.spec, &self.model.file)];
        let rounds = self.settings.rounds;
        if let Some(compute) = self.settings.computes.first() {
            // Threads may be several; they stand in the table.
            let words = backend_words(compute);
            let parts: Vec<&str> = words.split(", ").filter(|part| !part.contains("thread")).collect();
            let s = if rounds == 1 { "" } else { "s" };
            lines.push(format!("{}; tokens/s over {rounds} round{s}", parts.join(", ")));
        }
        for limits in &self.limits {
            lines.push(format!(
                "this machine with {}: reads {:.1} GB/s, 8-bit dots {:.0} GOP/s",
                describe::threads(limits.threads),
                limits.read_bytes_per_s / 1e9,
                limits.int8_ops_per_s / 1e9,
            ));
        }
        lines
    }

    /// Tables under lines; a line ends in `line_end`, since Markdown would join them.
    fn write_text(&self, out: &mut dyn Write, line_end: &str, write: TableWriter) -> io::Result<()> {
        for line in self.lines() {
            writeln!(out, "{line}{line_end}")?;
        }
        writeln!(out)?;
        let rows: Vec<Vec<String>> = self.results.iter().map(|measured| self.row(measured)).collect();
        write(out, &HEADS, HEADS_RIGHT, &rows)?;
        for measured in &self.results {
            let Some((whole, profile)) = &measured.profile else { continue };
            let setup = &measured.setup;
            writeln!(
                out,
                "\n{}, {}, {}, batch {}, depth {}: {:.2} ms step by step, {:.2} ms as a whole\n",
                measured.label(),
                setup.cache_type.value_type(),
                describe::threads(setup.threads),
                setup.batch,
                setup.depth,
                whole.as_secs_f64() * 1e3,
                measured.median_s() * 1e3,
            )?;
            write(out, &OP_HEADS, OP_RIGHT, &op_rows(*whole, profile))?;
        }
        Ok(())
    }

    fn row(&self, measured: &Measured) -> Vec<String> {
        let (setup, tps, roofline) = (&measured.setup, &measured.tps, self.roofline(measured));
        vec![
            measured.label(),
            setup.cache_type.value_type().to_string(),
            setup.threads.to_string(),
            setup.batch.to_string(),
            setup.depth.to_string(),
            format!("{:.2} ± {:.2}", tps.mean, tps.sd),
            format!("{:.2}", tps.median),
            format!("{:.1}", roofline.gb_s),
            percent(roofline.read_share),
            format!("{:.1}", roofline.gop_s),
            percent(roofline.int8_share),
        ]
    }

    fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "phase,n_prompt,n_gen,cache_type,threads,batch,depth,rounds,mean_tps,sd_tps,median_tps,min_tps,max_tps,gb_s,read_share,gop_s,int8_share"
        )?;
        for measured in &self.results {
            let (setup, tps, roofline) = (&measured.setup, &measured.tps, self.roofline(measured));
            let words = [
                measured.test.name().to_owned(),
                setup.n_prompt.to_string(),
                setup.n_gen.to_string(),
                setup.cache_type.value_type().to_string(),
                setup.threads.to_string(),
                setup.batch.to_string(),
                setup.depth.to_string(),
                measured.samples.len().to_string(),
            ];
            let rates = [tps.mean, tps.sd, tps.median, tps.min, tps.max].map(|tps| format!("{tps:.3}"));
            let Roofline { gb_s, read_share, gop_s, int8_share } = roofline;
            let roofline = [gb_s, read_share, gop_s, int8_share].map(|value| format!("{value:.4}"));
            let cells: Vec<String> = words.into_iter().chain(rates).chain(roofline).collect();
            writeln!(out, "{}", cells.join(","))?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let settings = self.settings;
        let first =
            |test: Test| self.results.iter().find(|measured| measured.test == test).map(|measured| measured.tps);
        let (prefill, decode) = (first(Test::Prefill), first(Test::Decode));
        let compute = settings.computes.first();
        let limits = self.limits.iter().map(|limits| {
            json!({
                "threads": limits.threads,
                "read_gb_s": limits.read_bytes_per_s / 1e9,
                "int8_gop_s": limits.int8_ops_per_s / 1e9,
            })
        });
        json!({
            "model": settings.model.file_name().map(|name| name.display().to_string()),
            "backend": compute.map(|compute| compute.backend.name()),
            "simd": compute.map(|compute| compute.simd.unwrap_or_else(minfer::SimdLevel::detect).name()),
            "threads": compute.map(|compute| compute.threads),
            "n_prompt": settings.n_prompt,
            "n_gen": settings.n_gen,
            "rounds": settings.rounds,
            "load_s": self.load_s,
            // Of the first setup.
            "prefill_tps": prefill.map(|tps| tps.median),
            "decode_tps": decode.map(|tps| tps.median),
            "prefill": prefill,
            "decode": decode,
            "limits": limits.collect::<Vec<_>>(),
            "results": self.results.iter().map(|measured| self.result_json(measured)).collect::<Vec<_>>(),
        })
    }

    fn result_json(&self, measured: &Measured) -> Value {
        let (setup, roofline, demand) = (&measured.setup, self.roofline(measured), &measured.demand);
        let mut value = json!({
            "test": measured.test.name(),
            "n_prompt": setup.n_prompt,
            "n_gen": setup.n_gen,
            "cache_type": setup.cache_type.value_type().to_string(),
            "threads": setup.threads,
            "batch": setup.batch,
            "depth": setup.depth,
            "tps": measured.tps,
            "samples_tps": measured.samples,
            "gb_s": roofline.gb_s,
            "read_share": roofline.read_share,
            "gop_s": roofline.gop_s,
            "int8_share": roofline.int8_share,
            "per_round": {
                "product_ops": demand.product_ops,
                "planned_product_ops": demand.planned_product_ops,
                "attention_ops": demand.attention_ops,
                "weight_bytes": demand.weight_bytes,
                "kv_read_bytes": demand.kv_read_bytes,
                "kv_written_bytes": demand.kv_written_bytes,
                "value_bytes": demand.value_bytes,
            },
        });
        if let Some((whole, profile)) = &measured.profile {
            let row = |row: &OpRow| {
                json!({
                    "op": row.op,
                    "weights": row.formats,
                    "calls": row.calls,
                    "ms": ms(row.time),
                    "share": share(row.time, *whole),
                    "gb_s": row.gb_s(),
                    "gop_s": row.gop_s(),
                })
            };
            value["profile"] = json!({
                "ms": ms(*whole),
                "between_steps_ms": ms(whole.saturating_sub(profile.time())),
                "ops": profile.rows().into_iter().map(row).collect::<Vec<_>>(),
            });
        }
        value
    }
}

/// Writes rows of words under heads; the columns named are aligned to the right.
type TableWriter = fn(&mut dyn Write, &[&str], &'static [usize], &[Vec<String>]) -> io::Result<()>;

fn write_table(out: &mut dyn Write, heads: &[&str], right: &'static [usize], rows: &[Vec<String>]) -> io::Result<()> {
    let mut table = Table::new(right);
    table.row(heads.iter().copied());
    rows.iter().for_each(|row| table.row(row.iter().cloned()));
    table.write(out, "")
}

fn write_markdown(
    out: &mut dyn Write,
    heads: &[&str],
    right: &'static [usize],
    rows: &[Vec<String>],
) -> io::Result<()> {
    let rule = |column: usize| if right.contains(&column) { "--:" } else { ":--" };
    writeln!(out, "| {} |", heads.join(" | "))?;
    writeln!(out, "|{}|", (0..heads.len()).map(rule).collect::<Vec<_>>().join("|"))?;
    rows.iter().try_for_each(|row| writeln!(out, "| {} |", row.join(" | ")))
}

fn op_rows(whole: Duration, profile: &Profile) -> Vec<Vec<String>> {
    let number = |value: Option<f64>| value.map(|value| format!("{value:.1}")).unwrap_or_default();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for row in profile.rows() {
        rows.push(vec![
            row.op.to_owned(),
            row.formats.clone(),
            row.calls.to_string(),
            format!("{:.2}", ms(row.time)),
            percent(share(row.time, whole)),
            number(row.gb_s()),
            number(row.gop_s()),
        ]);
    }
    let between = whole.saturating_sub(profile.time());
    let (time, part) = (format!("{:.2}", ms(between)), percent(share(between, whole)));
    rows.push(vec!["between steps".into(), String::new(), String::new(), time, part, String::new(), String::new()]);
    rows
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn share(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { part.as_secs_f64() / whole.as_secs_f64() }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
