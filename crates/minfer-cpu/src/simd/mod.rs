//! One small vector machine, several ways to build it. Takes a [`SimdLevel`]; gives [`Simd`], the operations every kernel is
//! written in; must not know tensors, formats or steps.
//!
//! A value of a type that implements [`Simd`] is a token: it exists only where the processor has the instructions, so
//! that its arithmetic is safe to call. A kernel is written once, generic over the token, as a [`Kernel`] whose body and
//! helpers are all `#[inline(always)]`; [`SimdLevel::run`] compiles it once per level, inside a function that enables the
//! level's instructions. That function is never inlined: kernels that many others call stay one piece of code.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod level;
pub(crate) mod math;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

pub use level::{SimdLevel, UnknownSimdLevel};

/// Most lanes of a vector.
pub(crate) const MAX_LANES: usize = 16;

/// Something to compute on any level.
pub(crate) trait Kernel {
    /// What comes out.
    type Out;

    /// Computes it. Implementations are `#[inline(always)]`.
    fn call<S: Simd>(self, s: S) -> Self::Out;
}

/// Vectors of `LANES` floats, of as many 32-bit integers, and of four times as many bytes.
///
/// The methods that take pointers read or write exactly the number of elements they state, at any alignment.
pub(crate) trait Simd: Copy + Send + Sync + 'static {
    /// `LANES` floats.
    type F: Copy;
    /// `LANES` 32-bit integers, or `4 · LANES` bytes.
    type I: Copy;
    /// 64 bytes.
    type B: Copy;
    /// A float for each of up to 16 groups.
    type Scales: Copy;
    /// Floats in a vector: 8 or 16.
    const LANES: usize;
    /// What is added (modulo 256) to signed 8-bit weights before [`Simd::dot_wide`]: 128 where the instruction wants
    /// unsigned bytes, 0 where it takes signed ones.
    const WIDE_BIAS: u8;

    /// Whether this is plain code, where few registers make panels no faster than rows.
    const PORTABLE: bool;

    /// Runs a kernel with this level's instructions enabled.
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Out;

    /// All lanes `x`.
    fn splat(self, x: f32) -> Self::F;
    /// Reads `LANES` floats.
    unsafe fn load(self, from: *const f32) -> Self::F;
    /// Writes `LANES` floats.
    unsafe fn store(self, to: *mut f32, v: Self::F);
    /// Reads `LANES` half floats.
    unsafe fn load_f16(self, from: *const u16) -> Self::F;
    /// Reads `LANES` brain floats.
    unsafe fn load_bf16(self, from: *const u16) -> Self::F;
    /// Writes `LANES` half floats, rounded to nearest even.
    unsafe fn store_f16(self, to: *mut u16, v: Self::F);
    /// `a + b`.
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a - b`.
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a · b`.
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a / b`.
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// The greater of each lane.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// The lesser of each lane.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a · b + c`, rounded once where the processor can.
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// The absolute value.
    fn abs(self, a: Self::F) -> Self::F;
    /// `x` in the lanes where `first <= at < end`, elsewhere minus infinity.
    fn keep_between(self, x: Self::F, at: Self::F, first: Self::F, end: Self::F) -> Self::F;
    /// To the nearest integer, ties to even.
    fn round(self, a: Self::F) -> Self::F;
    /// `2^n` for integral `n` in `-126..=127`.
    fn pow2(self, n: Self::F) -> Self::F;
    /// The sum of all lanes, in a fixed order.
    fn sum(self, a: Self::F) -> f32;
    /// The greatest lane.
    fn max_lane(self, a: Self::F) -> f32;

    /// To floats.
    fn to_f(self, a: Self::I) -> Self::F;
    /// To integers, to nearest even.
    fn to_i(self, a: Self::F) -> Self::I;
    /// All zero.
    fn zero_i(self) -> Self::I;
    /// All 32-bit lanes `x`.
    fn splat_i(self, x: i32) -> Self::I;
    /// Reads `4 · LANES` bytes.
    unsafe fn load_i(self, from: *const u8) -> Self::I;
    /// Writes `LANES` integers.
    unsafe fn store_i(self, to: *mut i32, v: Self::I);
    /// Reads four bytes into every 32-bit lane.
    unsafe fn splat4(self, from: *const u8) -> Self::I;
    /// Reads eight bytes into every two 32-bit lanes.
    unsafe fn splat8(self, from: *const u8) -> Self::I;
    /// Reads 16 bytes into every four 32-bit lanes.
    unsafe fn splat16(self, from: *const u8) -> Self::I;
    /// Adds to each 32-bit lane the products of its four bytes; those of `u` are at most 127, those of `x` signed.
    fn dot(self, acc: Self::I, u: Self::I, x: Self::I) -> Self::I;
    /// The same for bytes `w` of the full range, biased by [`Simd::WIDE_BIAS`]; those of `x` are at least -127.
    fn dot_wide(self, acc: Self::I, w: Self::I, x: Self::I) -> Self::I;
    /// The sum of 32-bit lanes, `a` 256 times as much: of sums of up to 32 products of bytes, for which there is room.
    fn join(self, a: Self::I, b: Self::I) -> Self::I;
    /// In each 32-bit lane the sum of the products of two signed 16-bit halves.
    fn madd(self, a: Self::I, b: Self::I) -> Self::I;

    /// The float of a half float's bits.
    fn half(self, bits: u16) -> f32;
    /// Eight half floats to floats.
    unsafe fn halves8(self, bits: [u16; 8], to: *mut f32);
    /// Eight unsigned bytes, the lowest first: writes `(byte - minus) · factor`.
    unsafe fn scale8(self, bytes: u64, minus: f32, factor: f32, to: *mut f32);
    /// Products of the scales of the groups (of 16 or 32) of 256 weights with those of their activations.
    unsafe fn scale_groups(self, group: usize, d: *const f32, x_d: *const f32) -> Self::Scales;
    /// The bytes of vector `v` of a run of 256 belong to groups of 16 or 32: spreads their scales over its 32-bit lanes.
    fn spread(self, group: usize, scales: Self::Scales, v: usize) -> Self::F;
    /// Adds, spread over any lanes, `m[g] · x[g]` over the groups (of 16 or 32) of 256 elements.
    unsafe fn add_groups(self, group: usize, m: *const f32, x: *const f32, acc: Self::F) -> Self::F;

    /// Reads 64 bytes.
    unsafe fn load_b(self, from: *const u8) -> Self::B;
    /// Reads 32 bytes twice, to follow each other.
    unsafe fn load_b2(self, first: *const u8, second: *const u8) -> Self::B;
    /// Writes 64 bytes.
    unsafe fn store_b(self, to: *mut u8, v: Self::B);
    /// All bytes `x`.
    fn splat_b(self, x: u8) -> Self::B;
    /// Bitwise and.
    fn and_b(self, a: Self::B, b: Self::B) -> Self::B;
    /// Bitwise or.
    fn or_b(self, a: Self::B, b: Self::B) -> Self::B;
    /// Bitwise exclusive or.
    fn xor_b(self, a: Self::B, b: Self::B) -> Self::B;
    /// Shifts the first 32 bytes right by `M`, the others by `N`; the bits shifted in may be a neighbour's.
    fn shr_b<const M: i32, const N: i32>(self, a: Self::B) -> Self::B;
    /// Shifts the first 32 bytes left by `M`, the others by `N`; the bits shifted in may be a neighbour's.
    fn shl_b<const M: i32, const N: i32>(self, a: Self::B) -> Self::B;
    /// The low nibbles of 16 bytes, then their high ones; then the same of 16 other bytes.
    unsafe fn nibbles(self, first: *const u8, second: *const u8) -> Self::B;
    /// Looks up bytes below 16 in a table of 16.
    fn lookup(self, index: Self::B, table: &[u8; 16]) -> Self::B;
    /// Byte `i` is 16 where bit `i` is set, else 0.
    fn bits(self, bits: u64) -> Self::B;
    /// Transposes `LANES` rows of `LANES` 32-bit units: unit `i` of row `r` becomes unit `r` of vector `i`. Strides are
    /// in bytes.
    unsafe fn transpose(self, from: *const u8, from_stride: usize, to: *mut u8, to_stride: usize);
    /// Asks for a cache line; never faults.
    fn prefetch(self, at: *const u8);
}
