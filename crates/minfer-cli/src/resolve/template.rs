//! `minfer template`. Takes what was typed; gives settings.

use super::Resolved;
use super::shared::text;
use crate::args;
use std::path::PathBuf;

/// `minfer template`.
pub struct Template {
    pub model: PathBuf,
    pub list: bool,
    pub chat: Option<PathBuf>,
    /// A file or a name.
    pub chat_template: Option<String>,
}

pub(super) fn template(raw: args::TemplateArgs) -> Resolved<Template> {
    let chat_template = text("--chat-template", raw.chat_template)?;
    Ok(Template { model: raw.model, list: raw.list, chat: raw.chat, chat_template })
}
