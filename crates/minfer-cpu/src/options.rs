//! How the backend is to run. Takes the machine's answers (processors, quota, affinity); gives [`CpuOptions`]; reads no
//! environment.

use crate::simd::SimdLevel;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;

/// Threads and instructions of a [`crate::CpuBackend`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuOptions {
    /// Threads that compute, the caller's included.
    pub threads: NonZeroUsize,
    /// Instructions to use; the best of the processor when absent.
    pub simd: Option<SimdLevel>,
}

impl Default for CpuOptions {
    fn default() -> Self {
        Self { threads: default_threads(), simd: None }
    }
}

/// Physical cores that this process may use: processors within its affinity mask and its cgroup's quota, without the
/// second threads of cores. The siblings share the very units that the kernels keep busy.
pub fn default_threads() -> NonZeroUsize {
    // Affinity and the quotas of cgroup v1 and v2 are in here, rounded down to at least 1.
    let available = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let cores = physical_cores(Path::new("/sys/devices/system/cpu"), allowed_cpus().as_deref());
    cores.map_or(available, |cores| cores.min(available))
}

/// The processors of the affinity mask, as the kernel lists them, such as `0-3,8`.
fn allowed_cpus() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_string())
}

/// Distinct cores among the processors in `allowed` (all online ones when absent). `None` where the system does not say.
fn physical_cores(root: &Path, allowed: Option<&str>) -> Option<NonZeroUsize> {
    let online = std::fs::read_to_string(root.join("online")).ok()?;
    let allowed = parse_list(allowed.unwrap_or(&online))?;
    let mut cores = BTreeSet::new();
    for cpu in parse_list(&online)?.intersection(&allowed) {
        let siblings = root.join(format!("cpu{cpu}/topology/thread_siblings_list"));
        // Siblings list each other, so the lists are equal exactly for threads of one core.
        cores.insert(std::fs::read_to_string(siblings).ok()?.trim().to_string());
    }
    NonZeroUsize::new(cores.len())
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
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_parse() {
        assert_eq!(parse_list("0-2,5\n"), Some(BTreeSet::from([0, 1, 2, 5])));
        assert_eq!(parse_list(""), Some(BTreeSet::new()));
        assert_eq!(parse_list("0-x"), None);
        assert_eq!(parse_list("0-4294967295"), None);
    }

    #[test]
    fn siblings_count_once_and_affinity_limits() {
        let root = std::env::temp_dir().join(format!("minfer-topology-{}", std::process::id()));
        for cpu in 0..4 {
            let topology = root.join(format!("cpu{cpu}/topology"));
            std::fs::create_dir_all(&topology).unwrap();
            // Processors 0 and 2 are one core, 1 and 3 another.
            let siblings = if cpu % 2 == 0 { "0,2\n" } else { "1,3\n" };
            std::fs::write(topology.join("thread_siblings_list"), siblings).unwrap();
        }
        std::fs::write(root.join("online"), "0-3\n").unwrap();
        let cores = |allowed| physical_cores(&root, allowed).map(NonZeroUsize::get);
        assert_eq!(cores(None), Some(2));
        assert_eq!(cores(Some("0,2")), Some(1));
        assert_eq!(cores(Some("0-1,9")), Some(2));
        assert_eq!(physical_cores(&root.join("absent"), None), None);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
