//! How much memory the system has, and what it enforces. Takes the system's files; gives figures; must not know what
//! anybody wants of it.

use minfer_cpu::control_groups;
use std::fs;
use std::path::Path;

/// Bytes of this program beside the engine: its code and libraries in use, the main stack, and what the heap keeps of
/// loading. Measured on x86-64 Linux: 5.5 MiB at the start, up to 8 MiB later, whatever the model.
pub const PROGRAM_BYTES: u64 = 8 << 20;

/// Addresses of the program beside its code and libraries: the stack of the thread that waits for Ctrl+C, its own, the heap.
/// Measured on x86-64 Linux by bisection: 2.9 to 3.1 MiB, whatever the model and the build.
const STACK_ADDRESS_BYTES: u64 = (3 << 20) + (1 << 18);

/// What the system says of its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Bytes there are, or that this process's group may have.
    pub total_bytes: u64,
    /// Bytes that can be had now without swapping.
    pub available_bytes: u64,
    /// What the group allows that leaves least, if any allows less than the machine has.
    pub group: Option<Group>,
    /// Addresses that this process may have (`ulimit -v`). Mapped weights count, and so does what lies nowhere.
    pub address_limit_bytes: Option<u64>,
    /// Of these, what no ledger counts: code that never runs, stacks that never fill.
    pub empty_address_bytes: u64,
    /// What this process may have beside mapped files (`ulimit -d`).
    pub data_limit_bytes: Option<u64>,
}

/// A control group with a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// Bytes that all in it may have together.
    pub limit_bytes: u64,
    /// What a ledger may be within that: the limit without what others in the group have.
    pub budget_bytes: u64,
}

impl Memory {
    /// What a ledger may be within the addresses of this process.
    pub fn address_budget_bytes(&self) -> Option<u64> {
        self.address_limit_bytes.map(|limit| limit.saturating_sub(self.empty_address_bytes))
    }
}

/// The memory of this machine within its control groups (v1 or v2), and the limits of this process (`ulimit -d` and `-v`).
/// `None` where the system does not say.
pub fn memory() -> Option<Memory> {
    memory_at(Path::new("/"))
}

fn memory_at(root: &Path) -> Option<Memory> {
    let info = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
    };
    let (total_bytes, available_bytes) = (field("MemTotal:")?, field("MemAvailable:")?);
    let own = fs::read_to_string(root.join("proc/self/limits")).unwrap_or_default();
    let mut machine = Memory {
        total_bytes,
        available_bytes,
        group: None,
        address_limit_bytes: soft_limit(&own, "Max address space"),
        empty_address_bytes: empty_addresses(root),
        data_limit_bytes: soft_limit(&own, "Max data size"),
    };
    let own_bytes = own_bytes(root);
    for (limit_bytes, free) in control_groups(root, "memory").iter().filter_map(|group| limits(group)) {
        // No limit is a number too in version 1: nearly the largest.
        if limit_bytes < total_bytes {
            let group = Group { limit_bytes, budget_bytes: limit_bytes.min(free.saturating_add(own_bytes)) };
            let narrower = machine.group.filter(|other| other.budget_bytes <= group.budget_bytes);
            machine.group = narrower.or(Some(group));
        }
        machine.total_bytes = machine.total_bytes.min(limit_bytes);
        machine.available_bytes = machine.available_bytes.min(free);
    }
    Some(machine)
}

/// The first number after a limit's name, unless there is none: `Max data size  4096  unlimited  bytes`.
pub fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Bytes of addresses that a limit on them counts and a ledger does not: of the program far more is mapped than is ever
/// touched. Its files are mapped privately, those of models are shared.
fn empty_addresses(root: &Path) -> u64 {
    let maps = fs::read_to_string(root.join("proc/self/maps")).unwrap_or_default();
    // `first-last perms offset device inode path`, in base 16.
    let code_bytes = maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (first, last) = words.next()?.split_once('-')?;
        let is_file = words.next()?.ends_with('p') && words.nth(2)? != "0";
        let address = |text| u64::from_str_radix(text, 16).ok();
        if is_file { address(last)?.checked_sub(address(first)?) } else { None }
    });
    (code_bytes.sum::<u64>() + STACK_ADDRESS_BYTES).saturating_sub(PROGRAM_BYTES)
}

