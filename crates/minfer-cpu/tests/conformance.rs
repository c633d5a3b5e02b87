//! The suite that every backend passes, on every SIMD level that this processor has.

use minfer_backend::conformance::{Tolerance, run_all};
use minfer_cpu::{CpuBackend, CpuOptions, SimdLevel};
use std::num::NonZeroUsize;

fn conforms(level: SimdLevel) {
    if !level.is_available() {
        println!("this processor has no {}", level.name());
        return;
    }
    let options = CpuOptions { threads: NonZeroUsize::new(2).unwrap(), simd: Some(level) };
    let report = run_all(&|| Box::new(CpuBackend::new(options).unwrap()), Tolerance::default());
    println!("{}: {} kernels compared", level.name(), report.compared.len());
    report.assert_passed();
}

#[test]
fn scalar() {
    conforms(SimdLevel::Scalar);
}

#[test]
fn avx2() {
    conforms(SimdLevel::Avx2);
}

#[test]
fn avx_vnni() {
    conforms(SimdLevel::AvxVnni);
}

#[test]
fn avx512() {
    conforms(SimdLevel::Avx512);
}

#[test]
fn neon() {
    conforms(SimdLevel::Neon);
}

#[test]
fn neondot() {
    conforms(SimdLevel::NeonDot);
}
