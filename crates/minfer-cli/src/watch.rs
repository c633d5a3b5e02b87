//! Traces and dumps. Takes an engine and files; watches its steps and writes what they computed.

use crate::exit::Failure;
use crate::outputs::{Output, Outputs, cannot_write};
use anyhow::Result;
use minfer::Engine;
use minfer_engine::{EngineError, Observer, RunView, StepTrace, Tracer};
use minfer_graph::KvSide;
use serde_json::{Value, json};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Where to write what an engine computes.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct WatchSettings {
    /// JSON lines, one per step.
    pub trace: Option<PathBuf>,
    /// Folder for logits and KV regions.
    pub dump: Option<PathBuf>,
}

/// Opened files, to be finished after the last step.
pub struct Watch {
    trace: Option<(PathBuf, Arc<Mutex<BufWriter<Output>>>)>,
    /// The folder, and what is not to be overwritten in it.
    dump: Option<(PathBuf, Outputs)>,
}

impl Watch {
    /// Opens the files, before anything is computed.
    pub fn open(settings: &WatchSettings, outputs: &mut Outputs) -> Result<Self> {
        let trace = settings.trace.as_ref().map(|path| -> Result<_> {
            Ok((path.clone(), Arc::new(Mutex::new(BufWriter::new(outputs.create(path)?)))))
        });
        let trace = trace.transpose()?;
        if let Some(dir) = &settings.dump {
            let failed = |error| Failure::new(format!("{}: cannot make this folder: {error}", dir.display()));
            std::fs::create_dir_all(dir).map_err(failed)?;
        }
        Ok(Self { trace, dump: settings.dump.clone().map(|dir| (dir, outputs.clone())) })
    }

    /// Watches every step of the engine from now on.
    pub fn attach(&self, engine: &mut Engine) {
        if let Some((path, file)) = &self.trace {
            let (path, file) = (path.clone(), Arc::clone(file));
            let mut n_runs = 0u64;
            engine.observe(Box::new(Tracer::new(move |trace: StepTrace| {
                n_runs += u64::from(trace.step == 0);
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                writeln!(file, "{}", trace_json(n_runs.saturating_sub(1), &trace))
                    .map_err(|error| cannot_write(&path, &error).to_string())
            })));
        }
        if let Some((dir, outputs)) = &self.dump {
            engine.observe(Box::new(LogitsDump { dir: dir.clone(), outputs: outputs.clone(), n_runs: 0 }));
        }
    }

    /// Writes what is only known at the end.
    pub fn finish(self, engine: &Engine) -> Result<()> {
        if let Some((path, file)) = &self.trace {
            let flushed = file.lock().unwrap_or_else(PoisonError::into_inner).flush();
            flushed.map_err(|error| cannot_write(path, &error))?;
        }
        let Some((dir, outputs)) = &self.dump else { return Ok(()) };
        for layer in 0..engine.model().spec.n_layer {
            for (side, name) in [(KvSide::K, "k"), (KvSide::V, "v")] {
                let path = dir.join(format!("kv.{layer}.{name}.bin"));
                let mut written = Ok(());
                engine.read_kv(layer, side, &mut |bytes| written = outputs.write(&path, bytes))?;
                written?;
            }
        }
        Ok(())
    }
}

/// Writes the logits of every batch, `[n_outputs, n_vocab]` f32 little endian, to a file of its own.
struct LogitsDump {
    dir: PathBuf,
    outputs: Outputs,
    n_runs: u64,
}

impl Observer for LogitsDump {
    fn after_step(&mut self, step: usize, view: &mut RunView<'_>) -> Result<(), EngineError> {
        if step + 1 != view.bound.steps.len() {
            return Ok(());
        }
        let path = self.dir.join(format!("logits.{:05}.f32", self.n_runs));
        self.n_runs += 1;
        let Some(output) = view.bound.outputs.first() else { return Ok(()) };
        let len = view.dims.bytes(output.shape, output.ty);
        let mut written = Ok(());
        let backend = &view.backends[output.buf.backend.index()];
        backend.read(minfer_backend::BufRef { len, ..output.buf }, &mut |bytes| {
            written = self.outputs.write(&path, bytes);
        })?;
        written.map_err(|failure| EngineError::Observer(failure.to_string()))
    }
}

/// One line. Numbers that JSON does not have become null.
fn trace_json(run: u64, trace: &StepTrace) -> Value {
    let (min, max, mean) = match trace.stats {
        Some((min, max, mean)) => (json!(min), json!(max), json!(mean)),
        None => (Value::Null, Value::Null, Value::Null),
    };
    json!({
        "run": run,
        "step": trace.step,
        "node": trace.node,
        "op": trace.op,
        "name": trace.name,
        "shape": [trace.n_rows, trace.shape.cols],
        "type": trace.ty.to_string(),
        "buffer": {
            "backend": trace.buf.backend.0,
            "region": trace.buf.region.0,
            "offset": trace.buf.offset,
            "len": trace.buf.len,
        },
        "live": [trace.live.start, trace.live.end],
        "min": min,
        "max": max,
        "mean": mean,
        "values": trace.values,
        "top": trace.top,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use minfer_backend::{BackendId, BufRef, RegionId};
    use minfer_graph::{Rows, Shape, ValueType};

    #[test]
    fn numbers_that_json_lacks_become_null() {
        let trace = StepTrace {
            step: 3,
            node: 7,
            name: "l0.\"x\"".into(),
            op: "add",
            shape: Shape::new(Rows::Tokens, 4),
            n_rows: 2,
            ty: ValueType::F32,
            buf: BufRef { backend: BackendId(0), region: RegionId(1), offset: 64, len: 32 },
            live: 3..5,
            stats: Some((f32::NAN, f32::INFINITY, f64::NEG_INFINITY)),
            values: vec![1.5, f32::NAN],
            top: vec![(9, f32::INFINITY)],
        };
        let line = trace_json(0, &trace).to_string();
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["min"], Value::Null);
        assert_eq!(value["values"], json!([1.5, null]));
        assert_eq!(value["top"], json!([[9, null]]));
        assert_eq!(value["shape"], json!([2, 4]));
    }
}
