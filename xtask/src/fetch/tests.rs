//! Fetching without a network: parts that are there, files put there by hand, wrong content.

use super::*;

const ABC: Model = Model {
    file: "abc.gguf",
    package: "abc-part",
    version: "1",
    n_parts: 3,
    sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    size_bytes: 3,
};

fn cache(name: &str) -> Cache {
    let folder = std::env::temp_dir().join(format!("minfer-fetch-{name}-{}", std::process::id()));
    Cache::at(folder).unwrap()
}

fn put_parts(cache: &Cache, parts: [&str; 3]) -> PathBuf {
    let folder = cache.path(".parts").join(ABC.file);
    fs::create_dir_all(&folder).unwrap();
    for (i, text) in parts.iter().enumerate() {
        fs::write(folder.join(format!("abc-part{}-1.data", i + 1)), text).unwrap();
    }
    folder
}

#[test]
fn kept_parts_are_joined_without_a_download() {
    let cache = cache("join");
    let folder = put_parts(&cache, ["a", "b", "c"]);
    install_model(&cache, &ABC).unwrap();
    assert_eq!(fs::read_to_string(cache.path(ABC.file)).unwrap(), "abc");
    assert!(cache.is_installed(ABC.file, true).unwrap());
    assert!(!folder.exists());
    fs::remove_dir_all(cache.root()).unwrap();
}

#[test]
fn wrong_content_is_not_installed() {
    let cache = cache("wrong");
    let folder = put_parts(&cache, ["a", "x", "c"]);
    let error = install_model(&cache, &ABC).unwrap_err().to_string();
    assert!(error.contains(ABC.sha256), "{error}");
    assert!(!cache.path(ABC.file).exists() && !cache.path("abc.gguf.part").exists() && !folder.exists());
    assert!(!cache.is_installed(ABC.file, false).unwrap());
    fs::remove_dir_all(cache.root()).unwrap();
}

#[test]
fn a_right_file_put_there_by_hand_is_adopted() {
    let cache = cache("adopt");
    fs::write(cache.path(ABC.file), "abc").unwrap();
    install_model(&cache, &ABC).unwrap();
    assert!(cache.is_installed(ABC.file, false).unwrap());
    fs::remove_dir_all(cache.root()).unwrap();
}
