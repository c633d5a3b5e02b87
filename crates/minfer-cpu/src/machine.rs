//! The machine around this process. Takes a file system (the kernel's accounts of itself, on Linux); gives [`Machine`];
//! reads no environment. What a system does not say is `None`.

use crate::cgroup;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;

/// Processors that this process may use, and what limits it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Processors {
    /// Processors that the standard library counts: affinity mask and quota are in here, rounded down to at least 1.
    pub available: NonZeroUsize,
    /// Processors in the affinity mask that are online.
    pub allowed: Option<usize>,
    /// Distinct physical cores among them.
    pub cores: Option<NonZeroUsize>,
    /// Processors' worth of time that control groups allow.
    pub quota: Option<f64>,
}

/// A cache of the first processor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache {
    /// 1 is nearest.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Size.
    pub bytes: u64,
    /// Processors that share it.
    pub n_shared: usize,
}

/// The machine around this process.
#[derive(Clone, PartialEq, Debug)]
pub struct Machine {
    /// Name of the processor.
    pub processor: Option<String>,
    /// Processors that this process may use.
    pub processors: Processors,
    /// Caches of the first processor, nearest first.
    pub caches: Vec<Cache>,
}

impl Processors {
    /// As the system says.
    pub fn read() -> Self {
        let available = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self::read_from(Path::new("/"), available)
    }

    fn read_from(root: &Path, available: NonZeroUsize) -> Self {
        let allowed = allowed(root);
        Self {
            available,
            allowed: allowed.as_ref().map(BTreeSet::len),
            cores: allowed.and_then(|allowed| cores(root, &allowed)),
            quota: cgroup::cpu_quota(root),
        }
    }

    /// Threads that compute when nobody asks for another number: physical cores within the affinity mask and the quota.
    /// The second threads of cores are left out; they share the very units that the kernels keep busy.
    pub fn default_threads(&self) -> NonZeroUsize {
        let cores = self.cores.map_or(self.available, |cores| cores.min(self.available));
        let whole = self.quota.map_or(usize::MAX, |quota| quota as usize);
        NonZeroUsize::new(cores.get().min(whole)).unwrap_or(NonZeroUsize::MIN)
    }
}

impl Machine {
    /// As the system says.
    pub fn read() -> Self {
        Self::read_from(Path::new("/"), Processors::read())
    }

    fn read_from(root: &Path, processors: Processors) -> Self {
        Self { processor: field(root, "proc/cpuinfo", "model name"), processors, caches: caches(root) }
    }

    /// Size of the last cache before memory.
    pub fn last_cache_bytes(&self) -> Option<u64> {
        self.caches.iter().map(|cache| cache.bytes).max()
    }
}

/// The processors of the affinity mask that are online.
fn allowed(root: &Path) -> Option<BTreeSet<u32>> {
    let online = parse_list(&read(root, "sys/devices/system/cpu/online")?)?;
    match field(root, "proc/self/status", "Cpus_allowed_list") {
        Some(mask) => Some(&parse_list(&mask)? & &online),
        None => Some(online),
    }
}

