//! `gemma3`: Gemma 3, text (Gemma Team 2025). Scaled embedding, norms before and after each block and on each head, GELU;
//! five layers with a window and rope of their own for each that sees everything. Norm weights in files hold the `1 +`.

use super::decoder;
use crate::error::ModelError;
use crate::hyper::Hyper;
use crate::keys;
use crate::read::Keys;
use crate::spec::{ModelSpec, Options, Rope, Window};
use minfer_graph::{Activation, RopeStyle};

/// Every sixth layer sees everything (report, section 2).
const PERIOD: u32 = 6;
/// Base of the windowed layers (report, section 2).
const LOCAL_BASE: f32 = 10_000.0;
/// The 27B model, the only one with 62 layers, scales queries by its width over its heads (`query_pre_attn_scalar` 168 in
/// its configuration, which files do not carry).
const LAYERS_27B: u32 = 62;

pub(super) fn load(keys: &Keys<'_>) -> Result<ModelSpec, ModelError> {
    let hyper = Hyper::read(keys, RopeStyle::Halves)?;
    let base = keys.positive(keys::ROPE_BASE_LOCAL)?.unwrap_or(LOCAL_BASE);
    // Position scaling of the larger models concerns the layers that see everything.
    let rope = Rope { base, freq_scale: 1.0, ..hyper.rope };
    let window = Window {
        n_tokens: keys.require_count(keys::SLIDING_WINDOW)?,
        local: keys.window_pattern(hyper.n_layer, PERIOD)?,
        rope: (rope != hyper.rope).then_some(rope),
    };
    let plain = decoder::plain_options(keys, &hyper)?;
    let attention_scale = match keys.nonzero(keys::ATTENTION_SCALE)? {
        None if hyper.n_layer == LAYERS_27B => (f64::from(hyper.n_head) / f64::from(hyper.n_embd)).sqrt() as f32,
        _ => plain.attention_scale,
    };
    let options = Options {
        head_norms: true,
        sandwich_norms: true,
        activation: Activation::GeluTanh,
        embed_scale: f64::from(hyper.n_embd).sqrt() as f32,
        attention_scale,
        window: Some(window),
        ..plain
    };
    decoder::assemble(keys, hyper, options)
}
