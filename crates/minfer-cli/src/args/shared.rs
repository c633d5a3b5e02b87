//! Flags that several commands have. Takes nothing; gives raw values.

use clap::{Args, ValueEnum};
use std::ffi::OsString;

/// Who computes.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// The fast one
    Cpu,
    /// Scalar f32: slow, and what the others are judged by
    Reference,
}

/// Element type of the KV cache.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheType {
    /// 4 bytes
    F32,
    /// 2 bytes
    F16,
    /// 34 bytes for 32 elements, a little less exact
    #[value(name = "q8_0")]
    Q8_0,
}

/// How values are placed in memory.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alloc {
    /// Every value its own bytes
    Naive,
    /// Recycled by size class
    Pool,
    /// Planned offline
    Planned,
}

/// Fusions to leave out.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Planning")]
pub struct FusionArgs {
    /// Keep the Q, K and V projections, rope and the KV store apart
    #[arg(long)]
    pub no_fuse_qkv: bool,
    /// Keep the gate and up projections apart
    #[arg(long)]
    pub no_fuse_ffn: bool,
    /// Keep projections and the sum with the residual stream apart
    #[arg(long)]
    pub no_fuse_residual: bool,
    /// Keep producers and the quantisation of their values apart
    #[arg(long)]
    pub no_fuse_quantize: bool,
}

/// How much memory may be used.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Planning")]
pub struct MemoryArgs {
    /// Refuse, before anything is allocated, what needs more than this: bytes, or a number with KB, KiB, MB, MiB, GB or GiB,
    /// such as 2GiB; or auto for what is free now [default: what the machine has, mapped weights not counted]. What a control
    /// group, ulimit -v or, mapped weights not counted, ulimit -d allows holds in any case
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
}

/// Other words than the file's.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Words")]
pub struct WordArgs {
    /// Cut text by the rule of this family instead of the file's (`tokenizer.ggml.pre`): for files that name none or a wrong
    /// one. An unknown name lists all
    #[arg(long, value_name = "NAME")]
    pub pre: Option<OsString>,
    /// Another chat template than the file's: a file with one, or a name from `minfer template --list`
    #[arg(long, value_name = "FILE|NAME")]
    pub chat_template: Option<OsString>,
}

/// How a graph is planned and who runs it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Planning")]
pub struct PlanArgs {
    /// Who computes
    #[arg(long, value_enum, default_value_t = Backend::Cpu)]
    pub backend: Backend,
    /// Worker threads [default: one per physical core that the process may use]
    #[arg(short, long, value_name = "N")]
    pub threads: Option<u64>,
    /// Element type of the KV cache
    #[arg(long, value_enum, value_name = "TYPE", default_value_t = CacheType::F16)]
    pub cache_type: CacheType,
    /// How values are placed in memory
    #[arg(long, value_enum, value_name = "STRATEGY", default_value_t = Alloc::Planned)]
    pub alloc: Alloc,
    #[command(flatten)]
    pub fusion: FusionArgs,
}
