//! `minfer run`: a prompt becomes an answer. The answer goes to stdout as it comes, everything else to stderr.

use super::template::{chosen_template, in_file};
use super::text::read_prompt;
use super::{admitted, backend_words, backends, open, warn_of_paging};
use crate::describe;
use crate::exit::{Failure, Outcome};
use crate::measure::{Usage, report_memory};
use crate::memory;
use crate::output::{self, note};
use crate::outputs::{Output, Outputs, cannot_write};
use crate::resolve::Run;
use crate::watch::Watch;
use anyhow::Result;
use minfer::{
    Answer, ContextChoice, EndReason, Engine, EngineConfig, EngineError, Interrupt, Levers, Message, Minfer, Model,
    Piece, Prompt, chat_prompt, text_prompt,
};
use minfer_graph::{to_dot, to_json};
use minfer_plan::{Plan, annotations, plan_text};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the program ends with on the second Ctrl+C: 128 plus the number of the signal, as shells say it.
const INTERRUPTED: i32 = 130;

/// Answers a prompt.
pub fn run(settings: Run) -> Result<Outcome> {
    let start = Usage::now();
    let text = read_prompt(&settings.prompt)?;
    if text.is_empty() {
        return Err(EngineError::EmptyPrompt.into());
    }
    let model = open_model(&settings)?;
    model.warnings.iter().for_each(|warning| output::warn(warning));
    let as_it_is = text_prompt(&model.tokenizer, &text);
    // A budget is asked before a template is filled in, which takes a large stack; its tokens may raise the context.
    let is_known = settings.raw || model.chat_template.is_none();
    let n_ctx = match is_known {
        true => choose_context(&model, &as_it_is, &settings)?.n_ctx,
        false => minfer::choose_n_ctx(settings.n_ctx, 0, Some(0), model.spec.n_ctx_train)?.n_ctx,
    };
    let admit = |n_ctx: u32, prompt: &Prompt| {
        let config = EngineConfig { n_ctx, ..settings.compute.config };
        admitted(&model, config, &settings.compute, levers(prompt, &settings), describe::flag)
    };
    let (mut config, mut blueprint) = admit(n_ctx, &as_it_is)?;
    let prompt = prompt(&model, text, as_it_is, &settings)?;
    let choice = choose_context(&model, &prompt, &settings)?;
    if choice.n_ctx != n_ctx {
        (config, blueprint) = admit(choice.n_ctx, &prompt)?;
    }
    warn_of_paging(blueprint.ledger.total(), memory::memory());
    let mut outputs = outputs(&settings, &model);
    let dumps = Dumps::open(&settings, &mut outputs)?;
    let watch = Watch::open(&settings.watch, &mut outputs)?;
    if !settings.quiet {
        note("model", &describe::model(&model.spec, &model.file));
        note("context", &describe::context(choice, model.spec.n_ctx_train));
        note("memory", &describe::memory(&blueprint.ledger, blueprint.figures()));
        note("backend", &backend_words(&settings.compute));
        note("seed", &settings.generate.sampling.seed.to_string());
    }
    dumps.write(&blueprint.plan)?;
    let mut engine =
        Engine::from_blueprint(Arc::new(model.map_weights()?), backends(&settings.compute)?, config, blueprint)?;
    watch.attach(&mut engine);
    let mut minfer = Minfer::from(engine);
    let answer = stream(&mut minfer, &prompt.ids, &settings)?;
    if !settings.quiet {
        report(&answer, choice.n_ctx);
    }
    if settings.memory_report {
        report_memory(minfer.engine(), start);
    }
    watch.finish(minfer.engine())?;
    Ok(Outcome::Done)
}

/// The model's header, with other words than the file's if they were asked for.
fn open_model(settings: &Run) -> Result<Model> {
    let mut model = open::model(&settings.model, settings.words.pre)?;
    if let Some(choice) = &settings.words.chat_template {
        model.chat_template = Some(chosen_template(&model.file, &settings.model, choice)?);
    }
    Ok(model)
}

/// What it writes, which is nothing of what it reads.
fn outputs(settings: &Run, model: &Model) -> Outputs {
    let template = settings.words.chat_template.as_deref().map(Path::new);
    Outputs::beside(&model.file).keep_text(&settings.prompt, "the prompt").keep(template, "the chat template")
}

