//! Chat templates by name, for models whose file has none or a broken one: takes a name, gives a source. Must not know which
//! model wants which; nothing takes one of these unasked.

/// Names and sources, sorted by name. Each starts with the begin token where its models expect one and renders the roles
/// `system`, `user` and `assistant` as the models' cards describe.
const BUILTIN: &[(&str, &str)] = &[
    (
        "chatml",
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}\
         {% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    ),
    (
        "gemma",
        "{{ bos_token }}{% set ns = namespace(system='') %}{% for m in messages %}\
         {% if m.role == 'system' %}{% set ns.system = m.content + '\\n\\n' %}{% else %}\
         {{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' + ns.system + m.content | trim \
         + '<end_of_turn>\\n' }}{% set ns.system = '' %}{% endif %}{% endfor %}\
         {% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}",
    ),
    (
        "llama2",
        "{% set ns = namespace(system='') %}{% for m in messages %}\
         {% if m.role == 'system' %}{% set ns.system = '<<SYS>>\\n' + m.content + '\\n<</SYS>>\\n\\n' %}\
         {% elif m.role == 'user' %}{{ bos_token + '[INST] ' + ns.system + m.content + ' [/INST]' }}\
         {% set ns.system = '' %}{% else %}{{ ' ' + m.content + ' ' + eos_token }}{% endif %}{% endfor %}",
    ),
    (
        "llama3",
        "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' \
         + m.content | trim + '<|eot_id|>' }}{% endfor %}\
         {% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
    ),
    (
        "phi3",
        "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor %}\
         {% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}",
    ),
    (
        "zephyr",
        "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + eos_token + '\\n' }}{% endfor %}\
         {% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}",
    ),
];

/// The source of the built-in chat template of this name.
pub fn builtin_template(name: &str) -> Option<&'static str> {
    BUILTIN.iter().find_map(|&(known, source)| (known == name).then_some(source))
}

/// The names of all built-in chat templates, sorted.
pub fn builtin_template_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|&(name, _)| name)
}
