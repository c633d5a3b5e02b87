//! The tensors of a file, taken one by one by role. Takes an open file; gives weights of the expected shape and format,
//! and in the end refuses tensors that nobody took; must not know architectures.

use crate::error::{ModelError, Shape2, matrix_format};
use crate::hyper::Hyper;
use crate::role::{Role, Slot};
use crate::spec::Options;
use crate::weights::{LayerWeights, Weights};
use minfer_gguf::{DType, GgufFile, TensorInfo};
use minfer_graph::{Weight, WeightSource};
use std::collections::HashSet;

/// What has been taken so far.
pub(crate) struct Tensors<'a> {
    file: &'a GgufFile,
    taken: HashSet<&'a str>,
}

impl<'a> Tensors<'a> {
    /// Nothing taken yet.
    pub(crate) fn new(file: &'a GgufFile) -> Self {
        Self { file, taken: HashSet::new() }
    }

    /// Whether the file has a tensor for this role.
    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.file.tensor(&slot.tensor_name()).is_some()
    }

    fn info(&self, slot: Slot) -> Result<&'a TensorInfo, ModelError> {
        let tensor = slot.tensor_name();
        self.file.tensor(&tensor).ok_or(ModelError::MissingTensor { slot, tensor })
    }

    /// Rows of a matrix whose row length is known.
    pub(crate) fn rows(&self, slot: Slot) -> Result<u64, ModelError> {
        Ok(self.info(slot)?.n_rows())
    }

    /// A matrix `[rows, cols]` in any format that can be decoded.
    pub(crate) fn matrix(&mut self, slot: Slot, rows: u32, cols: u32) -> Result<Weight, ModelError> {
        let weight = self.take(slot, rows, cols)?;
        if matrix_format(weight.dtype) {
            return Ok(weight);
        }
        Err(self.format_error(slot, weight, "a matrix must hold floats or blocks of them"))
    }

    /// A vector, which is always stored in full.
    pub(crate) fn vector(&mut self, slot: Slot, cols: u32) -> Result<Weight, ModelError> {
        let weight = self.take(slot, 1, cols)?;
        if weight.dtype == DType::F32 {
            return Ok(weight);
        }
        Err(self.format_error(slot, weight, "norms, biases and factors must be F32"))
    }

    fn format_error(&self, slot: Slot, weight: Weight, expected: &'static str) -> ModelError {
        let got = minfer_gguf::TensorType::Known(weight.dtype);
        ModelError::TensorFormat { slot, tensor: weight.name, expected, got }
    }

    fn take(&mut self, slot: Slot, rows: u32, cols: u32) -> Result<Weight, ModelError> {
        let info = self.info(slot)?;
        self.taken.insert(&info.name);
        let expected = Shape2 { rows: rows.into(), cols: cols.into() };
        let flat = info.dims.iter().skip(2).all(|&dim| dim == 1);
        if !flat || (Shape2 { rows: info.n_rows(), cols: info.row_elems() }) != expected {
            let dims: Vec<String> = info.dims.iter().rev().map(u64::to_string).collect();
            let got = format!("[{}]", dims.join(", "));
            return Err(ModelError::TensorShape { slot, tensor: info.name.clone(), expected, got });
        }
        let source = WeightSource { part: info.part as u32, offset: info.offset, len: info.n_bytes };
        Ok(Weight { name: info.name.clone(), dtype: info.dtype()?, rows, cols, source })
    }

    /// All constants of a decoder with these options.
    pub(crate) fn decoder(&mut self, hyper: &Hyper, options: &Options, n_vocab: u32) -> Result<Weights, ModelError> {
        let (n_embd, global) = (hyper.n_embd, Slot::global);
        let embedding = self.matrix(global(Role::Embedding), n_vocab, n_embd)?;
        let output_norm = self.vector(global(Role::OutputNorm), n_embd)?;
        let output = match options.tied_output {
            true => None,
            false => Some(self.matrix(global(Role::Output), n_vocab, n_embd)?),
        };
        let rope_factors = match options.rope_factors {
            true => Some(self.vector(global(Role::RopeFactors), hyper.rope.n_dims / 2)?),
            false => None,
        };
        let layers = (0..hyper.n_layer).map(|layer| self.layer(hyper, options, layer)).collect::<Result<_, _>>()?;
        Ok(Weights { embedding, output_norm, output, rope_factors, layers })
    }

    fn layer(&mut self, hyper: &Hyper, options: &Options, layer: u32) -> Result<LayerWeights, ModelError> {
        let at = |role| Slot::layer(layer, role);
        let (n_embd, n_ff, head_dim) = (hyper.n_embd, hyper.n_ff, hyper.head_dim);
        // Both products fit: n_kv_head is at most n_head, whose product was checked.
        let q_cols = hyper.n_head * head_dim;
        let kv_cols = hyper.n_kv_head.get(layer as usize).map_or(0, |n_kv_head| n_kv_head * head_dim);
        let qkv_bias = match options.qkv_bias {
            true => Some([
                self.vector(at(Role::QueryBias), q_cols)?,
                self.vector(at(Role::KeyBias), kv_cols)?,
                self.vector(at(Role::ValueBias), kv_cols)?,
            ]),
            false => None,
        };
        let head_norms = match options.head_norms {
            true => Some([self.vector(at(Role::QueryNorm), head_dim)?, self.vector(at(Role::KeyNorm), head_dim)?]),
            false => None,
        };
        let post_norms = match options.sandwich_norms {
            true => Some([
                self.vector(at(Role::PostAttentionNorm), n_embd)?,
                self.vector(at(Role::PostFeedForwardNorm), n_embd)?,
            ]),
            false => None,
        };
        Ok(LayerWeights {
            attn_norm: self.vector(at(Role::AttentionNorm), n_embd)?,
            q: self.matrix(at(Role::Query), q_cols, n_embd)?,
            k: self.matrix(at(Role::Key), kv_cols, n_embd)?,
            v: self.matrix(at(Role::Value), kv_cols, n_embd)?,
            qkv_bias,
            head_norms,
            attn_out: self.matrix(at(Role::AttentionOutput), n_embd, q_cols)?,
            ffn_norm: self.vector(at(Role::FeedForwardNorm), n_embd)?,
            gate: self.matrix(at(Role::Gate), n_ff, n_embd)?,
            up: self.matrix(at(Role::Up), n_ff, n_embd)?,
            down: self.matrix(at(Role::Down), n_embd, n_ff)?,
            post_norms,
        })
    }

    /// Refuses a file with a tensor that nobody took: it is of a variant that would be computed wrongly.
    pub(crate) fn finish(self, arch: &'static str) -> Result<(), ModelError> {
        let mut unknown = self.file.tensors().iter().filter(|info| !self.taken.contains(info.name.as_str()));
        match unknown.next() {
            None => Ok(()),
            Some(first) => Err(ModelError::UnknownTensor { tensor: first.name.clone(), arch, others: unknown.count() }),
        }
    }
}
