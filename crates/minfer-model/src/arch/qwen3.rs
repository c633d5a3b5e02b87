//! `qwen3`: Qwen 3, dense (Yang et al. 2025). A norm on each query and key head in place of biases; rope turns the halves
//! of a head, whose size is a key of its own.

use super::decoder;
use crate::error::ModelError;
use crate::hyper::Hyper;
use crate::read::Keys;
use crate::spec::{ModelSpec, Options};
use minfer_graph::RopeStyle;

pub(super) fn load(keys: &Keys<'_>) -> Result<ModelSpec, ModelError> {
    let hyper = Hyper::read(keys, RopeStyle::Halves)?;
    keys.refuse_window(hyper.n_ctx_train)?;
    let options = Options { head_norms: true, ..decoder::plain_options(keys, &hyper)? };
    decoder::assemble(keys, hyper, options)
}
