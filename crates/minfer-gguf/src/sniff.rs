//! What a file without the magic looks like. Takes its first bytes, gives advice.

/// A guess at the format, and what to do about it.
pub(crate) fn guess(bytes: &[u8]) -> &'static str {
    let head = bytes.get(..bytes.len().min(256)).unwrap_or_default();
    let text = head.trim_ascii_start().to_ascii_lowercase();
    let has = |prefix: &[u8]| head.starts_with(prefix);
    if text.starts_with(b"<!doctype") || text.starts_with(b"<html") || text.starts_with(b"<?xml") {
        "this is a web page, saved in place of the model; download the file itself"
    } else if text.starts_with(b"version https://git-lfs") {
        "this is a Git LFS pointer; fetch the file itself with `git lfs pull`"
    } else if has(b"PK\x03\x04") {
        "this is a zip archive (or a PyTorch checkpoint); unpack it or get the GGUF version"
    } else if has(b"\x1f\x8b") || has(b"\x28\xb5\x2f\xfd") || has(b"BZh") || has(b"\xfd7zXZ") {
        "this is a compressed file; unpack it first"
    } else if has(b"lmgg") || has(b"tjgg") || has(b"fmgg") || has(b"algg") {
        "this is the older GGML format; get the GGUF version of the model"
    } else if has(b"FUGG") {
        "its magic is reversed: a big-endian file; get a little-endian one"
    } else if head.get(8..10) == Some(b"{\"") {
        "this is a safetensors file; convert it to GGUF"
    } else if text.starts_with(b"{") || text.starts_with(b"[") {
        "this is JSON, perhaps an error message; download the file itself"
    } else if !head.is_empty() && head.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) {
        "this is a text file; check the path or download the model again"
    } else if head.iter().all(|&b| b == 0) {
        "this is zeros, as from an unfinished download; download it again"
    } else {
        "check the path or download the model again"
    }
}

#[cfg(test)]
mod tests {
    use super::guess;

    #[test]
    fn common_mistakes_are_named() {
        for (bytes, word) in [
            (&b"\n<!DOCTYPE html><html>"[..], "web page"),
            (b"<HTML>", "web page"),
            (b"PK\x03\x04\x14\0", "zip"),
            (b"\x1f\x8b\x08", "compressed"),
            (b"tjgg\x03\0\0\0", "older GGML"),
            (b"\x40\0\0\0\0\0\0\0{\"a\":1}", "safetensors"),
            (b"{\"error\": 1}", "JSON"),
            (b"hello world", "text file"),
            (b"version https://git-lfs.github.com/spec/v1", "LFS"),
            (b"\0\0\0\0", "zeros"),
            (b"\xde\xad\xbe\xef", "check the path"),
        ] {
            assert!(guess(bytes).contains(word), "{bytes:?} -> {}", guess(bytes));
        }
    }
}
