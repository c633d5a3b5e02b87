//! How much memory there is, and how much may be used. Takes a wish such as `2GiB` or `auto` and the system's files; gives
//! a budget; must not know models.

use crate::exit::Failure;
use crate::output::mib;
use minfer::Budget;
use minfer_cpu::control_groups;
use std::fs;
use std::path::Path;

/// Bytes of this program beside the engine: its code and libraries in use, the main stack, and what the heap keeps of
/// loading. Measured on x86-64 Linux: 5.5 MiB at the start, up to 8 MiB later, whatever the model.
pub const PROGRAM_BYTES: u64 = 8 << 20;

/// Addresses of the program beside its code and libraries: the stack of the thread that waits for Ctrl+C, its own, the heap.
/// Measured on x86-64 Linux by bisection: 2.9 to 3.1 MiB, whatever the model and the build.
const STACK_ADDRESS_BYTES: u64 = (3 << 20) + (1 << 18);

/// What `--memory` may be.
pub const MEMORY_HELP: &str = "bytes, or a number with KB, KiB, MB, MiB, GB or GiB, such as 2GiB; or auto";

/// How much may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Limit {
    /// What a control group or `ulimit -v` allows, weights included. Beside weights, what the machine has or `ulimit -d`
    /// allows: they are mapped, and may even be larger.
    #[default]
    Machine,
    /// What is free now.
    Auto,
    /// So many bytes.
    Bytes(u64),
}

/// What the system says of its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Bytes there are, or that this process's group may have.
    pub total_bytes: u64,
    /// Bytes that can be had now without swapping.
    pub available_bytes: u64,
    /// What the groups allow, if that is less than the machine has.
    pub group_limit_bytes: Option<u64>,
    /// What a ledger may be within the addresses of this process (`ulimit -v`). Mapped weights count.
    pub address_limit_bytes: Option<u64>,
    /// What this process may have beside mapped files (`ulimit -d`).
    pub data_limit_bytes: Option<u64>,
}

impl Memory {
    /// What must admit a ledger where nobody on the command line says how much: what somebody set for this process or its
    /// group is meant, weights included; beside weights there is what the machine has and the process may keep. Neither
    /// says what the other does, unless the first one allows less.
    fn budgets(&self) -> Vec<Budget> {
        let all = [self.group_limit_bytes, self.address_limit_bytes].into_iter().flatten().min();
        let own = self.data_limit_bytes.map_or(self.total_bytes, |limit| limit.min(self.total_bytes));
        let own_decides = all.is_none_or(|all| own < all).then_some(Budget { bytes: own, weights: false });
        all.map(Budget::of_all).into_iter().chain(own_decides).collect()
    }
}

impl Limit {
    /// The limit in words, as typed.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if text == "auto" {
            return Ok(Limit::Auto);
        }
        let wrong = || Failure::new(format!("--memory is `{text}`, expected {MEMORY_HELP}"));
        bytes(text).map(Limit::Bytes).ok_or_else(wrong)
    }

    /// The budgets of an engine, each of which must admit it. Without a limit, and where the system does not say what it
    /// has, there is none.
    pub fn budgets(self, machine: Option<Memory>) -> Result<Vec<Budget>, Failure> {
        match (self, machine) {
            (Limit::Bytes(bytes), _) => Ok(vec![Budget::of_all(bytes)]),
            (Limit::Auto, Some(machine)) => Ok(vec![Budget::of_all(machine.available_bytes)]),
            (Limit::Auto, None) => {
                let failure = Failure::new("--memory auto: the system does not say how much memory is free");
                Err(failure.hint("give a number, such as --memory 8GiB"))
            }
            (Limit::Machine, machine) => Ok(machine.map_or_else(Vec::new, |machine| machine.budgets())),
        }
    }
}

