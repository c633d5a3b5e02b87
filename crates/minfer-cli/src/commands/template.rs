//! `minfer template`: the chat template of a file, or a conversation in its words. Needs no weights. Also what other commands
//! need for that: a template by file or name, a conversation from JSON.

use super::open;
use super::text::read_bytes;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::resolve::{Template, TextSource};
use anyhow::Result;
use minfer::EngineError;
use minfer_gguf::GgufFile;
use minfer_model::{ModelError, chat_template, load_tokenizer, named_chat_templates};
use minfer_text::{
    ChatInput, ChatTemplate, Message, Prompt, TextError, Tokenizer, builtin_template, builtin_template_names,
};
use serde_json::{Map, Value};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the file's own template.
const DEFAULT: &str = "default";

/// Prints a template, the names of all, or a rendered conversation.
pub fn template(settings: &Template) -> Result<Outcome> {
    let file = open::header(&settings.model)?;
    if settings.list {
        let mut names = output::Table::new(&[]);
        let own = in_file(&settings.model, chat_template(&file))?.map(|_| DEFAULT.to_owned());
        let named = in_file(&settings.model, named_chat_templates(&file))?;
        own.into_iter()
            .chain(named.into_iter().map(|(name, _)| name))
            .for_each(|name| names.row([&name, "in the file"]));
        builtin_template_names().for_each(|name| names.row([name, "built in"]));
        output::answer(|out| names.write(out, ""))?;
        return Ok(Outcome::Done);
    }
    let source = template_of(&file, &settings.model, settings.chat_template.as_deref())?;
    let text = match &settings.chat {
        None => source,
        Some(chat) => {
            let loaded = in_file(&settings.model, load_tokenizer(&file))?;
            let tokenizer = in_file(&settings.model, Tokenizer::new(loaded.spec))?;
            let conversation = Conversation::read(chat)?;
            in_file(&settings.model, conversation.render(&source, &tokenizer))?.text().to_owned()
        }
    };
    output::answer(|out| out.write_all(text.as_bytes()))?;
    Ok(Outcome::Done)
}

/// The template chosen, or else the file's own.
pub fn template_of(file: &GgufFile, path: &Path, choice: Option<&str>) -> Result<String> {
    if let Some(choice) = choice {
        return chosen_template(file, path, choice);
    }
    in_file(path, chat_template(file))?.ok_or_else(|| {
        let failure = Failure::new(format!("{}: the file has no chat template", path.display()));
        failure.hint("--chat-template FILE|NAME gives one; `minfer template MODEL --list` lists the names").into()
    })
}

/// A template by the path of a file with one, or by name: one of the model file's, or a built-in one.
pub fn chosen_template(file: &GgufFile, path: &Path, choice: &str) -> Result<String> {
    if Path::new(choice).is_file() {
        let bytes = read_bytes(&TextSource::File(choice.into()), "")?;
        return String::from_utf8(bytes)
            .map_err(|_| Failure::new(format!("{choice}: a chat template must be UTF-8")).into());
    }
    let named = in_file(path, named_chat_templates(file))?;
    let own = if choice == DEFAULT { in_file(path, chat_template(file))? } else { None };
    let found = own.or_else(|| named.into_iter().find_map(|(name, source)| (name == choice).then_some(source)));
    found.or_else(|| builtin_template(choice).map(str::to_owned)).ok_or_else(|| {
        let failure = Failure::new(format!("--chat-template: `{choice}` is neither a file nor the name of a template"));
        failure.hint("`minfer template MODEL --list` lists the names").into()
    })
}

/// What a template is rendered with.
pub struct Conversation {
    messages: Vec<Message>,
    tools: Option<Value>,
    add_generation_prompt: bool,
    extra: Map<String, Value>,
}

impl Conversation {
    /// From a file: an array of messages, or an object with them.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = read_bytes(&TextSource::File(path.to_owned()), "")?;
        let failed = |what: String| {
            let failure = Failure::new(format!("{}: {what}", path.display()));
            failure.hint(r#"a conversation is such as [{"role": "user", "content": "Hello"}]"#)
        };
        let json: Value = serde_json::from_slice(&bytes).map_err(|error| failed(format!("is no JSON: {error}")))?;
        let mut extra = match json {
            Value::Object(fields) => fields,
            other => Map::from_iter([("messages".to_owned(), other)]),
        };
        let messages = extra.remove("messages").ok_or_else(|| failed("has no `messages`".to_owned()))?;
        let Value::Array(messages) = messages else { return Err(failed("`messages` is no list".to_owned()).into()) };
        let messages = (0..).zip(messages).map(|(at, message)| read_message(at, message).map_err(failed));
        let messages = messages.collect::<Result<_, _>>()?;
        let add_generation_prompt = match extra.remove("add_generation_prompt") {
            None => true,
            Some(Value::Bool(yes)) => yes,
            Some(other) => return Err(failed(format!("`add_generation_prompt` is {other}, not true or false")).into()),
        };
        let tools = extra.remove("tools").filter(|tools| !tools.is_null());
        Ok(Self { messages, tools, add_generation_prompt, extra })
    }

    /// In the words of a template; what looks like a control token in the messages is marked as text.
    pub fn render(&self, source: &str, tokenizer: &Tokenizer) -> Result<Prompt, TextError> {
        ChatTemplate::new(source)?.render_prompt(
            &ChatInput {
                messages: &self.messages,
                add_generation_prompt: self.add_generation_prompt,
                bos_token: &tokenizer.spelling(tokenizer.special().bos),
                eos_token: &tokenizer.spelling(tokenizer.special().eos),
                tools: self.tools.as_ref(),
                extra: Some(&self.extra),
                now_s: SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|now| now.as_secs() as i64),
            },
            tokenizer,
        )
    }
}

/// A message from JSON. Only one that calls tools may do without content; a template would fail on it, or print `None`.
fn read_message(at: usize, message: Value) -> Result<Message, String> {
    let has = |field: &str| message.get(field).is_some_and(|value| !value.is_null());
    if message.is_object() && message.get("content").is_none() && !["tool_calls", "function_call"].into_iter().any(has)
    {
        return Err(format!("`messages[{at}]` has no `content`"));
    }
    serde_json::from_value(message).map_err(|error| format!("`messages[{at}]`: {error}"))
}

/// Says in which file something is wrong, and what to do about it.
pub fn in_file<T, E: Into<EngineError>>(path: &Path, result: Result<T, E>) -> Result<T> {
    result.map_err(|error| {
        let error = error.into();
        let hint = match &error {
            EngineError::Model(ModelError::UnsupportedTokenizer { .. }) => {
                "`minfer inspect` shows what is in the file; another conversion of the model may work"
            }
            EngineError::Model(_) => "`minfer inspect` shows what is in the file; if it is damaged, fetch it again",
            EngineError::Text(
                TextError::TemplateSyntax { .. }
                | TextError::TemplateRefused { .. }
                | TextError::TemplateFailed { .. }
                | TextError::TemplateLimit { .. }
                | TextError::TemplateStack { .. },
            ) => "`minfer template MODEL` shows the template; --chat-template FILE|NAME takes another, and `run --raw` none",
            EngineError::Text(_) => "the vocabulary is damaged: fetch the file again, or another conversion of the model",
            _ => return error.into(),
        };
        Failure::new(format!("{}: {error}", path.display())).hint(hint).into()
    })
}
