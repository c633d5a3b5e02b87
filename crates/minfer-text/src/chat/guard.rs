//! Keeps user text from becoming control tokens: takes the strings of a conversation, marks
//! where one spells a control token, and finds the marks again in the rendered prompt.
//! Must not know the template.
//!
//! The mark is a noncharacter (U+FDD0..=U+FDEF, never assigned) that the conversation does
//! not use. It stands before the character it marks, which is never white space, so that
//! templates that trim or split their messages do the same as without it.

use std::ops::Range;

use crate::special::ControlEdges;
use crate::{ChatInput, PromptPart, TextError};

const MARKS: Range<u32> = 0xfdd0..0xfdf0;

/// A rendered prompt and which characters of it cannot begin or be inside a control token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    text: String,
    /// Start of each marked character.
    marked: Vec<usize>,
}

impl Prompt {
    pub(super) fn from_marked(rendered: &str, mark: char) -> Self {
        let mut text = String::with_capacity(rendered.len());
        let mut marked = Vec::new();
        for (at, piece) in rendered.split(mark).enumerate() {
            if at > 0 {
                marked.push(text.len());
            }
            text.push_str(piece);
        }
        marked.dedup();
        marked.retain(|&at| at < text.len());
        Self { text, marked }
    }

    /// The whole prompt, without marks.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The prompt in order: marked characters as content, all between them as scaffold.
    pub fn parts(&self) -> Vec<PromptPart<'_>> {
        let mut parts = Vec::with_capacity(2 * self.marked.len() + 1);
        let mut done = 0;
        for &at in &self.marked {
            let len = self.text[at..].chars().next().map_or(0, char::len_utf8);
            parts.push(PromptPart::Scaffold(&self.text[done..at]));
            parts.push(PromptPart::Content(&self.text[at..at + len]));
            done = at + len;
        }
        parts.push(PromptPart::Scaffold(&self.text[done..]));
        parts.retain(|part| !part.text().is_empty());
        parts
    }
}

/// A mark that no string of the input holds.
pub(super) fn free_mark(input: &ChatInput<'_>) -> Result<char, TextError> {
    let mut used = 0u32;
    each_text(input, &mut |text| {
        // All marks begin with these two bytes in UTF-8.
        if text.as_bytes().windows(2).any(|two| two == [0xef, 0xb7]) {
            let marks = text.chars().map(u32::from).filter(|c| MARKS.contains(c));
            marks.for_each(|c| used |= 1 << (c - MARKS.start));
        }
    });
    let free = MARKS.start + used.trailing_ones();
    match char::from_u32(free).filter(|_| MARKS.contains(&free)) {
        Some(mark) => Ok(mark),
        None => Err(TextError::NoFreeGuard),
    }
}

/// Shows every string of the conversation, the tools and the extra variables.
pub(super) fn each_text(input: &ChatInput<'_>, see: &mut dyn FnMut(&str)) {
    for message in input.messages {
        see(&message.role);
        each_string(&message.content, see);
        each_string_of(&message.extra, see);
    }
    input.tools.into_iter().for_each(|tools| each_string(tools, see));
    input.extra.into_iter().for_each(|extra| each_string_of(extra, see));
}

fn each_string_of(fields: &serde_json::Map<String, serde_json::Value>, see: &mut dyn FnMut(&str)) {
    for (name, value) in fields {
        see(name);
        each_string(value, see);
    }
}

/// Shows every string and name in `json`. Values that nest too deeply fail when rendered.
fn each_string(json: &serde_json::Value, see: &mut dyn FnMut(&str)) {
    let mut open = vec![json];
    while let Some(json) = open.pop() {
        match json {
            serde_json::Value::String(text) => see(text),
            serde_json::Value::Array(items) => open.extend(items),
            serde_json::Value::Object(fields) => {
                fields.keys().for_each(|name| see(name));
                open.extend(fields.values());
            }
            _ => {}
        }
    }
}

/// `text` with a mark before each place where a control token could be read, or be put together with what the template
/// writes before or after it. Not marked is text that is an inner part of a token's spelling: `<|{{ role }}|>` is how
/// templates make one of a role.
pub(super) fn mark_control(text: &str, mark: char, edges: &ControlEdges<'_>) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let rest = &text.as_bytes()[at..];
        if !c.is_whitespace() && (edges.start_at(rest) || at == 0 && edges.end_in(rest)) {
            out.push(mark);
        }
        out.push(c);
    }
    out
}