/// Who allows no more than the budget that refuses, where nobody on the command line limits anything.
pub fn who_limits(budget: Budget, limit: Limit, machine: Option<Memory>) -> Option<String> {
    let machine = machine.filter(|_| limit == Limit::Machine)?;
    let (bytes, is_set_by) = (mib(budget.bytes), |limit: Option<u64>| limit == Some(budget.bytes));
    Some(match budget.weights {
        true if is_set_by(machine.group_limit_bytes) => {
            format!("the control group of this process allows {bytes}; --memory SIZE takes another limit")
        }
        true => format!("ulimit -v leaves this process {bytes}, beside addresses where nothing lies"),
        false if is_set_by(machine.data_limit_bytes) => {
            format!("ulimit -d allows this process {bytes} beside mapped files")
        }
        false => return None,
    })
}

/// What to say where nothing is refused, but mapped weights and all else together are more than the machine has.
pub fn paging_warning(total_bytes: u64, limit: Limit, machine: Option<Memory>) -> Option<String> {
    let machine = machine.filter(|machine| limit == Limit::Machine && total_bytes > machine.total_bytes)?;
    Some(format!(
        "{} in all are more than the {} of this machine: weights will be read from disk again and again, which is slow",
        mib(total_bytes),
        mib(machine.total_bytes)
    ))
}

/// A number and a unit. Decimal places are exact: whole bytes, rounded down.
fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit: u128 = match unit.trim_start() {
        "" | "B" => 1,
        "KB" | "kB" => 1000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return None,
    };
    let (whole, places) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |digits: &str| (1..=20).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(places) || places.len() > 9 || unit == 1 && number.contains('.') {
        return None;
    }
    let part = places.parse::<u128>().ok()? * unit / 10u128.pow(places.len() as u32);
    u64::try_from(whole.parse::<u128>().ok()?.checked_mul(unit)?.checked_add(part)?).ok()
}

/// The memory of this machine, within the limits of this process (`ulimit -d` and `-v`) and of its control groups (v1 or
/// v2). `None` where the system does not say.
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
        group_limit_bytes: None,
        address_limit_bytes: soft_limit(&own, "Max address space")
            .map(|limit| limit.saturating_sub(empty_addresses(root))),
        data_limit_bytes: soft_limit(&own, "Max data size"),
    };
    for (limit, free) in control_groups(root, "memory").iter().filter_map(|group| limits(group)) {
        // No limit is a number too in version 1: nearly the largest.
        if limit < total_bytes {
            machine.group_limit_bytes = Some(machine.group_limit_bytes.map_or(limit, |other| other.min(limit)));
        }
        machine.total_bytes = machine.total_bytes.min(limit);
        machine.available_bytes = machine.available_bytes.min(free);
    }
    for limit in [machine.data_limit_bytes, machine.address_limit_bytes].into_iter().flatten() {
        machine.available_bytes = machine.available_bytes.min(limit);
    }
    Some(machine)
}

