//! One conformance suite, run unchanged on every backend.
//!
//! Takes a way to make backends and a tolerance; gives a [`Report`] of what was compared with the reference backend and
//! what differed. Steps are built directly, without a planner: random values, odd sizes, batches smaller than the
//! capacity, in place where the operation allows it, with NaN in every byte that a kernel has no business reading.
//! Everything random comes from fixed seeds. Must not know any backend but the reference.

mod attention;
pub(crate) mod case;
mod compare;
mod errors;
mod fused;
mod products;
pub(crate) mod random;
mod regions;
pub(crate) mod rig;
mod rowwise;

use crate::backend::Backend;
use crate::kernel::Kernel;
use crate::reference::ReferenceBackend;
use case::Case;
use minfer_graph::ValueType;
use random::{Random, RandomWeights};
use std::collections::BTreeMap;

/// How far a backend may be from the reference.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Largest difference of an element, as a part of the largest element of its row.
    pub relative: f32,
    /// The same for rope tables, whose angles a device without f64 cannot take exactly.
    pub rope_table: f32,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { relative: 2e-5, rope_table: 2e-6 }
    }
}

/// What the suite found.
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Kernels that were compared with the reference, and in how many cases.
    pub compared: BTreeMap<String, u32>,
    /// Contract checks that were made: regions, errors.
    pub checked: Vec<&'static str>,
    /// What differed: the case, then how.
    pub failures: Vec<String>,
    /// The largest difference that was accepted, as a part of the tolerance.
    pub closest: f32,
}

impl Report {
    /// Panics unless something was compared and nothing differed.
    pub fn assert_passed(&self) {
        assert!(!self.compared.is_empty(), "the backend supports none of the suite's kernels");
        let shown: Vec<_> = self.failures.iter().take(20).map(String::as_str).collect();
        assert!(shown.is_empty(), "{} failures, the first:\n{}", self.failures.len(), shown.join("\n"));
    }
}

/// Runs everything on backends made by `make`.
pub fn run_all(make: &dyn Fn() -> Box<dyn Backend>, tolerance: Tolerance) -> Report {
    let mut suite = Suite {
        backend: make(),
        reference: ReferenceBackend::new(),
        tolerance,
        random: Random::new(1),
        weights: RandomWeights::new(),
        report: Report::default(),
    };
    rowwise::run(&mut suite);
    products::run(&mut suite);
    fused::run(&mut suite);
    attention::run(&mut suite);
    errors::run(&mut suite);
    let mut report = suite.report;
    regions::run(make, &mut report);
    report
}

/// A backend next to the reference.
struct Suite {
    backend: Box<dyn Backend>,
    reference: ReferenceBackend,
    tolerance: Tolerance,
    random: Random,
    weights: RandomWeights,
    report: Report,
}

impl Suite {
    fn supports(&self, kernel: &Kernel) -> bool {
        self.backend.capabilities().supports(kernel)
    }

    /// Runs the case on both backends and compares, if the backend supports its kernel.
    fn check(&mut self, case: &Case) {
        self.check_placed(case, None);
    }

    /// The same with the value over input `in_place`; on the reference it has bytes of its own.
    fn check_placed(&mut self, case: &Case, in_place: Option<usize>) {
        let kernel = case.kernel();
        if !self.supports(&kernel) {
            return;
        }
        *self.report.compared.entry(kernel.to_string()).or_default() += 1;
        let (got, expected) =
            match (rig::run(&mut *self.backend, case, in_place), rig::run(&mut self.reference, case, None)) {
                (Ok(got), Ok(expected)) => (got, expected),
                (got, expected) => {
                    let text =
                        |result: Result<_, rig::RigError>| result.err().map_or("no error".into(), |e| e.to_string());
                    self.fail(case, &format!("the backend gives {}; the reference {}", text(got), text(expected)));
                    return;
                }
            };
        let tolerance = match case.op {
            minfer_graph::Op::RopeTable { .. } => self.tolerance.rope_table,
            _ => self.tolerance.relative,
        };
        match compare::outcomes(case, &got, &expected, tolerance) {
            Ok(closest) => self.report.closest = self.report.closest.max(closest),
            Err(difference) => {
                let place = in_place.map_or(String::new(), |input| format!("in place of input {input}: "));
                self.fail(case, &(place + &difference));
            }
        }
    }

    /// The case as it is, and with the value over each input that the operation may overwrite.
    fn check_in_place_too(&mut self, case: &Case) {
        self.check(case);
        for &input in case.op.in_place_inputs() {
            let takes_over = case.output.ty == ValueType::F32 && case.input_type(input) == ValueType::F32;
            if takes_over {
                self.check_placed(case, Some(input));
            }
        }
    }

    fn fail(&mut self, case: &Case, what: &str) {
        self.report.failures.push(format!("{} {}: {what}", case.kernel(), case.describe()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeferringBackend, NullBackend};
    use minfer_graph::Op;

    #[test]
    fn the_reference_conforms_to_itself() {
        let report = run_all(&|| Box::new(ReferenceBackend::new().with_threads(2)), Tolerance::default());
        report.assert_passed();
        assert_eq!(report.closest, 0.0, "thread counts must not change a bit");
        for op in [
            "embed",
            "rope_table",
            "rms_norm",
            "linear(",
            "rope(",
            "kv_store",
            "attention",
            "silu",
            "gelu",
            "add",
            "mul",
        ]
        .into_iter()
        .chain(["select_rows", "gated_linear", "linear_add", "qkv_store", "quantize", "copy"])
        {
            assert!(report.compared.keys().any(|kernel| kernel.starts_with(op)), "{op} was not compared");
        }
        for ty in minfer_graph::DType::ALL.iter().filter(|ty| **ty != minfer_graph::DType::I32) {
            let compared = |x: &str| report.compared.keys().any(|k| *k == format!("linear({x}; {ty}) -> f32"));
            assert!(compared("f32") && compared("q8"), "{ty}");
        }
    }

    #[test]
    fn the_deferring_backend_conforms() {
        run_all(&|| Box::new(DeferringBackend::reference()), Tolerance::default()).assert_passed();
    }

    #[test]
    #[should_panic(expected = "supports none")]
    fn a_backend_that_supports_nothing_fails() {
        let none = || DeferringBackend::reference().with_filter(|_| false);
        run_all(&|| Box::new(none()), Tolerance::default()).assert_passed();
    }

    #[test]
    fn a_backend_that_computes_nothing_fails_every_kernel() {
        let adds = crate::NullCapabilities { filter: |kernel| kernel.op == Op::Add, ..Default::default() };
        let report = run_all(&|| Box::new(NullBackend::new(adds.clone())), Tolerance::default());
        let compared: u32 = report.compared.values().sum();
        assert!(compared > 0 && report.failures.len() >= compared as usize);
    }
}
