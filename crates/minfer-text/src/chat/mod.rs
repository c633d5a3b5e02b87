//! Chat templates: takes a template's source and messages, gives the prompt. Must not know
//! a vocabulary, except to tell which user text looks like a control token.
//!
//! A template comes with a model file and is untrusted: its steps, its recursion, its output
//! and its source are limited, and no nesting overflows the stack (see `stack`). What is not limited is time: the engine
//! counts no steps while it compares or prints one value, and a value that holds another twice, level by level, takes
//! exponentially long. The environment is the one Hugging Face's libraries give to
//! templates (`trim_blocks`, `lstrip_blocks`, loop controls, Python's string methods,
//! `raise_exception`, `strftime_now`, their `tojson`). Known differences: iterating in `None`
//! gives nothing instead of an error; `x.items` without a call is the field of that name and never the method; a float
//! that is joined to a string with `~` keeps Rust's spelling (`1e20`, not `1e+20`).

mod builtin;
mod clock;
mod generation;
mod guard;
mod json;
mod markup;
mod methods;
mod stack;

use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Value};

pub use builtin::{builtin_template, builtin_template_names};
pub use guard::Prompt;

use crate::{TextError, Tokenizer};

const NAME: &str = "chat_template";
/// What a rendering may run out of.
const STEPS: &str = "steps";
/// What messages call the reasoning before an answer; templates read the first, some the second.
const REASONING: [&str; 3] = ["reasoning_content", THINKING, "reasoning"];
const THINKING: &str = "thinking";

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    env: Environment<'static>,
    limits: ChatLimits,
}

/// Steps that each string of the input adds to those of [`ChatLimits`]; a message has two or more.
const STEPS_PER_TEXT: u64 = 500;
/// Of a long conversation these parts of what it adds are tried, one after the other: the stack is as large as the steps
/// that may be taken, and most templates take few.
const TRIES: [u64; 3] = [16, 4, 1];

/// How much a template may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatLimits {
    /// Length of the template's source.
    pub source_bytes: usize,
    /// Steps of one rendering without any input: about one per instruction and per 64 bytes made. Each string of the
    /// input adds 500, each 16 bytes of them one more, enough to copy them four times.
    pub steps: u64,
    /// Depth of nested blocks and macro calls.
    pub recursion: usize,
    /// Length of the prompt.
    pub output_bytes: usize,
}

impl Default for ChatLimits {
    /// Published templates are below 20 KB and take less than 600 steps and 30 to 230 per message; one takes
    /// 4 times the square of the number of messages.
    fn default() -> Self {
        Self { source_bytes: 64 << 10, steps: 20_000, recursion: 200, output_bytes: 64 << 20 }
    }
}

/// One message. More fields (`tool_calls`, `name`, ...) are passed on as they are.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(expecting = "a message, which has a role and content")]
pub struct Message {
    /// `system`, `user`, `assistant`, `tool` or what else the template knows.
    pub role: String,
    /// A string, a list of parts or null.
    #[serde(default)]
    pub content: serde_json::Value,
    /// All other fields, in order. Reasoning under one of its names is given to the template as `reasoning_content` and,
    /// unless that is there, as `thinking`.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl Message {
    /// A message of plain text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: serde_json::Value::String(content.into()), extra: serde_json::Map::new() }
    }
}

/// What a template is rendered with.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChatInput<'a> {
    /// The conversation, oldest first.
    pub messages: &'a [Message],
    /// Whether the prompt ends with the header of the assistant's turn.
    pub add_generation_prompt: bool,
    /// Spelling of the begin token; empty if there is none.
    pub bos_token: &'a str,
    /// Spelling of the end token; empty if there is none.
    pub eos_token: &'a str,
    /// Tool definitions, as in the OpenAI API.
    pub tools: Option<&'a serde_json::Value>,
    /// More variables for the template; they win over all others.
    pub extra: Option<&'a serde_json::Map<String, serde_json::Value>>,
    /// The time for `strftime_now`, in seconds since 1970-01-01 00:00 as the clock on the
    /// wall shows it; `None` leaves that function undefined.
    pub now_s: Option<i64>,
}

