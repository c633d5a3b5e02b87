//! Room for what is done before a budget can be asked, such as reading a vocabulary. Takes bytes; gives nothing, or who
//! leaves less. The standard collections end the process where the system gives no memory: whoever asks here first ends
//! with a sentence.

use crate::exit::Failure;
use crate::limit::SetBy;
use crate::memory::{self, PROGRAM_BYTES, soft_limit};
use crate::output::mib;
use std::fs::File;
use std::io::Read;

/// Least bytes to read the words of a command line and to say what is wrong. Measured on x86-64 Linux: 0.3 MiB.
const START_BYTES: u64 = 1 << 20;

/// Whether the program can start. Takes nothing from the heap itself.
pub fn to_start() -> bool {
    left().is_none_or(|bytes| bytes >= START_BYTES)
}

/// Refuses where so many bytes more cannot be had: `what` says what for.
pub fn require(bytes: u64, what: &str) -> Result<(), Failure> {
    require_beside_files(bytes, 0, what)
}

/// The same, and so many bytes of files can be mapped, which take addresses but no memory of this process.
pub fn require_beside_files(bytes: u64, mapped_bytes: u64, what: &str) -> Result<(), Failure> {
    let group = memory::memory().and_then(|memory| memory.group_limit_bytes);
    let in_group = group.map(|limit| (limit.saturating_sub(PROGRAM_BYTES), SetBy::Group));
    for (left, by) in limits_left().into_iter().flatten().chain(in_group) {
        let needed = bytes + if matches!(by, SetBy::Addresses { .. }) { mapped_bytes } else { 0 };
        if left < needed {
            let (needed, left) = (mib(needed), mib(left));
            let message = format!(
                "too little memory: {needed} are needed {what}, and the limit of this process ({}) leaves {left}",
                by.name()
            );
            return Err(Failure::new(message));
        }
    }
    Ok(())
}

/// Bytes that the limits of this process leave now. `None` where there is no limit.
pub fn left() -> Option<u64> {
    limits_left().into_iter().flatten().map(|(bytes, _)| bytes).min()
}

/// What the limit on addresses leaves, and that on data.
fn limits_left() -> [Option<(u64, SetBy)>; 2] {
    // On the stack: this is asked where the heap may be full.
    let (mut limits, mut status) = ([0; 4096], [0; 4096]);
    let limits = read("/proc/self/limits", &mut limits).unwrap_or_default();
    let status = read("/proc/self/status", &mut status).unwrap_or_default();
    let taken = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    let left = |limit: &str, name: &str| {
        let limit_bytes = soft_limit(limits, limit)?;
        Some((limit_bytes, limit_bytes.saturating_sub(taken(name)?)))
    };
    [
        left("Max address space", "VmSize:").map(|(limit_bytes, left)| (left, SetBy::Addresses { limit_bytes })),
        left("Max data size", "VmData:").map(|(_, left)| (left, SetBy::Data)),
    ]
}

/// The start of a file, as far as it is text.
fn read<'a>(path: &str, buffer: &'a mut [u8]) -> Option<&'a str> {
    let mut file = File::open(path).ok()?;
    let mut n_read = 0;
    while n_read < buffer.len() {
        match file.read(&mut buffer[n_read..]).ok()? {
            0 => break,
            n => n_read += n,
        }
    }
    let text = &buffer[..n_read];
    std::str::from_utf8(text).or_else(|error| std::str::from_utf8(&text[..error.valid_up_to()])).ok()
}
