//! How fast the products are: operations per second with many tokens, bytes per second with one. Reports, asserts nothing.
//!
//! `cargo bench -p minfer-cpu --bench throughput -- [threads] [level] [format ...]`

use minfer_backend::{Backend, BackendId, BufRef, Kernel, Operand, RegionId, Step, WeightOperand};
use minfer_cpu::{CpuBackend, CpuOptions, Probe, SimdLevel};
use minfer_graph::{BatchDims, DType, Op, Rows, Shape, ValueType};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

const FORMATS: [DType; 15] = [
    DType::Q4_K,
    DType::Q6_K,
    DType::Q4_1,
    DType::Q5_0,
    DType::Q8_0,
    DType::Q4_0,
    DType::Q5_1,
    DType::Q5_K,
    DType::Q2_K,
    DType::Q3_K,
    DType::IQ4_NL,
    DType::IQ4_XS,
    DType::F16,
    DType::BF16,
    DType::F32,
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test` starts benches too, without this word: there is nothing to test.
    if !std::env::args().any(|arg| arg == "--bench") {
        return Ok(());
    }
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let threads: usize = args.next().map_or(Ok(1), |arg| arg.parse())?;
    let level = args.next().map_or(Ok(SimdLevel::detect()), |arg| arg.parse())?;
    let wanted: Vec<String> = args.collect();
    let probe = Probe::new(level, STREAM_BYTES)?;
    let n_threads = NonZeroUsize::new(threads).ok_or("no threads")?;
    let time = Duration::from_millis(500);
    let peak = probe.int8_ops_per_s(n_threads, time)? / 1e9;
    let read = probe.read_bytes_per_s(n_threads, time)? / 1e9;
    drop(probe);
    println!("{level}, {threads} threads together: int8 peak {peak:.0} GOP/s, memory reads {read:.1} GB/s");
    println!(
        "format     512 tokens GOP/s (of peak)      2     4     6     8     9    16    32 tokens    1 token GB/s  in cache"
    );
    for dtype in FORMATS {
        if wanted.is_empty() || wanted.iter().any(|name| *name == dtype.to_string()) {
            let mut bench = Bench::new(threads, level, dtype)?;
            let gops = bench.gops(512)?;
            print!("{:10} {gops:8.1} ({:3.0}%)       ", dtype.to_string(), gops / peak * 100.0);
            for tokens in TOKENS {
                print!("{:6.1}", bench.gops(tokens)?);
            }
            let cached = bench.gops(1)? / 2.0 * bench.weight.buf.len as f64 / f64::from(ROWS * COLS);
            println!("    {:8.1}   {cached:8.1}", bench.gbytes()?);
        }
    }
    Ok(())
}

/// Small batches.
const TOKENS: [u32; 7] = [2, 4, 6, 8, 9, 16, 32];
const ROWS: u32 = 2048;
const COLS: u32 = 2048;
/// Bytes of weights that are read once each, in turn: more than caches hold.
const STREAM_BYTES: u64 = 600 << 20;

struct Bench {
    backend: CpuBackend,
    weight: WeightOperand,
    copies: u64,
}

impl Bench {
    fn new(threads: usize, level: SimdLevel, dtype: DType) -> Result<Self, Box<dyn std::error::Error>> {
        let threads = NonZeroUsize::new(threads).ok_or("no threads")?;
        let mut backend = CpuBackend::new(CpuOptions { threads, simd: Some(level) })?;
        let row_bytes = dtype.row_bytes(COLS as usize).ok_or("whole blocks")? as u64;
        let len = row_bytes * u64::from(ROWS);
        let copies = STREAM_BYTES / len;
        backend.create_region(RegionId(0), len * copies)?;
        // Zero scales are as fast as others; touched so that pages are there.
        backend.fill(BufRef { backend: BackendId(0), region: RegionId(0), offset: 0, len: len * copies }, 0x11)?;
        let buf = BufRef { backend: BackendId(0), region: RegionId(0), offset: 0, len };
        backend.create_region(RegionId(1), 64 << 20)?;
        Ok(Self { backend, weight: WeightOperand { buf, dtype, rows: ROWS, cols: COLS }, copies })
    }

    fn step(&self, tokens: u32, copy: u64) -> Step {
        let ty = if self.weight.dtype.is_quantized() { ValueType::Q8 } else { ValueType::F32 };
        let mut weight = self.weight;
        weight.buf.offset = copy * weight.buf.len;
        let operand = |offset: u64, cols: u32, ty: ValueType| {
            let shape = Shape::new(Rows::Fixed(tokens), cols);
            let len = u64::from(tokens) * ty.row_bytes(cols);
            Operand { buf: BufRef { backend: BackendId(0), region: RegionId(1), offset, len }, shape, ty }
        };
        let (x, output) = (operand(0, COLS, ty), operand(32 << 20, ROWS, ValueType::F32));
        let kernel = Kernel { op: Op::Linear, inputs: vec![ty], weights: vec![weight.dtype], output: ValueType::F32 };
        Step {
            node: 0,
            name: "product".into(),
            backend: BackendId(0),
            kernel,
            inputs: vec![x],
            weights: vec![weight],
            output,
            workspace: None,
            kv: None,
        }
    }

    /// Best time of several runs of the steps.
    fn seconds(&mut self, steps: &[Step]) -> Result<f64, Box<dyn std::error::Error>> {
        let mut best = f64::INFINITY;
        let begin = Instant::now();
        while begin.elapsed().as_millis() < 400 {
            let start = Instant::now();
            self.backend.run(steps, &BatchDims { n_tokens: 0, n_outputs: 0 })?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok(best)
    }

    /// 10⁹ multiplications and additions per second.
    fn gops(&mut self, tokens: u32) -> Result<f64, Box<dyn std::error::Error>> {
        let step = self.step(tokens, 0);
        let operations = 2.0 * f64::from(ROWS) * f64::from(COLS) * f64::from(tokens);
        Ok(operations / self.seconds(&[step])? / 1e9)
    }

    /// 10⁹ bytes of weights per second with one token.
    fn gbytes(&mut self) -> Result<f64, Box<dyn std::error::Error>> {
        let steps: Vec<Step> = (0..self.copies).map(|copy| self.step(1, copy)).collect();
        let bytes = (self.copies * self.weight.buf.len) as f64;
        Ok(bytes / self.seconds(&steps)? / 1e9)
    }
}
