//! Built-in templates, and what messages carry beside text.

use minfer_text::{ChatInput, ChatTemplate, Message, builtin_template, builtin_template_names};
use serde_json::json;

#[test]
fn built_in_templates_render_a_conversation() {
    let messages = [
        Message::new("system", "be kind"),
        Message::new("user", "hello"),
        Message::new("assistant", "hi"),
        Message::new("user", "bye"),
    ];
    let render = |name: &str| {
        let input = ChatInput {
            messages: &messages,
            add_generation_prompt: true,
            bos_token: "<s>",
            eos_token: "</s>",
            ..ChatInput::default()
        };
        ChatTemplate::new(builtin_template(name).unwrap()).unwrap().render(&input).unwrap()
    };
    let cases = [
        (
            "chatml",
            "<|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\nhi\
             <|im_end|>\n<|im_start|>user\nbye<|im_end|>\n<|im_start|>assistant\n",
        ),
        (
            "gemma",
            "<s><start_of_turn>user\nbe kind\n\nhello<end_of_turn>\n<start_of_turn>model\nhi<end_of_turn>\n\
             <start_of_turn>user\nbye<end_of_turn>\n<start_of_turn>model\n",
        ),
        ("llama2", "<s>[INST] <<SYS>>\nbe kind\n<</SYS>>\n\nhello [/INST] hi </s><s>[INST] bye [/INST]"),
        (
            "llama3",
            "<s><|start_header_id|>system<|end_header_id|>\n\nbe kind<|eot_id|><|start_header_id|>user\
             <|end_header_id|>\n\nhello<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nhi<|eot_id|>\
             <|start_header_id|>user<|end_header_id|>\n\nbye<|eot_id|><|start_header_id|>assistant\
             <|end_header_id|>\n\n",
        ),
        (
            "phi3",
            "<|system|>\nbe kind<|end|>\n<|user|>\nhello<|end|>\n<|assistant|>\nhi<|end|>\n<|user|>\nbye<|end|>\n\
             <|assistant|>\n",
        ),
        (
            "zephyr",
            "<|system|>\nbe kind</s>\n<|user|>\nhello</s>\n<|assistant|>\nhi</s>\n<|user|>\nbye</s>\n<|assistant|>\n",
        ),
    ];
    assert!(builtin_template_names().eq(cases.map(|(name, _)| name)));
    for (name, expected) in cases {
        assert_eq!(render(name), expected, "{name}");
    }
    assert_eq!(builtin_template("no-such-name"), None);
}

/// Tools and reasoning reach the template under the names it expects.
#[test]
fn fields_are_passed_on() {
    let render = |source: &str, extra: serde_json::Value| {
        let mut message = json!({"role": "assistant", "content": "2"});
        message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let message: Message = serde_json::from_value(message).unwrap();
        let input = ChatInput { messages: &[message], ..ChatInput::default() };
        ChatTemplate::new(source).unwrap().render(&input).unwrap()
    };
    let both = "{{ messages[0].reasoning_content }}|{{ messages[0].thinking }}|{{ messages[0]|list|join(' ') }}";
    for name in ["reasoning_content", "thinking", "reasoning"] {
        let rendered = render(both, json!({ name: "hm" }));
        assert!(rendered.starts_with("hm|hm|"), "{name}: {rendered}");
    }
    assert_eq!(render(both, json!({"reasoning": null})), "||role content reasoning");
    let calls = json!({"tool_calls": [{"function": {"name": "f"}}]});
    assert_eq!(render("{{ messages[0].tool_calls[0].function.name }}", calls), "f");
}
