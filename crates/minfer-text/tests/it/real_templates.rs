//! Published chat templates against another implementation. Takes the file in
//! `MINFER_TEXT_TEMPLATES`: a JSON list of `{ name, source, cases: [{ input, ok | error and kind }] }`.
//! Without the file there is nothing to check.

use minfer_text::{ChatInput, ChatTemplate, Message, TextError};
use serde_json::Value;

#[test]
fn prompts_are_the_expected_ones() {
    let Some(path) = std::env::var_os("MINFER_TEXT_TEMPLATES") else {
        return;
    };
    let templates: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let (mut right, mut total) = (0, 0);
    for template in &templates {
        let name = template["name"].as_str().unwrap();
        let compiled = ChatTemplate::new(template["source"].as_str().unwrap());
        for (n, case) in template["cases"].as_array().unwrap().iter().enumerate() {
            total += 1;
            let input = &case["input"];
            let messages: Vec<Message> = serde_json::from_value(input["messages"].clone()).unwrap();
            let rendered = compiled.as_ref().map_err(Clone::clone).and_then(|compiled| {
                compiled.render(&ChatInput {
                    messages: &messages,
                    add_generation_prompt: input["add_generation_prompt"] == true,
                    bos_token: "<s>",
                    eos_token: "</s>",
                    tools: input.get("tools"),
                    extra: input.get("extra").and_then(Value::as_object),
                    now_s: Some(1_735_689_599),
                })
            });
            match (&rendered, case.get("ok")) {
                (Ok(got), Some(expected)) if got == expected.as_str().unwrap() => right += 1,
                (Err(TextError::TemplateRefused { message }), None) if case["error"] == message.as_str() => right += 1,
                // Where Python stops at a type, the engine here may go on.
                (Err(TextError::TemplateFailed { .. }) | Ok(_), None) if case["kind"] == "TypeError" => {
                    right += 1;
                }
                (Err(TextError::TemplateFailed { .. }), None) => right += 1,
                (got, expected) => {
                    println!("{name} #{n}\n  got      {got:?}\n  expected {:?}", expected.unwrap_or(&case["error"]))
                }
            }
        }
    }
    assert_eq!(right, total);
}