/// The first number after a limit's name, unless there is none: `Max data size  4096  unlimited  bytes`.
fn soft_limit(limits: &str, name: &str) -> Option<u64> {
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
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_exactly() {
        for (text, expected) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("1KB", 1000),
            ("1KiB", 1024),
            ("2MB", 2_000_000),
            ("2MiB", 2 << 20),
            ("3GB", 3_000_000_000),
            ("3GiB", 3 << 30),
            ("3 GiB", 3 << 30),
            ("1.5GiB", 3 << 29),
            ("0.001MB", 1000),
        ] {
            assert_eq!(Limit::parse(text).unwrap(), Limit::Bytes(expected), "{text}");
        }
        assert_eq!(Limit::parse("auto").unwrap(), Limit::Auto);
        for text in
            ["", "GiB", "2G", "2gib", "-1", "1e9", "1.GiB", ".5GiB", "1.5", "1.2.3GiB", "99999999999GiB", "2GiBs"]
        {
            let message = Limit::parse(text).unwrap_err().to_string();
            assert!(message.starts_with(&format!("--memory is `{text}`, expected")), "{message}");
        }
    }

    const NO_LIMITS: Memory = Memory {
        total_bytes: 10,
        available_bytes: 5,
        group_limit_bytes: None,
        address_limit_bytes: None,
        data_limit_bytes: None,
    };

    /// A machine of 1000 KiB, 600 of them available, with the limits of a process and files of a control group.
    fn machine_with(name: &str, own: &str, cgroup: &str, files: &[(&str, &str)]) -> Memory {
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
        let of = |total_bytes: u64, available_bytes: u64| {
            let group_limit_bytes = Some(total_bytes).filter(|&bytes| bytes < 1000 * KIB);
            Memory { total_bytes, available_bytes, group_limit_bytes, ..NO_LIMITS }
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

    /// What the process alone may have limits all but weights; what it may map limits weights too.
    #[test]
    fn groups_and_processes_may_be_limited_too() {
        let limits = |data: &str, space: &str| {
            let text = format!(
                "Limit                     Soft Limit           Hard Limit           Units\n\
                 Max data size             {data}               unlimited            bytes\n\
                 Max address space         {space}              unlimited            bytes\n"
            );
            let machine = machine_with(&format!("limits-{data}-{space}"), &text, "", &[]);
            let of = |limit: Limit| limit.budgets(Some(machine)).unwrap();
            assert_eq!(machine.total_bytes, 1_024_000);
            (of(Limit::Machine), of(Limit::Auto))
        };
        let (all, own) = (Budget::of_all, |bytes: u64| Budget { bytes, weights: false });
        assert_eq!(limits("unlimited", "unlimited"), (vec![own(1_024_000)], vec![all(614_400)]));
        assert_eq!(limits("700000", "unlimited"), (vec![own(700_000)], vec![all(614_400)]));
        assert_eq!(limits("500000", "900000"), (vec![all(900_000), own(500_000)], vec![all(500_000)]));
        assert_eq!(limits("900000", "500000"), (vec![all(500_000)], vec![all(500_000)]));
        assert_eq!(limits("unlimited", "2000000"), (vec![all(2_000_000), own(1_024_000)], vec![all(614_400)]));
    }

    /// A narrower limit that weights do not count in leaves a wider one in force that they do count in.
    #[test]
    fn no_limit_hides_another() {
        let group = [("memory/memory.limit_in_bytes", "400000")];
        let says = |budget, machine| who_limits(budget, Limit::Machine, Some(machine)).unwrap();
        let narrow = machine_with("narrow", "", "4:memory:/\n", &group);
        assert_eq!(Limit::Machine.budgets(Some(narrow)).unwrap(), [Budget::of_all(400_000)]);
        assert!(says(Budget::of_all(400_000), narrow).contains("control group"));
        assert_eq!(who_limits(Budget::of_all(400_000), Limit::Auto, Some(narrow)), None);

        let data = "Max data size 300000 unlimited bytes\n";
        let narrower = machine_with("narrower", data, "4:memory:/\n", &group);
        let own = Budget { bytes: 300_000, weights: false };
        assert_eq!(Limit::Machine.budgets(Some(narrower)).unwrap(), [Budget::of_all(400_000), own]);
        assert!(says(Budget::of_all(400_000), narrower).contains("control group"));
        assert!(says(own, narrower).contains("ulimit -d"));

        let addresses = Memory { address_limit_bytes: Some(300_000), ..narrow };
        assert_eq!(Limit::Machine.budgets(Some(addresses)).unwrap(), [Budget::of_all(300_000)]);
        assert!(says(Budget::of_all(300_000), addresses).contains("ulimit -v"));
        assert_eq!(who_limits(Budget { bytes: 10, weights: false }, Limit::Machine, Some(NO_LIMITS)), None);
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

    #[test]
    fn what_nobody_limits_is_limited_by_the_machine_without_weights() {
        let machine = Some(NO_LIMITS);
        assert_eq!(Limit::Machine.budgets(machine).unwrap(), [Budget { bytes: 10, weights: false }]);
        assert_eq!(Limit::Auto.budgets(machine).unwrap(), [Budget::of_all(5)]);
        assert_eq!(Limit::Bytes(7).budgets(None).unwrap(), [Budget::of_all(7)]);
        assert_eq!(Limit::Machine.budgets(None).unwrap(), []);
        assert!(Limit::Auto.budgets(None).is_err());
        assert!(paging_warning(11, Limit::Machine, machine).is_some());
        assert_eq!(paging_warning(10, Limit::Machine, machine), None);
        assert_eq!(paging_warning(11, Limit::Bytes(20), machine), None);
    }
}
