//! What the process really takes, from the system's files (Linux). Takes an engine; gives planned beside measured, class by
//! class; must not know how anything was planned.

use crate::output::{Table, line, mib};
use minfer::{Engine, Owner};
use minfer_backend::BufRef;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Memory of this process at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Bytes of pages in memory now.
    pub resident_bytes: u64,
    /// The most there ever were.
    pub peak_bytes: u64,
}

impl Usage {
    /// `None` where the system does not say.
    pub fn now() -> Option<Self> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
        };
        Some(Self { resident_bytes: field("VmRSS:")?, peak_bytes: field("VmHWM:")? })
    }
}

/// Prints a table on stderr: planned, allocated and resident bytes of each class, and of the whole process.
pub fn report_memory(engine: &Engine, start: Option<Usage>) {
    let (Some(start), Some(end)) = (start, Usage::now()) else {
        line("memory report: this system does not say what a process takes");
        return;
    };
    let ledger = engine.ledger();
    let mut table = Table::new(&[1, 2, 3]);
    table.row(["memory", "planned", "allocated", "resident"]);
    let (mut resident_sum, mut absent) = (Some(0), 0);
    for owner in [Owner::Weights, Owner::Kv, Owner::Arena] {
        let regions = || engine.regions().filter(|(class, _)| *class == owner).map(|(_, buf)| buf);
        let allocated: u64 = regions().map(|buf| buf.len).sum();
        let resident: Option<u64> = regions().map(|buf| resident_in(engine, buf)).sum();
        resident_sum = resident_sum.zip(resident).map(|(sum, bytes)| sum + bytes);
        absent += resident.map_or(0, |bytes| allocated.saturating_sub(bytes));
        table.row([owner.name().into(), mib(ledger.sum(owner)), mib(allocated), words(resident)]);
        if let Some(rows) = rows_read_one_by_one(engine).filter(|_| owner == Owner::Weights) {
            let resident = resident_in(engine, rows);
            table.row(["  embedding in it".into(), mib(ledger.on_demand()), mib(rows.len), words(resident)]);
        }
    }
    let rest = [Owner::Tokenizer, Owner::Threads, Owner::Host, Owner::Graphs, Owner::Program];
    let planned: u64 = rest.iter().map(|&owner| ledger.sum(owner)).sum();
    let measured = resident_sum.map(|sum| end.resident_bytes.saturating_sub(sum));
    table.row(["the rest".into(), mib(planned), String::new(), words(measured)]);
    table.row(["process".into(), mib(ledger.total()), String::new(), mib(end.resident_bytes)]);
    table.row(["its peak".into(), mib(ledger.total()), String::new(), mib(end.peak_bytes)]);
    let mut text = Vec::new();
    if table.write(&mut text, "").is_ok() {
        line(String::from_utf8_lossy(&text).trim_end());
    }
    line("the rest: tokenizer, workers, host, graphs and the program");
    line(&format!(
        "of the planned {} are not in memory (pages that nothing used, or that the system took back); {} are left",
        mib(absent),
        mib(ledger.total().saturating_sub(absent)),
    ));
    line(&format!(
        "the process grew by {} after its start with {}",
        mib(end.peak_bytes.saturating_sub(start.resident_bytes)),
        mib(start.resident_bytes),
    ));
}

/// The embedding, if only single rows of it are read.
fn rows_read_one_by_one(engine: &Engine) -> Option<BufRef> {
    let weights = &engine.model().spec.weights;
    weights.output.as_ref()?;
    let source = weights.embedding.source;
    let mut parts = engine.regions().filter(|(owner, _)| *owner == Owner::Weights);
    let (_, part) = parts.nth(usize::try_from(source.part).ok()?)?;
    Some(BufRef { offset: source.offset, len: source.len, ..part })
}

fn resident_in(engine: &Engine, buf: BufRef) -> Option<u64> {
    resident_bytes(engine.region_address(buf)? as u64 + buf.offset, buf.len)
}

fn words(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "unknown".into(), mib)
}

/// Bytes of an address range whose pages are in memory, from `/proc/self/pagemap`: eight bytes a page, the highest bit set
/// if it is present (Linux, Documentation/admin-guide/mm/pagemap.rst).
fn resident_bytes(start: u64, len: u64) -> Option<u64> {
    let page_bytes = page_bytes()?;
    let (first, last) = (start / page_bytes, (start + len).div_ceil(page_bytes));
    let mut file = File::open("/proc/self/pagemap").ok()?;
    file.seek(SeekFrom::Start(first * 8)).ok()?;
    let mut entries = Vec::new();
    file.take((last - first) * 8).read_to_end(&mut entries).ok()?;
    let present = entries.chunks_exact(8).filter(|entry| entry[7] & 0x80 != 0).count() as u64;
    // Pages at the ends may be shared with others.
    Some((present * page_bytes).min(len))
}

fn page_bytes() -> Option<u64> {
    let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let line = maps.lines().find(|line| line.starts_with("KernelPageSize:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn pages_are_resident_once_they_are_touched() {
        let mut bytes = vec![0u8; 64 << 20];
        let resident = |bytes: &[u8]| resident_bytes(bytes.as_ptr().addr() as u64, bytes.len() as u64).unwrap();
        assert!(resident(&bytes) < 4 << 20);
        bytes.iter_mut().step_by(1024).for_each(|byte| *byte = 1);
        assert_eq!(resident(&bytes), 64 << 20);
        let usage = Usage::now().unwrap();
        assert!(usage.peak_bytes >= usage.resident_bytes && usage.resident_bytes > 64 << 20);
    }
}