impl ChatTemplate {
    /// Compiles a template with the default limits.
    ///
    /// # Errors
    /// As [`Self::with_limits`].
    pub fn new(source: &str) -> Result<Self, TextError> {
        Self::with_limits(source, ChatLimits::default())
    }

    /// Compiles a template.
    ///
    /// # Errors
    /// A source that is too long or not a template; unknown tags are errors.
    pub fn with_limits(source: &str, limits: ChatLimits) -> Result<Self, TextError> {
        if source.len() > limits.source_bytes {
            return Err(TextError::TemplateLimit { what: "bytes of template", limit: limits.source_bytes as u64 });
        }
        // Each level of a syntax tree takes a byte of source or more.
        let levels = source.len() as u64;
        let env = stack::with_room_for(levels, || environment(source, limits))?;
        Ok(Self { env, limits })
    }

    /// The prompt for a conversation, as one text.
    ///
    /// # Errors
    /// The template's own refusal, a failure while it ran, or a limit.
    pub fn render(&self, input: &ChatInput<'_>) -> Result<String, TextError> {
        let to_value = |json: &serde_json::Value| json::to_value(json, &|text| text.into());
        self.render_with(input, &to_value)
    }

    /// The prompt for a conversation, in which the stretches of user text that spell a
    /// control token of `tokenizer` are marked. It is for
    /// [`Tokenizer::encode_prompt`].
    ///
    /// # Errors
    /// As [`Self::render`].
    pub fn render_prompt(&self, input: &ChatInput<'_>, tokenizer: &Tokenizer) -> Result<Prompt, TextError> {
        let mark = guard::free_mark(input)?;
        let edges = tokenizer.control_edges();
        let guard = |text: &str| guard::mark_control(text, mark, &edges).into();
        let rendered = self.render_with(input, &|json| json::to_value(json, &guard))?;
        Ok(Prompt::from_marked(&rendered, mark))
    }

    fn render_with(
        &self,
        input: &ChatInput<'_>,
        to_value: &(dyn Fn(&serde_json::Value) -> Result<Value, Error> + Sync),
    ) -> Result<String, TextError> {
        let mut for_input = 0;
        guard::each_text(input, &mut |text| for_input += STEPS_PER_TEXT + text.len() as u64 / 16);
        let is_long = for_input > self.limits.steps;
        let mut rendered = Err(TextError::TemplateLimit { what: STEPS, limit: self.limits.steps });
        for part in TRIES.into_iter().filter(|&part| is_long || part == 1) {
            let limits = ChatLimits { steps: self.limits.steps.saturating_add(for_input / part), ..self.limits };
            rendered = stack::with_room_for(limits.steps, || self.run(input, to_value, limits));
            if !matches!(rendered, Err(TextError::TemplateLimit { what: STEPS, .. })) {
                break;
            }
        }
        rendered
    }

    fn run(
        &self,
        input: &ChatInput<'_>,
        to_value: &dyn Fn(&serde_json::Value) -> Result<Value, Error>,
        limits: ChatLimits,
    ) -> Result<String, TextError> {
        let failed = |error: Error| template_error(&error, limits);
        let mut env = self.env.clone();
        env.set_fuel(Some(limits.steps));
        let context = context(input, to_value).map_err(failed)?;
        let template = env.get_template(NAME).map_err(failed)?;
        let mut out = Limited { bytes: Vec::new(), limit: limits.output_bytes, is_full: false };
        match template.render_captured_to(context, &mut out) {
            Ok(_) => {}
            Err(_) if out.is_full => {
                return Err(TextError::TemplateLimit { what: "bytes of output", limit: limits.output_bytes as u64 });
            }
            Err(error) => return Err(failed(error)),
        }
        String::from_utf8(out.bytes)
            .map_err(|error| TextError::TemplateFailed { message: error.to_string(), line: None })
    }
}

