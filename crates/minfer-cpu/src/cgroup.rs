//! Limits of control groups, version 1 and 2. Takes a file system; gives the tightest limit on the way up from this
//! process's group; reads no environment.

use std::path::Path;

/// Memory limits above this mean none: version 1 writes the largest whole number of pages.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// Processors' worth of time that this process's groups allow. `None` where nothing limits it.
pub(crate) fn cpu_quota(root: &Path) -> Option<f64> {
    let quota = |dir: &Path| quota_v2(dir).or_else(|| quota_v1(dir));
    tightest(root, "cpu", &quota, f64::min)
}

/// Bytes that this process's groups allow. `None` where nothing limits it.
pub(crate) fn memory_limit_bytes(root: &Path) -> Option<u64> {
    let limit = |dir: &Path| {
        let text = read(&dir.join("memory.max")).or_else(|| read(&dir.join("memory.limit_in_bytes")))?;
        text.trim().parse().ok().filter(|&bytes| bytes < NO_LIMIT_BYTES)
    };
    tightest(root, "memory", &limit, u64::min)
}

/// The tightest limit of the groups of a controller that the process is in, from its own up to the root: each counts.
fn tightest<T>(root: &Path, controller: &str, limit: &dyn Fn(&Path) -> Option<T>, min: fn(T, T) -> T) -> Option<T> {
    let groups = read(&root.join("proc/self/cgroup"))?;
    let mut tightest = None;
    for line in groups.lines() {
        // `number:controllers:path`; version 2 names no controllers.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let is_v2 = controllers.is_empty();
        if !is_v2 && !controllers.split(',').any(|name| name == controller) {
            continue;
        }
        let mounts = root.join("sys/fs/cgroup");
        let mount = [controllers, controller].map(|name| mounts.join(name)).into_iter().find(|dir| dir.is_dir());
        let Some(mount) = (if is_v2 { Some(mounts) } else { mount }) else { continue };
        // Inside a container the path may be the host's and lead nowhere; the root is then the container's own group.
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let found = limit(&mount.join(group));
            tightest = match (tightest, found) {
                (Some(a), Some(b)) => Some(min(a, b)),
                (a, b) => a.or(b),
            };
        }
    }
    tightest
}

/// `cpu.max`: quota and period in microseconds, or `max` for none.
fn quota_v2(dir: &Path) -> Option<f64> {
    let text = read(&dir.join("cpu.max"))?;
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota.parse().ok()?, period.parse().ok()?)
}

/// The same in two files; -1 for none.
fn quota_v1(dir: &Path) -> Option<f64> {
    let number = |name: &str| read(&dir.join(name))?.trim().parse::<f64>().ok();
    ratio(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
}

fn ratio(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::tree;

    #[test]
    fn version_2_takes_the_tightest_group_on_the_way_up() {
        let root = tree(
            "cgroup-v2",
            &[
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
                ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                ("sys/fs/cgroup/a/memory.max", "1073741824\n"),
            ],
        );
        assert_eq!(cpu_quota(&root), Some(1.5));
        assert_eq!(memory_limit_bytes(&root), Some(1 << 30));
    }

    #[test]
    fn version_1_has_a_folder_per_controller() {
        let root = tree(
            "cgroup-v1",
            &[
                ("proc/self/cgroup", "4:memory:/m\n2:cpu,cpuacct:/host/only\n1:name=systemd:/\n"),
                ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n"),
                ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "4096\n"),
            ],
        );
        assert_eq!(cpu_quota(&root), Some(2.0));
        assert_eq!(memory_limit_bytes(&root), Some(4096));
    }

    #[test]
    fn no_limit_is_none() {
        let root = tree(
            "cgroup-none",
            &[
                ("proc/self/cgroup", "nonsense\n1:cpu:/\n0::/\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
                ("sys/fs/cgroup/memory.max", "max\n"),
            ],
        );
        assert_eq!((cpu_quota(&root), memory_limit_bytes(&root)), (None, None));
        assert_eq!(cpu_quota(&root.join("absent")), None);
    }
}
