//! `llama`: Llama 2 and 3, Mistral, SmolLM2 and others of this shape (Touvron et al. 2023). Rope turns adjacent elements;
//! Llama 3 files bring frequency factors, some derivatives biases, Mistral's first version a window in every layer.

use super::decoder;
use crate::error::ModelError;
use crate::hyper::Hyper;
use crate::keys;
use crate::read::Keys;
use crate::role::Role;
use crate::spec::{ModelSpec, Options, Window};
use minfer_graph::RopeStyle;

pub(super) fn load(keys: &Keys<'_>) -> Result<ModelSpec, ModelError> {
    let hyper = Hyper::read(keys, RopeStyle::Adjacent)?;
    let window = keys.count(keys::SLIDING_WINDOW, 0)?.filter(|&n_tokens| n_tokens > 0);
    let local = vec![true; hyper.n_layer as usize];
    let options = Options {
        qkv_bias: decoder::first_layer_has(keys, Role::QueryBias),
        rope_factors: decoder::has(keys, Role::RopeFactors),
        window: window.map(|n_tokens| Window { n_tokens, local, rope: None }),
        ..decoder::plain_options(keys, &hyper)?
    };
    decoder::assemble(keys, hyper, options)
}