/// Bytes that a group counts and a ledger too: what this process has taken by now, beside files. At least what the program
/// takes, as not all of that is there yet.
fn own_bytes(root: &Path) -> u64 {
    let status = fs::read_to_string(root.join("proc/self/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let taken = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024));
    taken.unwrap_or(0).max(PROGRAM_BYTES)
}

/// Limit and free bytes of a control group. Pages of files count as free: they are given up first.
fn limits(group: &Path) -> Option<(u64, u64)> {
    let number = |names: [&str; 2]| {
        let text = names.into_iter().find_map(|name| fs::read_to_string(group.join(name)).ok())?;
        text.trim().parse::<u64>().ok()
    };
    let limit = number(["memory.max", "memory.limit_in_bytes"])?;
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let cached = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|n| n.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let files = cached("inactive_file").saturating_add(cached("active_file"));
    let used = number(["memory.current", "memory.usage_in_bytes"]).unwrap_or(0).saturating_sub(files);
    Some((limit, limit.saturating_sub(used)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const NO_LIMITS: Memory = Memory {
        total_bytes: 10,
        available_bytes: 5,
        group: None,
        address_limit_bytes: None,
        empty_address_bytes: 0,
        data_limit_bytes: None,
    };

    /// A machine of 1000 KiB, 600 of them available, with the limits of a process and files of a control group.
    pub(crate) fn machine_with(name: &str, own: &str, cgroup: &str, files: &[(&str, &str)]) -> Memory {
        let root = std::env::temp_dir().join(format!("minfer-memory-{name}-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/meminfo", "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable: 600 kB\n");
        write("proc/self/limits", own);
        write("proc/self/cgroup", cgroup);
        files.iter().for_each(|(path, text)| write(&format!("sys/fs/cgroup/{path}"), text));
        let machine = memory_at(&root).unwrap();
        fs::remove_dir_all(&root).unwrap();
        machine
    }

    #[test]
    fn groups_limit_the_machine() {
        const KIB: u64 = 1024;
        // Of so little the program alone takes more: its groups leave it all.
        let of = |total_bytes: u64, available_bytes: u64| {
            let group = Group { limit_bytes: total_bytes, budget_bytes: total_bytes };
            let group = Some(group).filter(|group| group.limit_bytes < 1000 * KIB);
            Memory { total_bytes, available_bytes, group, ..NO_LIMITS }
        };
        assert_eq!(machine_with("none", "", "", &[]), of(1000 * KIB, 600 * KIB));
        let unlimited = [("a/memory.max", "max\n"), ("a/memory.current", "77\n")];
        assert_eq!(machine_with("v2max", "", "0::/a\n", &unlimited), of(1000 * KIB, 600 * KIB));
        // The group above is the narrower one; pages of files are free.
        let v2 = [
            ("a/memory.max", "800000"),
            ("a/memory.current", "700000"),
            ("a/memory.stat", "anon 1\ninactive_file 300000\nactive_file 100000\n"),
            ("a/b/memory.max", "900000"),
            ("a/b/memory.current", "100"),
        ];
        assert_eq!(machine_with("v2", "", "0::/a/b\n", &v2), of(800_000, 500_000));
        let v1 = [("memory/memory.limit_in_bytes", "500000"), ("memory/memory.usage_in_bytes", "200000")];
        let lines = "9:name=systemd:/\n4:memory:/not/here\n";
        assert_eq!(machine_with("v1", "", lines, &v1), of(500_000, 300_000));
    }

    /// What others in a group have cannot be had; what this process has already can.
    #[test]
    fn others_in_a_group_leave_less() {
        let root = std::env::temp_dir().join(format!("minfer-memory-others-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/meminfo", "MemTotal:  1000000 kB\nMemAvailable: 900000 kB\n");
        write("proc/self/cgroup", "0::/a\n");
        write("sys/fs/cgroup/a/memory.max", "400000000");
        write("sys/fs/cgroup/a/memory.current", "300000000");
        let budget = || memory_at(&root).unwrap().group.unwrap().budget_bytes;
        assert_eq!(budget(), 100_000_000 + PROGRAM_BYTES);
        write("proc/self/status", "VmRSS:\t  60000 kB\nRssAnon:\t  50000 kB\n");
        assert_eq!(budget(), 100_000_000 + 51_200_000);
        write("proc/self/status", "RssAnon:\t  299999 kB\n");
        assert_eq!(budget(), 400_000_000);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_limit_on_addresses_counts_code_that_is_never_touched() {
        let root = std::env::temp_dir().join(format!("minfer-memory-maps-{}", std::process::id()));
        fs::create_dir_all(root.join("proc/self")).unwrap();
        let maps = "00400000-01000000 r-xp 00000000 fe:00 600 /bin/minfer\n\
                    01000000-02000000 rw-p 00000000 00:00 0 [heap]\n\
                    7f0000000000-7f0040000000 r--s 00000000 fe:00 100 /m.gguf\n";
        fs::write(root.join("proc/self/maps"), maps).unwrap();
        assert_eq!(empty_addresses(&root), (12 << 20) + STACK_ADDRESS_BYTES - PROGRAM_BYTES);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(empty_addresses(&root), 0);
    }
}
