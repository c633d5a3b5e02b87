//! `qwen2`: Qwen 2 and 2.5 (Yang et al. 2024). Biases on q, k and v; rope turns the halves of a head.

use super::decoder;
use crate::error::ModelError;
use crate::hyper::Hyper;
use crate::read::Keys;
use crate::spec::{ModelSpec, Options};
use minfer_graph::RopeStyle;

pub(super) fn load(keys: &Keys<'_>) -> Result<ModelSpec, ModelError> {
    let hyper = Hyper::read(keys, RopeStyle::Halves)?;
    keys.refuse_window(hyper.n_ctx_train)?;
    let options = Options { qkv_bias: true, ..decoder::plain_options(keys, &hyper)? };
    decoder::assemble(keys, hyper, options)
}
