//! What is said where the heap has no more memory. Takes the bytes that were asked for; gives a sentence on stderr and ends
//! the program; must not allocate, nor wait for anybody. And how much is left.

use crate::memory::soft_limit;
use minfer_cpu::end_at_once;
use std::fs::File;
use std::io::{Cursor, Read, Write};

/// What the program ends with where something fails.
const FAILURE: i32 = 2;

/// Says that so many bytes cannot be had, and what leaves no more.
pub fn none_left(bytes: usize) -> ! {
    let mut sentence = Cursor::new([0; 200]);
    // It is long enough.
    let _ = match narrowest() {
        Some((name, left)) => writeln!(
            sentence,
            "error: too little memory: {bytes} bytes more are needed, and the limit of this process ({name}) leaves {left}"
        ),
        None => writeln!(sentence, "error: too little memory: {bytes} bytes more are needed"),
    };
    let len = sentence.position() as usize;
    end_at_once(&sentence.get_ref()[..len], FAILURE)
}

/// Bytes that the limits of this process leave now. `None` where there is none.
pub fn left() -> Option<u64> {
    narrowest().map(|(_, left)| left)
}

/// Of the limits on addresses and on data the one that leaves least, and the bytes that it leaves. `None` where there is none.
fn narrowest() -> Option<(&'static str, u64)> {
    let (mut limits, mut status) = ([0; 4096], [0; 4096]);
    let (limits, status) = (read("/proc/self/limits", &mut limits)?, read("/proc/self/status", &mut status)?);
    let taken = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    let left = |limit: &str, name: &str| Some(soft_limit(limits, limit)?.saturating_sub(taken(name)?));
    let addresses = left("Max address space", "VmSize:").map(|left| ("ulimit -v", left));
    let data = left("Max data size", "VmData:").map(|left| ("ulimit -d", left));
    addresses.into_iter().chain(data).min_by_key(|&(_, left)| left)
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
