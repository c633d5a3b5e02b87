//! From a description to the bytes of a file. Weights have the variance 1/n_in, so that activations and logits keep a sane
//! size through every layer; norm weights lie around 1.

use super::{TinyArch, TinyModel, vocab};
use crate::rng::Rng;
use minfer_gguf::{Array, DType, GgufError, GgufFile, GgufWriter, TensorType, Value, ValueType};

/// Spread of the logits: large enough that distributions differ, small enough that they are not one-hot.
const LOGIT_SPREAD: f32 = 2.0;
/// The same where the output matrix is the embedding: a larger one would only repeat the last token.
const TIED_LOGIT_SPREAD: f32 = 1.0;

impl TinyModel {
    /// The bytes of the file; the same for the same description, on every machine.
    ///
    /// # Panics
    /// If the description cannot be written: rows that are no whole number of blocks, too small a vocabulary.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.writer().to_bytes()
    }

    /// The file, opened.
    ///
    /// # Panics
    /// As [`to_bytes`](Self::to_bytes).
    pub fn open(&self) -> GgufFile {
        GgufFile::from_bytes(self.to_bytes()).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The file before it is written, so that a test may change keys and add tensors.
    ///
    /// # Panics
    /// As [`to_bytes`](Self::to_bytes).
    pub fn writer(&self) -> GgufWriter {
        let mut writer = GgufWriter::new();
        self.metadata(&mut writer);
        self.tensors(&mut writer, true).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        writer
    }

    /// The file without tensor data, and the room that each tensor needs, in file order.
    pub(super) fn header(&self) -> (GgufWriter, Vec<Hole>) {
        let mut writer = GgufWriter::new();
        self.metadata(&mut writer);
        let holes = self.tensors(&mut writer, false).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        (writer, holes)
    }

    fn metadata(&self, writer: &mut GgufWriter) {
        let arch = self.arch.name();
        writer.set("general.architecture", arch).set("general.name", self.name.as_str()).set("general.type", "model");
        let mut set = |key: &str, value: Value| {
            writer.set(format!("{arch}.{key}"), value);
        };
        set("block_count", self.n_layer.into());
        set("context_length", self.n_ctx_train.into());
        set("embedding_length", self.n_embd.into());
        set("feed_forward_length", self.n_ff.into());
        set("attention.head_count", self.n_head.into());
        match &self.n_kv_heads {
            Some(heads) => set("attention.head_count_kv", ints(heads.iter().map(|&n| n as i32)).into()),
            None => set("attention.head_count_kv", self.n_kv_head.into()),
        }
        if self.head_dim * self.n_head != self.n_embd || self.arch == TinyArch::Qwen3 {
            set("attention.key_length", self.head_dim.into());
            set("attention.value_length", self.head_dim.into());
        }
        set("attention.layer_norm_rms_epsilon", 1e-5f32.into());
        set("rope.freq_base", self.rope_base.into());
        if let Some(n_dims) = self.rope_dims {
            set("rope.dimension_count", n_dims.into());
        }
        if let Some(scaling) = self.rope_scaling {
            set("rope.scaling.type", scaling.kind.into());
            set("rope.scaling.factor", scaling.factor.into());
        }
        if let Some(window) = self.window {
            set("attention.sliding_window", window.into());
        }
        if let Some(pattern) = self.window_pattern {
            set("attention.sliding_window_pattern", pattern.into());
        }
        self.tokenizer(writer);
    }

    fn tokenizer(&self, writer: &mut GgufWriter) {
        let vocab = vocab::vocabulary(self.n_vocab);
        writer.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "qwen2");
        writer.set("tokenizer.ggml.tokens", Array::from_strings(&vocab.tokens));
        writer.set("tokenizer.ggml.token_type", ints(vocab.kinds.into_iter()));
        writer.set("tokenizer.ggml.merges", Array::from_strings(&vocab.merges));
        writer.set("tokenizer.ggml.bos_token_id", vocab.bos).set("tokenizer.ggml.eos_token_id", vocab.eos);
        writer.set("tokenizer.ggml.eot_token_id", vocab.eot).set("tokenizer.ggml.add_bos_token", false);
        writer.set(
            "tokenizer.chat_template",
            "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
             {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
        );
    }

    fn tensors(&self, writer: &mut GgufWriter, with_data: bool) -> Result<Vec<Hole>, GgufError> {
        let formats = &self.formats;
        let (n_embd, n_ff, n_vocab) = (self.n_embd, self.n_ff, self.n_vocab);
        let q_cols = self.n_head * self.head_dim;
        let embedding_gain = if self.tied { TIED_LOGIT_SPREAD } else { LOGIT_SPREAD };
        let mut add = Adder { writer, seed: self.seed, with_data, holes: Vec::new() };
        add.matrix("token_embd.weight", n_vocab, n_embd, formats.embedding, embedding_gain)?;
        if self.rope_freqs {
            let n_freqs = self.rope_dims.unwrap_or(self.head_dim) / 2;
            add.ramp("rope_freqs.weight", n_freqs)?;
        }
        for layer in 0..self.n_layer {
            let name = |stem: &str| format!("blk.{layer}.{stem}");
            let kv_cols = self.n_kv_head_of(layer) * self.head_dim;
            add.norm(&name("attn_norm.weight"), n_embd)?;
            for (stem, rows, dtype) in
                [("attn_q", q_cols, formats.q), ("attn_k", kv_cols, formats.k), ("attn_v", kv_cols, formats.v)]
            {
                add.matrix(&name(&format!("{stem}.weight")), rows, n_embd, dtype, 1.0)?;
                if self.biases {
                    add.vector(&name(&format!("{stem}.bias")), rows, 0.0, 0.3)?;
                }
            }
            if self.head_norms {
                add.norm(&name("attn_q_norm.weight"), self.head_dim)?;
                add.norm(&name("attn_k_norm.weight"), self.head_dim)?;
            }
            add.matrix(&name("attn_output.weight"), n_embd, q_cols, formats.attn_out, 1.0)?;
            add.norm(&name("ffn_norm.weight"), n_embd)?;
            add.matrix(&name("ffn_gate.weight"), n_ff, n_embd, formats.gate, 1.0)?;
            add.matrix(&name("ffn_up.weight"), n_ff, n_embd, formats.up, 1.0)?;
            add.matrix(&name("ffn_down.weight"), n_embd, n_ff, formats.down, 1.0)?;
            if self.arch == TinyArch::Gemma3 {
                add.norm(&name("post_attention_norm.weight"), n_embd)?;
                add.norm(&name("post_ffw_norm.weight"), n_embd)?;
            }
        }
        add.norm("output_norm.weight", n_embd)?;
        if !self.tied {
            add.matrix("output.weight", n_vocab, n_embd, formats.output, LOGIT_SPREAD)?;
        }
        Ok(add.holes)
    }
}

