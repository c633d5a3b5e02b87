//! A stack large enough for any template: takes a bound on the nesting, runs a function.
//!
//! The template engine limits the recursion of templates, but not of the values they build:
//! a loop can nest one list in another at every step, and comparing, printing or dropping
//! such a value recurses to its depth. That depth is bounded by the steps of a rendering (and
//! by the source of a template, whose syntax tree is dropped the same way), so a stack of
//! that many levels can not overflow.
//!
//! An ordinary stack of 2 MB has room for 1000 levels, but a published template takes up to 230
//! steps for each message of a conversation. So the stack grows with the conversation: 41 MB of
//! addresses and some 2 MB for each short message. Pages cost nothing until they are used.

use std::thread;

use crate::TextError;

/// Twice what the engine was seen to use in builds without optimisation, which take the most: 1000 bytes per step to
/// build and print a value, 1250 per byte of source to compile it.
const LEVEL_BYTES: usize = 2048;
/// For all that does not nest.
const BASE_BYTES: usize = 2 << 20;

/// Runs `f` where values nested `levels` deep can be handled.
pub(super) fn with_room_for<T: Send>(
    levels: u64,
    f: impl FnOnce() -> Result<T, TextError> + Send,
) -> Result<T, TextError> {
    let failed = |message: &str| TextError::TemplateFailed { message: message.to_owned(), line: None };
    let bytes = usize::try_from(levels)
        .ok()
        .and_then(|levels| levels.checked_mul(LEVEL_BYTES)?.checked_add(BASE_BYTES))
        .ok_or_else(|| failed("the limits need more stack than there are addresses"))?;
    thread::scope(|scope| {
        thread::Builder::new()
            .name("chat-template".to_owned())
            .stack_size(bytes)
            .spawn_scoped(scope, f)
            .map_err(|error| failed(&format!("no thread with {bytes} bytes of stack: {error}")))?
            .join()
            .unwrap_or_else(|_| Err(failed("the template engine panicked")))
    })
}
