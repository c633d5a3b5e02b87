//! A prompt becomes an answer, piece by piece. Takes ids and how to choose tokens; gives text that is never half a
//! character.

use crate::error::Error;
use minfer_engine::{EndReason, Engine, Progress, Sampler, SamplingParams, Session, Timing};
use minfer_text::{StopStrings, StreamDecoder};
use std::ops::ControlFlow;
use std::sync::Arc;

/// How to generate.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Generate {
    /// How the next token is chosen. The same parameters and seed give the same text.
    pub sampling: SamplingParams,
    /// Most tokens of the answer; `None`: until the model ends it or the context is full.
    pub n_predict: Option<usize>,
    /// The answer ends before the first of these texts; empty ones never come.
    pub stop: Vec<String>,
}

/// What happens during an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    /// So many of the prompt's tokens have been read.
    Prompt {
        /// Read so far.
        done: usize,
        /// To be read.
        total: usize,
    },
    /// One more token; the text it completes, which may be none.
    Text(&'a str),
}

/// A whole answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Tokens, without the one that ended it.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub end: EndReason,
    /// How long it took.
    pub timing: Timing,
}

/// Reads a prompt in a sequence of its own and answers it. `on_piece` may stop it at any time.
pub(crate) fn answer(
    engine: &mut Engine,
    prompt: &[u32],
    generate: &Generate,
    on_piece: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
) -> Result<Answer, Error> {
    let mut sampler = Sampler::new(generate.sampling)?;
    let mut session = Session::new(engine)?;
    let result = stream(engine, &mut session, prompt, &mut sampler, generate, on_piece);
    session.close(engine)?;
    result
}

fn stream(
    engine: &mut Engine,
    session: &mut Session,
    prompt: &[u32],
    sampler: &mut Sampler,
    generate: &Generate,
    on_piece: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
) -> Result<Answer, Error> {
    let model = Arc::clone(engine.model());
    let mut decoder = StreamDecoder::continuing(&model.tokenizer);
    let mut stops = StopStrings::new(&generate.stop);
    let (mut text, mut tokens) = (String::new(), Vec::new());
    let (end, timing) =
        session.generate(engine, prompt, sampler, generate.n_predict, &mut |progress| match progress {
            Progress::Prompt { done, total } => on_piece(Piece::Prompt { done, total }),
            Progress::Token(id) => {
                tokens.push(id);
                let piece = stops.push(decoder.push(id));
                text.push_str(piece);
                let flow = on_piece(Piece::Text(piece));
                if stops.found().is_some() { ControlFlow::Break(()) } else { flow }
            }
        })?;
    // Half a character, and what might have become a stop string.
    let mut rest = stops.push(decoder.finish()).to_owned();
    rest.push_str(stops.finish());
    if !rest.is_empty() {
        text.push_str(&rest);
        // The answer is over: whether to stop is no question any more.
        let _ = on_piece(Piece::Text(&rest));
    }
    let end = if stops.found().is_some() { EndReason::StopString } else { end };
    Ok(Answer { text, tokens, end, timing })
}
