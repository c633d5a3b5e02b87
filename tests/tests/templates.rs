//! Published chat templates against the reference implementation: `golden/templates/rendered.jsonl` holds what Hugging Face's
//! `transformers` makes of them, and `make.py` beside it how. `cargo xtask fetch test` brings the templates.

use minfer_testkit::models_dir;
use minfer_text::{ChatInput, ChatTemplate, Message, TextError};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const GOLDEN: &str = include_str!("../golden/templates/rendered.jsonl");
const CONVERSATIONS: &str = include_str!("../golden/templates/conversations.json");
const N_TEMPLATES: usize = 70;

/// Where the reference is not followed: template, conversation, and why.
const DIFFERENT: &[(&str, &str, &str)] = &[(
    "CohereForAI-c4ai-command-r-plus-tool_use",
    "tools",
    "`json_spec.items` is a method in Python, and the field that the template means here",
)];

/// 2024-12-31 23:59:59, as in `make.py`.
const NOW_S: i64 = 1_735_689_599;

fn render(source: &str, conversation: &Value) -> Result<String, TextError> {
    let messages: Vec<Message> = serde_json::from_value(conversation["messages"].clone()).unwrap();
    ChatTemplate::new(source)?.render(&ChatInput {
        messages: &messages,
        add_generation_prompt: true,
        bos_token: "<s>",
        eos_token: "</s>",
        tools: conversation.get("tools"),
        now_s: Some(NOW_S),
        ..ChatInput::default()
    })
}

fn source(name: &str) -> String {
    let path = models_dir().join("templates").join(format!("{name}.jinja"));
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask fetch test`", path.display()))
}

#[test]
fn published_templates_give_the_bytes_of_the_reference() {
    let conversations: Value = serde_json::from_str(CONVERSATIONS).unwrap();
    let (mut names, mut wrong, mut n_equal, mut n_refused) = (BTreeSet::new(), Vec::new(), 0, 0);
    for line in GOLDEN.lines() {
        let golden: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| golden.get(key).map(|value| value.as_str().unwrap());
        let (name, conversation) = (text("template").unwrap(), text("conversation").unwrap());
        names.insert(name.to_owned());
        let rendered = render(&source(name), &conversations[conversation]);
        if DIFFERENT.iter().any(|&(template, other, _)| (template, other) == (name, conversation)) {
            assert_ne!(rendered.ok().as_deref(), text("prompt"), "{name}, {conversation}: it agrees now");
            continue;
        }
        match (rendered, text("prompt"), text("refused")) {
            (Ok(prompt), Some(expected), _) if prompt == expected => n_equal += 1,
            (Err(TextError::TemplateRefused { message }), _, Some(expected)) if message == expected => n_refused += 1,
            // The reference fails on its own account (`None` is iterated, a list is changed): that is no promise.
            (Ok(_) | Err(TextError::TemplateFailed { .. }), None, None) => {}
            (got, ..) => wrong.push(format!("{name}, {conversation}\n  got      {got:?}\n  expected {golden}")),
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!((names.len(), n_equal, n_refused), (N_TEMPLATES, 328, 2));
    let folder = std::fs::read_dir(models_dir().join("templates")).expect("run `cargo xtask fetch test`");
    let is_template = |path: &Path| path.extension().is_some_and(|extension| extension == "jinja");
    assert_eq!(folder.filter(|entry| is_template(&entry.as_ref().unwrap().path())).count(), N_TEMPLATES);
}
