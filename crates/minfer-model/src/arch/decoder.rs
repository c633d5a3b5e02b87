//! What every architecture does once its options are known: take the tensors, compare the vocabulary, refuse leftovers.
//! Takes keys, hyper-parameters and options; gives the specification; must not know which architecture asks.

use crate::error::ModelError;
use crate::hyper::Hyper;
use crate::keys;
use crate::read::Keys;
use crate::role::{Role, Slot};
use crate::spec::{ModelSpec, Options};
use crate::tensors::Tensors;
use minfer_gguf::GgufFile;
use minfer_graph::Activation;

/// The plain options: no biases, no extra norms, SiLU, whole context. An architecture changes what differs.
pub(super) fn plain_options(keys: &Keys<'_>, hyper: &Hyper) -> Result<Options, ModelError> {
    Ok(Options {
        qkv_bias: false,
        head_norms: false,
        sandwich_norms: false,
        activation: Activation::Silu,
        embed_scale: 1.0,
        attention_scale: hyper.attention_scale(keys)?,
        window: None,
        rope_factors: false,
        tied_output: !has(keys, Role::Output),
    })
}

/// Whether the file has a tensor outside the layers for this role.
pub(super) fn has(keys: &Keys<'_>, role: Role) -> bool {
    Tensors::new(keys.file).has(Slot::global(role))
}

/// Whether the first layer has a tensor for this role.
pub(super) fn first_layer_has(keys: &Keys<'_>, role: Role) -> bool {
    Tensors::new(keys.file).has(Slot::layer(0, role))
}

/// Takes the tensors and makes the specification.
pub(super) fn assemble(keys: &Keys<'_>, hyper: Hyper, options: Options) -> Result<ModelSpec, ModelError> {
    keys.refuse_unsupported()?;
    let mut tensors = Tensors::new(keys.file);
    let n_vocab = vocabulary_size(keys.file, &tensors)?;
    let weights = tensors.decoder(&hyper, &options, n_vocab)?;
    tensors.finish(keys.arch)?;
    Ok(ModelSpec {
        arch: keys.arch,
        name: keys.file.metadata().str(keys::NAME)?.map(str::to_owned),
        n_layer: hyper.n_layer,
        n_embd: hyper.n_embd,
        n_head: hyper.n_head,
        n_kv_head: hyper.n_kv_head,
        head_dim: hyper.head_dim,
        n_ff: hyper.n_ff,
        n_vocab,
        n_ctx_train: hyper.n_ctx_train,
        norm_eps: hyper.norm_eps,
        rope: hyper.rope,
        options,
        weights,
    })
}

/// Rows of the embedding, which must be the tokens of the vocabulary if the file has one.
fn vocabulary_size(file: &GgufFile, tensors: &Tensors<'_>) -> Result<u32, ModelError> {
    let n_rows = tensors.rows(Slot::global(Role::Embedding))?;
    let n_tokens = file.metadata().strings(keys::TOKENS)?.map_or(n_rows, |tokens| tokens.len() as u64);
    // A token id is a non-negative 32-bit integer.
    if n_tokens != n_rows || n_rows > i32::MAX as u64 {
        return Err(ModelError::VocabularySize { n_tokens, n_rows });
    }
    Ok(n_rows as u32)
}