/// Distinct cores among processors. `None` where the system does not say.
fn cores(root: &Path, processors: &BTreeSet<u32>) -> Option<NonZeroUsize> {
    let mut cores = BTreeSet::new();
    for processor in processors {
        // Siblings list each other, so the lists are equal exactly for threads of one core.
        let siblings = format!("sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
        cores.insert(read(root, &siblings)?.trim().to_string());
    }
    NonZeroUsize::new(cores.len())
}

/// Caches of the first processor, as far as they are described.
fn caches(root: &Path) -> Vec<Cache> {
    let one = |index: usize| {
        let of = |name: &str| read(root, &format!("sys/devices/system/cpu/cpu0/cache/index{index}/{name}"));
        let size = of("size")?;
        let (number, unit) = size.trim().split_at_checked(size.trim().len().saturating_sub(1))?;
        let unit: u64 = match unit {
            "K" => 1 << 10,
            "M" => 1 << 20,
            "G" => 1 << 30,
            _ => return None,
        };
        Some(Cache {
            level: of("level")?.trim().parse().ok()?,
            kind: of("type")?.trim().to_string(),
            bytes: number.parse::<u64>().ok()?.checked_mul(unit)?,
            n_shared: parse_list(&of("shared_cpu_list")?)?.len(),
        })
    };
    (0..16).map_while(one).collect()
}

/// The value after `name` and a colon in a file of such lines.
fn field(root: &Path, path: &str, name: &str) -> Option<String> {
    let text = read(root, path)?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    Some(value.trim().to_string())
}

fn read(root: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(root.join(path)).ok()
}

/// Parses `0-3,8`. `None` if it is something else.
fn parse_list(list: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last > 1 << 16 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::ops::Deref;
    use std::path::PathBuf;

    /// A folder that is gone with its owner.
    pub(crate) struct Tree(PathBuf);

    impl Deref for Tree {
        type Target = Path;

        fn deref(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// A folder that holds these files.
    pub(crate) fn tree(name: &str, files: &[(&str, &str)]) -> Tree {
        let root = std::env::temp_dir().join(format!("minfer-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Tree(root)
    }

    /// Processors 0 and 2 are one core, 1 and 3 another.
    fn two_cores(name: &str, allowed: &str, more: &[(&str, &str)]) -> Tree {
        let siblings = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let lists: Vec<String> = (0..4).map(siblings).collect();
        let status = format!("Name:\tx\nCpus_allowed_list:\t{allowed}\n");
        let mut files = vec![("sys/devices/system/cpu/online", "0-3\n"), ("proc/self/status", &status)];
        files.extend(lists.iter().zip(["0,2\n", "1,3\n", "0,2\n", "1,3\n"]).map(|(path, text)| (&path[..], text)));
        files.extend(more);
        tree(name, &files)
    }

    fn processors(root: &Path, available: usize) -> Processors {
        Processors::read_from(root, NonZeroUsize::new(available).unwrap())
    }

    #[test]
    fn cpu_lists_parse() {
        assert_eq!(parse_list("0-2,5\n"), Some(BTreeSet::from([0, 1, 2, 5])));
        assert_eq!(parse_list(""), Some(BTreeSet::new()));
        assert_eq!(parse_list("0-x"), None);
        assert_eq!(parse_list("0-4294967295"), None);
    }

    #[test]
    fn siblings_count_once_and_affinity_limits() {
        for (name, mask, allowed, cores) in [("all", "0-3", 4, 2), ("one", "0,2", 2, 1), ("offline", "0-1,9", 2, 2)] {
            let got = processors(&two_cores(name, mask, &[]), allowed);
            assert_eq!((got.allowed, got.cores.map(NonZeroUsize::get)), (Some(allowed), Some(cores)), "{name}");
            assert_eq!(got.default_threads().get(), cores);
        }
    }

    #[test]
    fn the_quota_limits_threads_to_whole_ones() {
        for (name, quota, threads) in
            [("1.5", "150000 100000", 1), ("half", "50000 100000", 1), ("3", "300000 100000", 2)]
        {
            let cgroup = [("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/cpu.max", quota)];
            let got = processors(&two_cores(&format!("quota-{name}"), "0-3", &cgroup), 4);
            assert_eq!(got.default_threads().get(), threads, "{name}: {got:?}");
        }
    }

    #[test]
    fn where_the_system_is_silent_its_processors_are_taken() {
        let got = processors(&tree("silent", &[]), 3);
        assert_eq!((got.allowed, got.cores, got.quota), (None, None, None));
        assert_eq!(got.default_threads().get(), 3);
    }

    #[test]
    fn name_and_caches_are_read() {
        let cache = "sys/devices/system/cpu/cpu0/cache/index0";
        let names = ["size", "level", "type", "shared_cpu_list"].map(|name| format!("{cache}/{name}"));
        let mut files: Vec<_> = names.iter().map(String::as_str).zip(["48K\n", "1\n", "Data\n", "0-1\n"]).collect();
        files.push(("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some: Chip\n"));
        let root = tree("machine", &files);
        let machine = Machine::read_from(&root, processors(&root, 1));
        assert_eq!(machine.caches, [Cache { level: 1, kind: "Data".into(), bytes: 48 << 10, n_shared: 2 }]);
        assert_eq!(machine.processor.as_deref(), Some("Some: Chip"));
        assert_eq!(machine.last_cache_bytes(), Some(48 << 10));
    }
}
