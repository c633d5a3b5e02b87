//! A model ready to answer. Takes a path and options; gives [`Minfer`].

use crate::answer::{Answer, Generate, Piece, answer};
use crate::backends::{BackendKind, backends, capabilities};
use crate::error::Error;
use crate::prompt::{chat_prompt, text_prompt};
use minfer_backend::Backend;
use minfer_cpu::SimdLevel;
use minfer_engine::{Blueprint, Engine, EngineConfig, EngineError, Levers, Model, Replanner, admit, choose_n_ctx};
use minfer_text::Message;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// How to open a model. The default is what most want.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Options {
    /// Who computes.
    pub backend: BackendKind,
    /// Worker threads; by default one per physical core that the process may use.
    pub threads: Option<NonZeroUsize>,
    /// Vector instructions; by default the best there are.
    pub simd: Option<SimdLevel>,
    /// Positions of the context; by default 4096, or what the model was trained for if that is less.
    pub n_ctx: Option<u32>,
    /// Everything else; its `n_ctx` is not looked at.
    pub config: EngineConfig,
}

/// A model ready to answer.
pub struct Minfer {
    engine: Engine,
}

/// Opens a model with the default options.
pub fn open(path: impl AsRef<Path>) -> Result<Minfer, Error> {
    open_with(path, &Options::default())
}

/// Opens a model. What the budget of the settings does not admit is refused before weights are mapped or a thread starts.
///
/// # Errors
/// A file that is no model or one that is not supported, settings out of range, or too little memory. Each says what to do.
pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Minfer, Error> {
    let model = Model::open_header(path, None)?;
    let n_ctx = choose_n_ctx(options.n_ctx, 0, Some(0), model.spec.n_ctx_train)?.n_ctx;
    let config = EngineConfig { n_ctx, ..options.config }.checked()?;
    // From the header alone: a file that the budget does not admit may be larger than all addresses.
    let capabilities = capabilities(options.backend, options.threads, options.simd);
    let blueprint = Blueprint::new(&model, &config, &capabilities)?;
    admit(&Replanner { model: &model, config, backends: &capabilities }, &blueprint, Levers::default())?;
    let model = Arc::new(model.map_weights()?);
    let backends = backends(options.backend, options.threads, options.simd)?;
    Ok(Engine::from_blueprint(model, backends, config, blueprint)?.into())
}

impl Minfer {
    /// From parts: a model that is open already, with its weights, any backends, any settings.
    pub fn new(model: Arc<Model>, backends: Vec<Box<dyn Backend>>, config: EngineConfig) -> Result<Self, Error> {
        Ok(Self { engine: Engine::new(model, backends, config)? })
    }

    /// The engine below.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine below, for sequences and steps of one's own.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The model file, understood.
    pub fn model(&self) -> &Model {
        self.engine.model()
    }

    /// Goes on with a text, as it is: no chat template. `on_text` gets the answer as it comes and may stop it.
    pub fn complete(
        &mut self,
        text: &str,
        generate: &Generate,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Answer, Error> {
        if text.is_empty() {
            return Err(EngineError::EmptyPrompt.into());
        }
        let prompt = text_prompt(&self.model().tokenizer, text);
        self.generate(&prompt.ids, generate, &mut only_text(on_text))
    }

    /// Answers a conversation through the model's chat template. `on_text` gets the answer as it comes and may stop it.
    pub fn chat(
        &mut self,
        messages: &[Message],
        generate: &Generate,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Answer, Error> {
        let prompt = chat_prompt(self.model(), messages)?;
        self.generate(&prompt.ids, generate, &mut only_text(on_text))
    }

    /// Answers the ids of a prompt. `on_piece` also sees how far the prompt has been read.
    pub fn generate(
        &mut self,
        prompt: &[u32],
        generate: &Generate,
        on_piece: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> Result<Answer, Error> {
        answer(&mut self.engine, prompt, generate, on_piece)
    }
}

impl From<Engine> for Minfer {
    fn from(engine: Engine) -> Self {
        Self { engine }
    }
}

/// Hides everything but text that is there.
fn only_text<'a>(on_text: &'a mut dyn FnMut(&str) -> ControlFlow<()>) -> impl FnMut(Piece<'_>) -> ControlFlow<()> + 'a {
    |piece| match piece {
        Piece::Text(text) if !text.is_empty() => on_text(text),
        _ => ControlFlow::Continue(()),
    }
}

#[cfg(test)]
mod tests {
    /// A server moves engines between threads.
    #[test]
    fn a_model_can_move_to_another_thread() {
        fn is_send<T: Send>() {}
        is_send::<super::Minfer>();
        is_send::<minfer_engine::Engine>();
    }
}