/// The prompt in the words of the model's chat template, unless it has none or none is wanted: then it stays as it is.
fn prompt(model: &Model, text: String, as_it_is: Prompt, settings: &Run) -> Result<Prompt> {
    if settings.raw {
        return Ok(as_it_is);
    }
    if model.chat_template.is_none() {
        if settings.system.is_some() {
            let failure = Failure::new("--system needs a chat template, and this model has none");
            return Err(failure.hint("put it into the prompt, with --raw").into());
        }
        if !settings.quiet {
            output::line("this model has no chat template: the prompt is continued as it is");
        }
        return Ok(as_it_is);
    }
    let system = settings.system.as_ref().map(|system| Message::new("system", system.as_str()));
    let messages: Vec<Message> = system.into_iter().chain([Message::new("user", text)]).collect();
    match chat_prompt(model, &messages) {
        Err(minfer::Error::Text(error)) => in_file(&settings.model, Err(error)),
        other => Ok(other?),
    }
}

/// Room for the prompt, and for the answer where its length is known.
fn choose_context(model: &Model, prompt: &Prompt, settings: &Run) -> Result<ContextChoice> {
    let n_predict = settings.generate.n_predict;
    Ok(minfer::choose_n_ctx(settings.n_ctx, prompt.ids.len(), n_predict, model.spec.n_ctx_train)?)
}

/// A smaller context must still hold the prompt and an answer of the length asked for.
fn levers(prompt: &Prompt, settings: &Run) -> Levers {
    let needed = prompt.ids.len().saturating_add(settings.generate.n_predict.unwrap_or(1));
    Levers { least_n_ctx: u32::try_from(needed).ok(), slots: false }
}

/// Writes the answer as it comes, every piece at once.
fn stream(minfer: &mut Minfer, prompt: &[u32], settings: &Run) -> Result<Answer> {
    end_on_ctrl_c(minfer.engine().interrupt())?;
    let mut out = io::stdout().lock();
    let mut failed = None;
    let answer = minfer.generate(prompt, &settings.generate, &mut |piece| {
        if let Piece::Text(text) = piece
            && let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
        {
            failed = Some(error);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    if let Some(error) = failed {
        return Err(output::stdout_failed(error));
    }
    if !answer.text.ends_with('\n') {
        writeln!(out).and_then(|()| out.flush()).map_err(output::stdout_failed)?;
    }
    Ok(answer)
}

/// The first Ctrl+C ends the answer, the second the program.
fn end_on_ctrl_c(interrupt: Interrupt) -> Result<(), Failure> {
    let mut pressed = false;
    let handler = move || {
        if std::mem::replace(&mut pressed, true) {
            std::process::exit(INTERRUPTED);
        }
        interrupt.raise();
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::new(format!("cannot listen for Ctrl+C: {error}")))
}

fn report(answer: &Answer, n_ctx: u32) {
    let timing = &answer.timing;
    let rate = |n: usize, tps: f64| format!("{n} tokens, {tps:.1} tokens/s");
    // Who stopped early may have neither.
    if timing.n_prompt > 0 {
        note("prefill", &rate(timing.n_prompt, timing.prefill_tps()));
    }
    if timing.n_decode > 0 {
        note("decode", &rate(timing.n_decode, timing.decode_tps()));
    }
    let end = match answer.end {
        EndReason::EndOfGeneration => "the model ended its answer".to_owned(),
        EndReason::Length => "as many tokens as --n-predict allows".to_owned(),
        EndReason::ContextFull => format!("the context of {n_ctx} tokens is full; a larger --n-ctx gives more room"),
        EndReason::StopString => "a text of --stop would have come".to_owned(),
        EndReason::Cancelled => "stopped with Ctrl+C".to_owned(),
    };
    note("ended", &end);
}

/// Files for the planned graph, opened before anything is computed.
struct Dumps<'a> {
    graph: Option<(&'a Path, Output)>,
    json: Option<(&'a Path, Output)>,
}

impl<'a> Dumps<'a> {
    fn open(settings: &'a Run, outputs: &mut Outputs) -> Result<Self> {
        let mut open = |path: &'a Option<PathBuf>| {
            path.as_deref().map(|path| outputs.create(path).map(|file| (path, file))).transpose()
        };
        Ok(Self { graph: open(&settings.dump_graph)?, json: open(&settings.dump_graph_json)? })
    }

    fn write(self, plan: &Plan) -> Result<()> {
        if let Some((path, mut file)) = self.graph {
            let is_dot = path.extension().is_some_and(|extension| extension == "dot");
            let text = if is_dot { to_dot(&plan.graph, &annotations(plan)) } else { plan_text(plan) };
            file.write_all(text.as_bytes()).map_err(|error| cannot_write(path, &error))?;
        }
        if let Some((path, mut file)) = self.json {
            writeln!(file, "{:#}", to_json(&plan.graph, &annotations(plan)))
                .map_err(|error| cannot_write(path, &error))?;
        }
        Ok(())
    }
}
