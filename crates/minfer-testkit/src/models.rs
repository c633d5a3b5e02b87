//! Where real models lie. Takes the environment; gives paths, or panics with what to do, since only tests ask.

use std::path::PathBuf;

/// The folder of real models: `$MINFER_MODELS`, else the cache folder that `cargo xtask fetch` fills.
///
/// # Panics
/// If neither is there.
pub fn models_dir() -> PathBuf {
    let var = |name: &str| std::env::var(name).ok();
    match locate(std::env::consts::OS, var) {
        Some(dir) if dir.is_dir() => dir,
        Some(dir) => panic!(
            "{} is no folder; run `cargo xtask fetch test`, or set MINFER_MODELS to the folder with the GGUF files",
            dir.display()
        ),
        None => panic!("there is no cache folder; set MINFER_MODELS to the folder with the GGUF files"),
    }
}

/// A model in that folder.
///
/// # Panics
/// If it is not there.
pub fn model_path(file_name: &str) -> PathBuf {
    let path = models_dir().join(file_name);
    assert!(path.is_file(), "{} is missing; run `cargo xtask fetch test`", path.display());
    path
}

/// `$MINFER_MODELS`, `$MINFER_CACHE`, or the platform's cache folder + `minfer`, as in `xtask`. Empty means unset.
fn locate(os: &str, var: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let path = |name: &str| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || match os {
        "windows" => path("LOCALAPPDATA"),
        "macos" => path("HOME").map(|home| home.join("Library/Caches")),
        _ => path("XDG_CACHE_HOME").or_else(|| path("HOME").map(|home| home.join(".cache"))),
    };
    path("MINFER_MODELS").or_else(|| path("MINFER_CACHE")).or_else(|| cache().map(|base| base.join("minfer")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides_first() {
        let find = |os: &str, vars: &[(&str, &str)]| {
            locate(os, |name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(find("linux", &[("MINFER_MODELS", "/m"), ("HOME", "/h")]), Some("/m".into()));
        assert_eq!(find("linux", &[("MINFER_MODELS", ""), ("HOME", "/h")]), Some("/h/.cache/minfer".into()));
        assert_eq!(find("linux", &[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), Some("/x/minfer".into()));
        assert_eq!(find("macos", &[("HOME", "/h")]), Some("/h/Library/Caches/minfer".into()));
        assert_eq!(find("linux", &[]), None);
    }
}