/// Adds tensors whose values depend on the seed and their name only.
struct Adder<'a> {
    writer: &'a mut GgufWriter,
    seed: u64,
    /// Whether tensors get values, or only their entries in the table.
    with_data: bool,
    holes: Vec<Hole>,
}

/// The room of a tensor without data.
pub(super) struct Hole {
    pub(super) name: String,
    pub(super) n_dims: usize,
    pub(super) bytes: u64,
}

impl Adder<'_> {
    fn matrix(&mut self, name: &str, rows: u32, cols: u32, dtype: DType, gain: f32) -> Result<(), GgufError> {
        let mut rng = Rng::named(self.seed, name);
        let scale = gain / (cols as f32).sqrt();
        let values = || (0..u64::from(rows) * u64::from(cols)).map(|_| rng.normal() * scale).collect();
        self.add(name, &[cols.into(), rows.into()], dtype, values)
    }

    fn add(
        &mut self,
        name: &str,
        dims: &[u64],
        dtype: DType,
        values: impl FnOnce() -> Vec<f32>,
    ) -> Result<(), GgufError> {
        if self.with_data {
            self.writer.tensor_f32(name, dims, dtype, &values())?;
            return Ok(());
        }
        let (block_elems, block_bytes) = TensorType::Known(dtype).block().unwrap_or((1, 0));
        let bytes = dims.iter().product::<u64>() / block_elems as u64 * block_bytes as u64;
        self.holes.push(Hole { name: name.to_owned(), n_dims: dims.len(), bytes });
        self.writer.tensor_unchecked(name, dims, dtype.ggml_id(), Vec::new());
        Ok(())
    }

    fn norm(&mut self, name: &str, len: u32) -> Result<(), GgufError> {
        self.vector(name, len, 1.0, 0.1)
    }

    fn vector(&mut self, name: &str, len: u32, mean: f32, spread: f32) -> Result<(), GgufError> {
        let mut rng = Rng::named(self.seed, name);
        let values = || (0..len).map(|_| mean + rng.normal() * spread).collect();
        self.add(name, &[len.into()], DType::F32, values)
    }

    /// 1 for the fastest frequency up to 8 for the slowest, as Llama 3 slows the slow ones.
    fn ramp(&mut self, name: &str, len: u32) -> Result<(), GgufError> {
        let step = 7.0 / len.saturating_sub(1).max(1) as f32;
        let values = || (0..len).map(|index| 1.0 + index as f32 * step).collect();
        self.add(name, &[len.into()], DType::F32, values)
    }
}

fn ints(values: impl Iterator<Item = i32>) -> Array {
    let values: Vec<Value> = values.map(Value::from).collect();
    Array::from_values(ValueType::I32, &values).unwrap_or_else(|| unreachable!("all values are of one type"))
}
