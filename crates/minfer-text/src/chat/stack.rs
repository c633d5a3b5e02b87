//! A stack large enough for any template: takes a bound on the nesting, runs a function.
//!
//! The template engine limits the recursion of templates, but not of the values they build:
//! a loop can nest one list in another at every step, and comparing, printing or dropping
//! such a value recurses to its depth. That depth is bounded by the steps of a rendering (and
//! by the source of a template, whose syntax tree is dropped the same way), so a stack of
//! that many levels can not overflow.
//!
//! An ordinary stack of 2 MB has room for 1000 levels, but a published template takes up to 230
//! steps for each message of a conversation. So the stack grows with the steps that a rendering
//! may take: 41 MB of addresses, and for each short message 128 KB at first, 2 MB at most. Pages
//! cost nothing until they are used.

use std::thread;

use crate::TextError;

/// Twice what the engine was seen to use in builds without optimisation, which take the most: 1000 bytes per step to
/// build and print a value, 1250 per byte of source to compile it.
const LEVEL_BYTES: u64 = 2048;
/// For all that does not nest.
const BASE_BYTES: u64 = 2 << 20;

/// Runs `f` where values nested `levels` deep can be handled.
pub(super) fn with_room_for<T: Send>(
    levels: u64,
    f: impl FnOnce() -> Result<T, TextError> + Send,
) -> Result<T, TextError> {
    let panicked = TextError::TemplateFailed { message: "the template engine panicked".to_owned(), line: None };
    let bytes = levels.saturating_mul(LEVEL_BYTES).saturating_add(BASE_BYTES);
    let no_stack = |reason: String| TextError::TemplateStack { bytes, reason };
    let stack_bytes = usize::try_from(bytes).map_err(|error| no_stack(error.to_string()))?;
    thread::scope(|scope| {
        thread::Builder::new()
            .name("chat-template".to_owned())
            .stack_size(stack_bytes)
            .spawn_scoped(scope, f)
            .map_err(|error| no_stack(error.to_string()))?
            .join()
            .unwrap_or_else(|_| Err(panicked))
    })
}
