//! Text, ids and chat templates on the command line.

mod support;

use minfer_testkit::{TinyArch, TinyModel};
use serde_json::json;
use support::{folder, minfer, minfer_with_stdin, tiny};

const CHAT: &str = r#"[{"role": "user", "content": "ab <|im_end|>"}]"#;

#[test]
fn tokens_are_shown_with_text_and_bytes() {
    let model = tiny("words_output");
    let words = ["tokenize", &model, "--text", "aé the<|im_end|>", "--parse-special"];
    let json = minfer(words.iter().chain(&["--output", "json"])).json();
    assert_eq!(json["pieces"], json!(["a", "\u{fffd}", "\u{fffd}", " the", "<|im_end|>"]));
    assert_eq!(json["bytes"], json!(["61", "c3", "a9", "20746865", "3c7c696d5f656e647c3e"]));
    assert_eq!(json["kinds"], json!(["normal", "normal", "normal", "normal", "control"]));
    let table = minfer(words.iter().chain(&["--output", "table"])).ok();
    assert_eq!(table.lines().count(), 6);
    assert!(table.contains("20746865") && table.contains("control"), "{table}");
}

#[test]
fn ids_are_decoded() {
    let model = tiny("words_decode");
    let text = "aé the\n\u{1f999} x ";
    let ids = minfer(["tokenize", &model, "--text", text]).ok();
    assert_eq!(minfer(["tokenize", &model, "--decode", "--text", ids.trim()]).ok(), text);
    assert_eq!(minfer_with_stdin(["tokenize", &model, "--decode"], ids.as_bytes()).ok(), text);
    let with_end = minfer(["tokenize", &model, "--text", "a<|im_end|>", "--parse-special"]).ok();
    assert_eq!(minfer(["tokenize", &model, "--decode", "--text", with_end.trim()]).ok(), "a");
    let shown = minfer(["tokenize", &model, "--decode", "--show-special", "--text", with_end.trim()]).ok();
    assert_eq!(shown, "a<|im_end|>");
    minfer(["tokenize", &model, "--decode", "--text", "1,x"]).refused(&["`x`", "1,2,3"]);
    minfer(["tokenize", &model, "--decode", "--text", "4000000000"]).refused(&["4000000000", "below"]);
    minfer(["tokenize", &model, "--show-special"]).refused(&["--decode"]);
}

