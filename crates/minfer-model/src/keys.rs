//! Metadata keys and their spelling. Takes nothing; gives constants. Keys of an architecture are given without its
//! prefix (`llama.block_count` is [`BLOCK_COUNT`]). Must not know what a value means.

/// The architecture's name, which is the prefix of its keys.
pub(crate) const ARCHITECTURE: &str = "general.architecture";
/// The model's name, for people.
pub(crate) const NAME: &str = "general.name";

/// Number of layers.
pub(crate) const BLOCK_COUNT: &str = "block_count";
/// Context length the model was trained for.
pub(crate) const CONTEXT_LENGTH: &str = "context_length";
/// Width of the residual stream.
pub(crate) const EMBEDDING_LENGTH: &str = "embedding_length";
/// Width of the feed-forward block; a number or one per layer.
pub(crate) const FEED_FORWARD_LENGTH: &str = "feed_forward_length";
/// Query heads; a number or one per layer.
pub(crate) const HEAD_COUNT: &str = "attention.head_count";
/// Key and value heads; a number or one per layer; absent: as many as query heads.
pub(crate) const HEAD_COUNT_KV: &str = "attention.head_count_kv";
/// Elements of a key head; absent: width of the stream over query heads.
pub(crate) const KEY_LENGTH: &str = "attention.key_length";
/// Elements of a value head; absent: as for keys.
pub(crate) const VALUE_LENGTH: &str = "attention.value_length";
/// Epsilon of every norm.
pub(crate) const RMS_EPSILON: &str = "attention.layer_norm_rms_epsilon";
/// Factor on `q·k`; absent or 0: `1/√head_dim`.
pub(crate) const ATTENTION_SCALE: &str = "attention.scale";
/// Positions a windowed layer sees.
pub(crate) const SLIDING_WINDOW: &str = "attention.sliding_window";
/// Every how many layers one sees everything, or one bool per layer (true: windowed).
pub(crate) const SLIDING_WINDOW_PATTERN: &str = "attention.sliding_window_pattern";
/// Rotated elements of a head; absent: all.
pub(crate) const ROPE_DIMENSIONS: &str = "rope.dimension_count";
/// Frequency base of rope.
pub(crate) const ROPE_BASE: &str = "rope.freq_base";
/// Frequency base of rope in windowed layers.
pub(crate) const ROPE_BASE_LOCAL: &str = "rope.freq_base_swa";
/// `none`, `linear`, `yarn`, `longrope`.
pub(crate) const ROPE_SCALING_TYPE: &str = "rope.scaling.type";
/// By how much positions are compressed.
pub(crate) const ROPE_SCALING_FACTOR: &str = "rope.scaling.factor";
/// The older spelling of the factor.
pub(crate) const ROPE_SCALE_LINEAR: &str = "rope.scale_linear";

/// Settings that change the computation and that no architecture here has, with the number that means "off".
pub(crate) const REFUSED_NUMBERS: &[(&str, f32)] = &[
    ("expert_count", 0.0),
    ("attn_logit_softcapping", 0.0),
    ("final_logit_softcapping", 0.0),
    ("attention.clamp_kqv", 0.0),
    ("attention.max_alibi_bias", 0.0),
    ("logit_scale", 1.0),
    ("residual_scale", 1.0),
    ("embedding_scale", 1.0),
];
/// The same for switches, with the position that changes nothing.
pub(crate) const REFUSED_SWITCHES: &[(&str, bool)] = &[("attention.causal", true), ("use_parallel_residual", false)];

/// `gpt2`, `llama`, ...: the algorithm.
pub(crate) const TOKENIZER_MODEL: &str = "tokenizer.ggml.model";
/// How text is split before merging.
pub(crate) const TOKENIZER_PRE: &str = "tokenizer.ggml.pre";
/// Token texts, by id.
pub(crate) const TOKENS: &str = "tokenizer.ggml.tokens";
/// Token scores, by id.
pub(crate) const SCORES: &str = "tokenizer.ggml.scores";
/// Token kinds, by id.
pub(crate) const TOKEN_TYPES: &str = "tokenizer.ggml.token_type";
/// Merge rules, best first.
pub(crate) const MERGES: &str = "tokenizer.ggml.merges";
/// First token of a text.
pub(crate) const BOS_ID: &str = "tokenizer.ggml.bos_token_id";
/// Last token of a text.
pub(crate) const EOS_ID: &str = "tokenizer.ggml.eos_token_id";
/// Last token of a turn.
pub(crate) const EOT_ID: &str = "tokenizer.ggml.eot_token_id";
/// Last token of a message that a tool call follows.
pub(crate) const EOM_ID: &str = "tokenizer.ggml.eom_token_id";
/// What stands for text without a token.
pub(crate) const UNK_ID: &str = "tokenizer.ggml.unknown_token_id";
/// What fills a batch.
pub(crate) const PAD_ID: &str = "tokenizer.ggml.padding_token_id";
/// Whether a text begins with the first token.
pub(crate) const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
/// Whether a text ends with the last token.
pub(crate) const ADD_EOS: &str = "tokenizer.ggml.add_eos_token";
/// Whether a space goes before the text.
pub(crate) const ADD_SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";
/// Whether runs of spaces become one.
pub(crate) const REMOVE_EXTRA_SPACES: &str = "tokenizer.ggml.remove_extra_whitespaces";
/// How text is normalised before it is tokenized.
pub(crate) const CHARSMAP: &str = "tokenizer.ggml.precompiled_charsmap";
/// What stands for hidden text.
pub(crate) const MASK_ID: &str = "tokenizer.ggml.mask_token_id";
/// Names of further chat templates, each under the key of the chat template with its name.
pub(crate) const CHAT_TEMPLATES: &str = "tokenizer.chat_templates";
/// The chat template.
pub(crate) const CHAT_TEMPLATE: &str = "tokenizer.chat_template";