fn environment(source: &str, limits: ChatLimits) -> Result<Environment<'static>, TextError> {
    let failed = |error: Error| template_error(&error, limits);
    let mut env = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(failed)?;
    env.set_syntax(syntax);
    env.set_recursion_limit(limits.recursion);
    env.set_unknown_method_callback(methods::call);
    env.set_formatter(methods::print);
    env.add_test("iterable", methods::is_iterable);
    env.add_filter("tojson", json::tojson);
    env.add_filter("fromjson", json::fromjson);
    env.add_function("raise_exception", raise_exception);
    // They indent: the size of what they print is the square of the depth, and no limit counts it in time.
    env.remove_filter("pprint");
    env.remove_global("debug");
    env.add_filter(markup::FILTER, markup::plus);
    env.add_template_owned(NAME, markup::rewrite(&generation::strip(source))).map_err(failed)?;
    Ok(env)
}

fn context(
    input: &ChatInput<'_>,
    to_value: &dyn Fn(&serde_json::Value) -> Result<Value, Error>,
) -> Result<Value, Error> {
    let mut messages = Vec::with_capacity(input.messages.len());
    for message in input.messages {
        let role = serde_json::Value::String(message.role.clone());
        let mut fields = vec![("role", to_value(&role)?), ("content", to_value(&message.content)?)];
        let reasoning = REASONING.iter().filter_map(|name| message.extra.get(*name)).find(|value| !value.is_null());
        if let Some(reasoning) = reasoning
            && !message.extra.contains_key(THINKING)
        {
            fields.push((THINKING, to_value(reasoning)?));
        }
        for (name, value) in message.extra.iter().filter(|(name, _)| reasoning.is_none() || *name != REASONING[0]) {
            fields.push((name, to_value(value)?));
        }
        if let Some(reasoning) = reasoning {
            fields.push((REASONING[0], to_value(reasoning)?));
        }
        messages.push(Value::from_pairs(fields));
    }
    let tools = input.tools.map(to_value).transpose()?;
    let mut variables = vec![
        ("messages", Value::from(messages)),
        ("tools", tools.unwrap_or_else(|| Value::from(()))),
        ("documents", Value::from(())),
        ("add_generation_prompt", input.add_generation_prompt.into()),
        ("bos_token", input.bos_token.into()),
        ("eos_token", input.eos_token.into()),
    ];
    if let Some(now_s) = input.now_s {
        let strftime_now = move |format: &str| clock::format(now_s, format);
        variables.push(("strftime_now", Value::from_function(strftime_now)));
    }
    for (name, value) in input.extra.into_iter().flatten() {
        variables.push((name, to_value(value)?));
    }
    Ok(Value::from_pairs(variables))
}

/// The source of the error that `raise_exception` makes.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refusal(String);

fn raise_exception(message: String) -> Result<Value, Error> {
    let refusal = Refusal(message.clone());
    Err(Error::new(ErrorKind::InvalidOperation, message).with_source(refusal))
}

fn template_error(error: &Error, limits: ChatLimits) -> TextError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(at) = cause {
        if let Some(Refusal(message)) = at.downcast_ref() {
            let message = message.clone();
            return TextError::TemplateRefused { message };
        }
        let engine: Option<&Error> = at.downcast_ref();
        if engine.is_some_and(|error| error.kind() == ErrorKind::OutOfFuel) {
            return TextError::TemplateLimit { what: STEPS, limit: limits.steps };
        }
        cause = at.source();
    }
    let line = error.line();
    let message = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    match error.kind() {
        ErrorKind::SyntaxError | ErrorKind::BadEscape => TextError::TemplateSyntax { message, line },
        _ => TextError::TemplateFailed { message, line },
    }
}

/// Takes output up to a limit.
struct Limited {
    bytes: Vec<u8>,
    limit: usize,
    is_full: bool,
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit - self.bytes.len() {
            self.is_full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
