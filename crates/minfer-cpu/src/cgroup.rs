//! Control groups, version 1 and 2. Takes a file system; gives the groups that this process is in, and the tightest quota of
//! time on the way up; reads no environment.

use std::path::{Path, PathBuf};

/// Processors' worth of time that this process's groups allow. `None` where nothing limits it.
pub(crate) fn cpu_quota(root: &Path) -> Option<f64> {
    let quota = |dir: &PathBuf| quota_v2(dir).or_else(|| quota_v1(dir));
    control_groups(root, "cpu").iter().filter_map(quota).reduce(f64::min)
}

/// Folders of the groups of a controller that the process is in, from its own up to the root: the limits of all of them
/// count. `root` is where the file system is, usually `/`. Folders may not exist: inside a container the path may be the
/// host's and lead nowhere; the topmost is then the container's own group.
pub fn control_groups(root: &Path, controller: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in read(&root.join("proc/self/cgroup")).unwrap_or_default().lines() {
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
        folders.extend(Path::new(path.trim_start_matches('/')).ancestors().map(|group| mount.join(group)));
    }
    folders
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

    fn sys_folders(root: &Path, controller: &str) -> Vec<String> {
        let base = root.join("sys/fs/cgroup");
        let name = |folder: PathBuf| folder.strip_prefix(&base).unwrap().display().to_string();
        control_groups(root, controller).into_iter().map(name).collect()
    }

    #[test]
    fn version_2_takes_the_tightest_group_on_the_way_up() {
        let root = tree(
            "cgroup-v2",
            &[
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
                ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
            ],
        );
        assert_eq!(cpu_quota(&root), Some(1.5));
        let groups = sys_folders(&root, "memory");
        assert_eq!(groups, ["a/b", "a", ""]);
    }

    #[test]
    fn version_1_has_a_folder_per_controller() {
        let root = tree(
            "cgroup-v1",
            &[
                ("proc/self/cgroup", "4:memory:/m\n2:cpu,cpuacct:/host/only\n1:name=systemd:/\n"),
                ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n"),
                ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
                ("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "4096\n"),
            ],
        );
        assert_eq!(cpu_quota(&root), Some(2.0));
        assert_eq!(sys_folders(&root, "memory"), ["memory/m", "memory"]);
    }

    #[test]
    fn no_limit_is_none() {
        let root = tree(
            "cgroup-none",
            &[
                ("proc/self/cgroup", "nonsense\n1:cpu:/\n0::/\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ],
        );
        assert_eq!(cpu_quota(&root), None);
        assert_eq!(cpu_quota(&root.join("absent")), None);
    }
}
