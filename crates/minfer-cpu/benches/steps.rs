//! How long attention and the bare walk over steps take. Reports, asserts nothing.
//!
//! `cargo bench -p minfer-cpu --bench steps -- [threads] [level]`

use minfer_backend::{Backend, BackendId, BufRef, Kernel, KvPair, Operand, RegionId, Step};
use minfer_cpu::{CpuBackend, CpuOptions, SimdLevel};
use minfer_graph::{
    Attention, BatchDims, CacheType, Fusion, GraphKind, GraphParams, KV_BLOCK_CELLS, Op, Rows, Shape, ValueType,
};
use std::error::Error;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test` starts benches too, without this word: there is nothing to test.
    if !std::env::args().any(|arg| arg == "--bench") {
        return Ok(());
    }
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let threads = args.next().map_or(Ok(1), |arg| arg.parse())?;
    let level = args.next().map_or(Ok(SimdLevel::detect()), |arg| arg.parse())?;
    let threads = NonZeroUsize::new(threads).ok_or("no threads")?;
    let mut bench = Bench { backend: CpuBackend::new(CpuOptions { threads, simd: Some(level) })?, regions: 0 };
    println!("{level}, {threads} threads");

    let (a, b) = (bench.value(1, 64, ValueType::F32)?, bench.value(1, 64, ValueType::F32)?);
    let steps = vec![step(Op::Add, &[a, b], a); 400];
    println!("a step that does nothing much: {:.2} µs", bench.seconds(&steps)? / 400.0 * 1e6);

    if let Some(before) = processor_ms() {
        std::thread::sleep(Duration::from_secs(1));
        let used = processor_ms().unwrap_or(before) - before;
        println!("processor time of a second without work: {used} ms, all threads together");
    }

    for (n_head, n_kv_head, head_dim) in [(14, 2, 64), (12, 2, 128), (9, 3, 64)] {
        for (tokens, first) in [(512, 0), (512, 3584), (1, 511), (1, 4095)] {
            bench.attention(n_head, n_kv_head, head_dim, tokens, first)?;
        }
    }
    Ok(())
}

/// Processor time of this process so far. `None` where the system does not say.
fn processor_ms() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name in parentheses; user and system time are fields 14 and 15 of all, in ticks of 10 ms.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) * 10)
}

struct Bench {
    backend: CpuBackend,
    regions: u32,
}

fn step(op: Op, inputs: &[Operand], output: Operand) -> Step {
    let inputs = inputs.to_vec();
    let types = inputs.iter().map(|input| input.ty).collect();
    Step {
        node: 0,
        name: op.to_string(),
        backend: BackendId(0),
        kernel: Kernel { op, inputs: types, weights: vec![], output: output.ty },
        inputs,
        weights: vec![],
        output,
        workspace: None,
        kv: None,
    }
}

impl Bench {
    fn region(&mut self, bytes: u64) -> Result<BufRef, Box<dyn Error>> {
        let region = RegionId(self.regions);
        self.regions += 1;
        self.backend.create_region(region, bytes)?;
        let buf = BufRef { backend: BackendId(0), region, offset: 0, len: bytes };
        self.backend.fill(buf, 0x11)?;
        Ok(buf)
    }

    fn value(&mut self, rows: u32, cols: u32, ty: ValueType) -> Result<Operand, Box<dyn Error>> {
        let shape = Shape::new(Rows::Fixed(rows), cols);
        Ok(Operand { buf: self.region(u64::from(rows) * ty.row_bytes(cols))?, shape, ty })
    }

    fn ints(&mut self, rows: u32, cols: u32, data: &[u32]) -> Result<Operand, Box<dyn Error>> {
        let value = self.value(rows, cols, ValueType::I32)?;
        let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.backend.write(value.buf, &bytes)?;
        Ok(value)
    }

    /// Best time of several runs of the steps.
    fn seconds(&mut self, steps: &[Step]) -> Result<f64, Box<dyn Error>> {
        let mut best = f64::INFINITY;
        let begin = Instant::now();
        while begin.elapsed().as_millis() < 300 {
            let start = Instant::now();
            self.backend.run(steps, &BatchDims { n_tokens: 0, n_outputs: 0 })?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok(best)
    }

    fn attention(
        &mut self,
        n_head: u32,
        n_kv_head: u32,
        head_dim: u32,
        tokens: u32,
        first: u32,
    ) -> Result<(), Box<dyn Error>> {
        let n_ctx = 4096;
        let params = GraphParams {
            kind: GraphKind::Prefill,
            token_capacity: tokens,
            batch_capacity: tokens,
            output_capacity: 1,
            sequence_capacity: 1,
            n_ctx,
            n_cells: n_ctx,
            cache_type: CacheType::F16,
            fusion: Fusion::ALL,
            weights_version: 0,
        };
        let cols = n_kv_head * head_dim;
        let side = self.value(n_ctx, cols, ValueType::F16)?;
        let other = self.value(n_ctx, cols, ValueType::F16)?;
        let q = self.value(tokens, n_head * head_dim, ValueType::F32)?;
        let positions: Vec<u32> = (first..first + tokens).collect();
        let table: Vec<u32> = (0..n_ctx / KV_BLOCK_CELLS).collect();
        let inputs = [
            q,
            side,
            other,
            self.ints(tokens, 1, &positions)?,
            self.ints(tokens, 1, &vec![0; tokens as usize])?,
            self.ints(1, table.len() as u32, &table)?,
        ];
        let scale = 1.0 / (head_dim as f32).sqrt();
        let op = Op::Attention(Attention { layer: 0, n_head, n_kv_head, head_dim, scale, window: None });
        let out = self.value(tokens, n_head * head_dim, ValueType::F32)?;
        let mut step = step(op, &inputs, out);
        step.kv = Some(KvPair { k: side.buf, v: other.buf, ty: ValueType::F16, cols, n_cells: n_ctx });
        let workspace = self.backend.capabilities().workspace_bytes(&step.kernel, out.shape, &params);
        if workspace > 0 {
            step.workspace = Some(self.region(workspace)?);
        }
        let seconds = self.seconds(&[step])?;
        let seen: f64 = positions.iter().map(|p| f64::from(p + 1)).sum();
        let operations = 4.0 * seen * f64::from(n_head * head_dim);
        let bytes = 4.0 * f64::from(first + tokens) * f64::from(cols);
        println!(
            "attention {n_head}/{n_kv_head} heads of {head_dim}, {tokens:3} tokens from {first:4}: {:9.1} µs, {:6.1} GFLOP/s, {:5.1} GB/s of cache",
            seconds * 1e6,
            operations / seconds / 1e9,
            bytes / seconds / 1e9
        );
        Ok(())
    }
}