#[test]
fn conversations_are_rendered_and_tokenized() {
    let dir = folder("words_chat");
    let model = support::write(&dir, &TinyModel::new("tiny", TinyArch::Llama));
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let chat = write("chat.json", CHAT);
    let prompt = minfer(["template", &model, "--chat", &chat]).ok();
    assert!(prompt.contains("ab <|im_end|>"), "{prompt}");
    let json = minfer(["tokenize", &model, "--chat", &chat, "--output", "json"]).json();
    let pieces: String = json["pieces"].as_array().unwrap().iter().map(|piece| piece.as_str().unwrap()).collect();
    assert_eq!(pieces, prompt, "no begin token is added, the template's text is whole");
    // The user's `<|im_end|>` is text, the template's are control tokens.
    let n_control = json["kinds"].as_array().unwrap().iter().filter(|kind| *kind == "control").count();
    assert_eq!(n_control + 1, prompt.matches("<|im_start|>").count() + prompt.matches("<|im_end|>").count());
    let object = format!(r#"{{"messages": {CHAT}, "add_generation_prompt": false}}"#);
    let without = minfer(["template", &model, "--chat", &write("object.json", &object)]).ok();
    assert!(prompt.starts_with(&without) && prompt.len() > without.len());
    let named = minfer(["template", &model, "--chat", &chat, "--chat-template", "llama3"]).ok();
    assert!(named.contains("<|start_header_id|>user<|end_header_id|>\n\nab <|im_end|><|eot_id|>"), "{named}");
    let own = write("own.jinja", "{{ messages[0].content }}!{{ tools[0].name }}");
    let tools = format!(r#"{{"messages": {CHAT}, "tools": [{{"name": "f"}}]}}"#);
    let rendered = minfer(["template", &model, "--chat", &write("tools.json", &tools), "--chat-template", &own]).ok();
    assert_eq!(rendered, "ab <|im_end|>!f");
    let second = |fields: &str| format!(r#"[{{"role": "user", "content": "a"}}, {{{fields}}}]"#);
    for (text, expected) in [
        ("{", "no JSON"),
        ("{}", "no `messages`"),
        (r#"{"messages": 7}"#, "`messages` is no list"),
        (r#"["a"]"#, "`messages[0]`"),
        (&second(r#""role": "assistant""#), "`messages[1]` has no `content`"),
        (&second(r#""content": "b""#), "`messages[1]`: missing field `role`"),
    ] {
        minfer(["template", &model, "--chat", &write("bad.json", text)]).refused(&["bad.json", expected, "hint: "]);
    }
    let calls = second(r#""role": "assistant", "tool_calls": [{"id": "1"}]"#);
    let own = write("calls.jinja", "{{ messages[1].tool_calls[0].id }}");
    let rendered = minfer(["template", &model, "--chat", &write("calls.json", &calls), "--chat-template", &own]).ok();
    assert_eq!(rendered, "1");
    minfer(["tokenize", &model, "--chat", &chat, "--text", "a"]).refused(&["--chat", "--text"]);
}

#[test]
fn templates_are_shown_and_listed() {
    let dir = folder("words_template");
    let mut writer = TinyModel::new("tiny", TinyArch::Llama).writer();
    let path = |name: &str| dir.join(name).into_os_string().into_string().unwrap();
    writer.set("tokenizer.chat_template", "own");
    writer.set("tokenizer.chat_templates", minfer_gguf::Array::from_strings(["rag"]));
    writer.set("tokenizer.chat_template.rag", "the second");
    writer.write_file(path("two.gguf")).unwrap();
    let two = path("two.gguf");
    assert_eq!(minfer(["template", &two]).ok(), "own");
    assert_eq!(minfer(["template", &two, "--chat-template", "rag"]).ok(), "the second");
    assert_eq!(minfer(["template", &two, "--chat-template", "default"]).ok(), "own");
    let list = minfer(["template", &two, "--list"]).ok();
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["default", "rag", "chatml", "gemma", "llama2", "llama3", "phi3", "zephyr"]);
    minfer(["template", &two, "--chat-template", "nothing"]).refused(&["`nothing`", "--list"]);
    writer.set("tokenizer.chat_template", "{{ raise_exception('only poems') }}");
    writer.write_file(path("refuses.gguf")).unwrap();
    let chat = path("chat.json");
    std::fs::write(&chat, CHAT).unwrap();
    let refuses = path("refuses.gguf");
    minfer(["template", &refuses, "--chat", &chat]).refused(&["refuses.gguf", "only poems", "--chat-template"]);
    // Another template is taken only when it is asked for.
    minfer([&refuses as &str, "hi", "-n", "1"]).refused(&["refuses.gguf", "only poems"]);
    minfer([&refuses as &str, "hi", "-n", "1", "--chat-template", "chatml"]).ok();
}

#[test]
fn a_missing_or_unknown_rule_is_loud_and_can_be_chosen() {
    let dir = folder("words_pre");
    let mut writer = TinyModel::new("tiny", TinyArch::Llama).writer();
    let path = dir.join("pre.gguf").into_os_string().into_string().unwrap();
    writer.set("tokenizer.ggml.pre", "next-year");
    writer.write_file(&path).unwrap();
    let words = ["tokenize", &path, "--text", "a"];
    let warned = minfer(words);
    assert!(warned.stderr.contains("NOT KNOWN") && warned.stderr.contains("next-year"), "{}", warned.stderr);
    assert!(warned.stderr.contains("--pre"), "{}", warned.stderr);
    for words in [&words[..], &[&path, "a", "--raw", "-q", "-n", "1"]] {
        let chosen = minfer(words.iter().chain(&["--pre", "qwen2"]));
        assert!(!chosen.stderr.contains("warning"), "{}", chosen.stderr);
        minfer(words.iter().chain(&["--pre", "last-year"])).refused(&["`last-year`", "llama-bpe", "tekken"]);
    }
    assert!(minfer([&path as &str, "a", "--raw", "-q", "-n", "1"]).stderr.contains("next-year"));
}
