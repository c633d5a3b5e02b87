//! The vector machine in pairs of 128 bits: NEON, with its 8-bit dot products if `DOT`.
//!
//! A pair computes lane for lane what the 256 bits of [AVX2](super::SimdLevel::Avx2) do, in the same order; half of the
//! 32 registers hold the sums of a register block, as there.

use super::{Kernel, Simd, SimdLevel};
use core::arch::aarch64::*;
use core::arch::asm;

/// A token: exists only where the processor has NEON, and its dot products if `DOT`.
#[derive(Clone, Copy)]
pub(crate) struct Neon<const DOT: bool>(());

impl<const DOT: bool> Neon<DOT> {
    /// The token, if the processor has the instructions.
    pub(super) fn new() -> Option<Self> {
        let level = if DOT { SimdLevel::NeonDot } else { SimdLevel::Neon };
        level.is_available().then_some(Self(()))
    }
}

#[target_feature(enable = "neon")]
#[inline(never)]
fn enable_neon<K: Kernel>(kernel: K, s: Neon<false>) -> K::Out {
    kernel.call(s)
}

#[target_feature(enable = "neon,dotprod")]
#[inline(never)]
fn enable_dot<K: Kernel>(kernel: K, s: Neon<true>) -> K::Out {
    kernel.call(s)
}

/// Adds to each 32-bit lane the products of its four signed bytes.
///
/// In assembly, since the intrinsic is not stable.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn sdot(mut acc: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: only computes on registers; the instruction is enabled.
    unsafe {
        asm!(
            "sdot {acc:v}.4s, {a:v}.16b, {b:v}.16b",
            acc = inout(vreg) acc, a = in(vreg) a, b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    acc
}

/// The same in plain NEON, if no sum of two products exceeds 16 bits: as where one factor's magnitude is at most 127,
/// the other's at most 128.
#[target_feature(enable = "neon")]
#[inline]
fn pairwise_dot(acc: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    let low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
    vpadalq_s16(acc, vpaddq_s16(low, vmull_high_s8(a, b)))
}

/// Shifts bytes right; by 0 too, which the instruction does not know.
#[target_feature(enable = "neon")]
#[inline]
fn right<const N: i32>(v: uint8x16_t) -> uint8x16_t {
    vshlq_u8(v, vdupq_n_s8(-N as i8))
}

/// Shifts bytes left.
#[target_feature(enable = "neon")]
#[inline]
fn left<const N: i32>(v: uint8x16_t) -> uint8x16_t {
    vshlq_u8(v, vdupq_n_s8(N as i8))
}

/// Transposes four rows of four.
#[target_feature(enable = "neon")]
#[inline]
fn turn(r: [uint32x4_t; 4]) -> [uint32x4_t; 4] {
    let pair = |a, b| (vreinterpretq_u64_u32(vtrn1q_u32(a, b)), vreinterpretq_u64_u32(vtrn2q_u32(a, b)));
    let ((even01, odd01), (even23, odd23)) = (pair(r[0], r[1]), pair(r[2], r[3]));
    [vtrn1q_u64(even01, even23), vtrn1q_u64(odd01, odd23), vtrn2q_u64(even01, even23), vtrn2q_u64(odd01, odd23)]
        .map(|v| vreinterpretq_u32_u64(v))
}

impl<const DOT: bool> Simd for Neon<DOT> {
    type F = [float32x4_t; 2];
    type I = [int32x4_t; 2];
    type B = [uint8x16_t; 4];
    type Scales = [f32; 16];
    const LANES: usize = 8;
    const WIDE_BIAS: u8 = 0;
    const PORTABLE: bool = false;

    #[inline(always)]
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Out {
        if DOT {
            // SAFETY: the token says that the processor has these instructions.
            unsafe { enable_dot(kernel, Neon(())) }
        } else {
            // SAFETY: as above.
            unsafe { enable_neon(kernel, Neon(())) }
        }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        // SAFETY: the token stands for the instructions.
        unsafe { [vdupq_n_f32(x); 2] }
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Self::F {
        // SAFETY: the token stands for the instructions, the caller lets us read LANES floats.
        unsafe { [vld1q_f32(from), vld1q_f32(from.add(4))] }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, v: Self::F) {
        // SAFETY: the token stands for the instructions, the caller lets us write LANES floats.
        unsafe {
            vst1q_f32(to, v[0]);
            vst1q_f32(to.add(4), v[1]);
        }
    }
    #[inline(always)]
    unsafe fn load_f16(self, from: *const u16) -> Self::F {
        // SAFETY: the token stands for the instructions, the caller lets us read LANES half floats.
        unsafe {
            let halves = vreinterpretq_f16_u16(vld1q_u16(from));
            [vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)]
        }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, from: *const u16) -> Self::F {
        // SAFETY: the token stands for the instructions, the caller lets us read LANES brain floats.
        unsafe {
            let bits = vld1q_u16(from);
            let (low, high) = (vshll_n_u16::<16>(vget_low_u16(bits)), vshll_high_n_u16::<16>(bits));
            [vreinterpretq_f32_u32(low), vreinterpretq_f32_u32(high)]
        }
    }
    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16, v: Self::F) {
        // SAFETY: the token stands for the instructions, the caller lets us write LANES half floats.
        unsafe { vst1q_u16(to, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(v[0]), v[1]))) }
    }
    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: the token stands for the instructions.
        unsafe { [vaddq_f32(a[0], b[0]), vaddq_f32(a[1], b[1])] }
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: the token stands for the instructions.
        unsafe { [vsubq_f32(a[0], b[0]), vsubq_f32(a[1], b[1])] }
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: the token stands for the instructions.
        unsafe { [vmulq_f32(a[0], b[0]), vmulq_f32(a[1], b[1])] }
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: the token stands for the instructions.
        unsafe { [vdivq_f32(a[0], b[0]), vdivq_f32(a[1], b[1])] }
    }
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: the token stands for the instructions.
        unsafe { [vmaxq_f32(a[0], b[0]), vmaxq_f32(a[1], b[1])] }
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: the token stands for the instructions.
        unsafe { [vminq_f32(a[0], b[0]), vminq_f32(a[1], b[1])] }
    }
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        // SAFETY: the token stands for the instructions.
        unsafe { [vfmaq_f32(c[0], a[0], b[0]), vfmaq_f32(c[1], a[1], b[1])] }
    }
    #[inline(always)]
    fn abs(self, a: Self::F) -> Self::F {
        // SAFETY: the token stands for the instructions.
        unsafe { [vabsq_f32(a[0]), vabsq_f32(a[1])] }
    }
    #[inline(always)]
    fn keep_between(self, x: Self::F, at: Self::F, first: Self::F, end: Self::F) -> Self::F {
        let mut kept = self.splat(f32::NEG_INFINITY);
        for i in 0..2 {
            // SAFETY: the token stands for the instructions.
            unsafe {
                let seen = vandq_u32(vcleq_f32(first[i], at[i]), vcltq_f32(at[i], end[i]));
                kept[i] = vbslq_f32(seen, x[i], kept[i]);
            }
        }
        kept
    }
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        // SAFETY: the token stands for the instructions.
        unsafe { [vrndnq_f32(a[0]), vrndnq_f32(a[1])] }
    }
    #[inline(always)]
    fn pow2(self, n: Self::F) -> Self::F {
        let [low, high] = self.to_i(n);
        // SAFETY: the token stands for the instructions.
        unsafe {
            let bias = vdupq_n_s32(127);
            let (low, high) = (vshlq_n_s32::<23>(vaddq_s32(low, bias)), vshlq_n_s32::<23>(vaddq_s32(high, bias)));
            [vreinterpretq_f32_s32(low), vreinterpretq_f32_s32(high)]
        }
    }
    #[inline(always)]
    fn sum(self, a: Self::F) -> f32 {
        // SAFETY: the token stands for the instructions.
        unsafe {
            let a = vaddq_f32(a[0], a[1]);
            let a = vadd_f32(vget_low_f32(a), vget_high_f32(a));
            vget_lane_f32::<0>(a) + vget_lane_f32::<1>(a)
        }
    }
    #[inline(always)]
    fn max_lane(self, a: Self::F) -> f32 {
        // SAFETY: the token stands for the instructions.
        unsafe { vmaxvq_f32(vmaxq_f32(a[0], a[1])) }
    }

    #[inline(always)]
    fn to_f(self, a: Self::I) -> Self::F {
        // SAFETY: the token stands for the instructions.
        unsafe { [vcvtq_f32_s32(a[0]), vcvtq_f32_s32(a[1])] }
    }
    #[inline(always)]
    fn to_i(self, a: Self::F) -> Self::I {
        // SAFETY: the token stands for the instructions.
        unsafe { [vcvtnq_s32_f32(a[0]), vcvtnq_s32_f32(a[1])] }
    }
    #[inline(always)]
    fn zero_i(self) -> Self::I {
        self.splat_i(0)
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        // SAFETY: the token stands for the instructions.
        unsafe { [vdupq_n_s32(x); 2] }
    }
    #[inline(always)]
    unsafe fn load_i(self, from: *const u8) -> Self::I {
        // SAFETY: the token stands for the instructions, the caller lets us read 4 · LANES bytes.
        unsafe { [vld1q_u8(from), vld1q_u8(from.add(16))].map(|v| vreinterpretq_s32_u8(v)) }
    }
    #[inline(always)]
    unsafe fn store_i(self, to: *mut i32, v: Self::I) {
        // SAFETY: the token stands for the instructions, the caller lets us write LANES integers.
        unsafe {
            vst1q_s32(to, v[0]);
            vst1q_s32(to.add(4), v[1]);
        }
    }
    #[inline(always)]
    unsafe fn splat4(self, from: *const u8) -> Self::I {
        // SAFETY: the caller lets us read four bytes.
        self.splat_i(unsafe { from.cast::<i32>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn splat8(self, from: *const u8) -> Self::I {
        // SAFETY: the token stands for the instructions, the caller lets us read eight bytes.
        unsafe { [vreinterpretq_s32_s64(vdupq_n_s64(from.cast::<i64>().read_unaligned())); 2] }
    }
    #[inline(always)]
    unsafe fn splat16(self, from: *const u8) -> Self::I {
        // SAFETY: the token stands for the instructions, the caller lets us read 16 bytes.
        unsafe { [vreinterpretq_s32_u8(vld1q_u8(from)); 2] }
    }
    #[inline(always)]
    fn dot(self, acc: Self::I, u: Self::I, x: Self::I) -> Self::I {
        // At most 127, so signed and unsigned are the same.
        self.dot_wide(acc, u, x)
    }
    #[inline(always)]
    fn dot_wide(self, acc: Self::I, w: Self::I, x: Self::I) -> Self::I {
        let mut sums = acc;
        for i in 0..2 {
            // SAFETY: the token stands for the instructions. |w| or |x| is at most 127, the other at most 128.
            unsafe {
                let (w, x) = (vreinterpretq_s8_s32(w[i]), vreinterpretq_s8_s32(x[i]));
                sums[i] = if DOT { sdot(sums[i], w, x) } else { pairwise_dot(sums[i], w, x) };
            }
        }
        sums
    }
    #[inline(always)]
    fn join(self, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: the token stands for the instructions.
        unsafe { [vaddq_s32(vshlq_n_s32::<8>(a[0]), b[0]), vaddq_s32(vshlq_n_s32::<8>(a[1]), b[1])] }
    }
    #[inline(always)]
    fn madd(self, a: Self::I, b: Self::I) -> Self::I {
        let mut sums = a;
        for i in 0..2 {
            // SAFETY: the token stands for the instructions.
            unsafe {
                let (a, b) = (vreinterpretq_s16_s32(a[i]), vreinterpretq_s16_s32(b[i]));
                sums[i] = vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b));
            }
        }
        sums
    }

    #[inline(always)]
    fn half(self, bits: u16) -> f32 {
        // SAFETY: the token stands for the instructions.
        unsafe { vgetq_lane_f32::<0>(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits)))) }
    }
    #[inline(always)]
    unsafe fn halves8(self, bits: [u16; 8], to: *mut f32) {
        // SAFETY: the array has eight; the caller lets us write eight.
        unsafe { self.store(to, self.load_f16(bits.as_ptr())) }
    }
    #[inline(always)]
    unsafe fn scale8(self, bytes: u64, minus: f32, factor: f32, to: *mut f32) {
        // SAFETY: the token stands for the instructions; the caller lets us write eight.
        unsafe {
            let levels = vmovl_u8(vcreate_u8(bytes));
            let levels = [vmovl_u16(vget_low_u16(levels)), vmovl_high_u16(levels)].map(|v| vcvtq_f32_u32(v));
            self.store(to, self.mul(self.sub(levels, self.splat(minus)), self.splat(factor)));
        }
    }
    #[inline(always)]
    unsafe fn scale_groups(self, group: usize, d: *const f32, x_d: *const f32) -> [f32; 16] {
        let mut scales = [0.0; 16];
        for at in (0..256 / group).step_by(Self::LANES) {
            // SAFETY: 8 or 16 scales on both sides; room for 16.
            unsafe { self.store(scales.as_mut_ptr().add(at), self.mul(self.load(d.add(at)), self.load(x_d.add(at)))) }
        }
        scales
    }
    #[inline(always)]
    fn spread(self, group: usize, scales: [f32; 16], v: usize) -> Self::F {
        if group == 32 {
            return self.splat(scales[v]);
        }
        // SAFETY: the token stands for the instructions. A vector covers two groups of 16.
        unsafe { [vdupq_n_f32(scales[2 * v]), vdupq_n_f32(scales[2 * v + 1])] }
    }
    #[inline(always)]
    unsafe fn add_groups(self, group: usize, m: *const f32, x: *const f32, acc: Self::F) -> Self::F {
        let mut acc = acc;
        for at in (0..256 / group).step_by(Self::LANES) {
            // SAFETY: 8 or 16 addends and as many sums.
            acc = unsafe { self.fma(self.load(m.add(at)), self.load(x.add(at)), acc) };
        }
        acc
    }

    #[inline(always)]
    unsafe fn load_b(self, from: *const u8) -> Self::B {
        // SAFETY: the caller lets us read 64 bytes.
        unsafe { self.load_b2(from, from.add(32)) }
    }
    #[inline(always)]
    unsafe fn load_b2(self, first: *const u8, second: *const u8) -> Self::B {
        // SAFETY: the token stands for the instructions, the caller lets us read 32 bytes twice.
        unsafe { [vld1q_u8(first), vld1q_u8(first.add(16)), vld1q_u8(second), vld1q_u8(second.add(16))] }
    }
    #[inline(always)]
    unsafe fn store_b(self, to: *mut u8, v: Self::B) {
        for (i, v) in v.into_iter().enumerate() {
            // SAFETY: the token stands for the instructions, the caller lets us write 64 bytes.
            unsafe { vst1q_u8(to.add(16 * i), v) }
        }
    }
    #[inline(always)]
    fn splat_b(self, x: u8) -> Self::B {
        // SAFETY: the token stands for the instructions.
        unsafe { [vdupq_n_u8(x); 4] }
    }
    #[inline(always)]
    fn and_b(self, a: Self::B, b: Self::B) -> Self::B {
        // SAFETY: the token stands for the instructions.
        unsafe { [vandq_u8(a[0], b[0]), vandq_u8(a[1], b[1]), vandq_u8(a[2], b[2]), vandq_u8(a[3], b[3])] }
    }
    #[inline(always)]
    fn or_b(self, a: Self::B, b: Self::B) -> Self::B {
        // SAFETY: the token stands for the instructions.
        unsafe { [vorrq_u8(a[0], b[0]), vorrq_u8(a[1], b[1]), vorrq_u8(a[2], b[2]), vorrq_u8(a[3], b[3])] }
    }
    #[inline(always)]
    fn xor_b(self, a: Self::B, b: Self::B) -> Self::B {
        // SAFETY: the token stands for the instructions.
        unsafe { [veorq_u8(a[0], b[0]), veorq_u8(a[1], b[1]), veorq_u8(a[2], b[2]), veorq_u8(a[3], b[3])] }
    }
    #[inline(always)]
    fn shr_b<const M: i32, const N: i32>(self, a: Self::B) -> Self::B {
        // SAFETY: the token stands for the instructions.
        unsafe { [right::<M>(a[0]), right::<M>(a[1]), right::<N>(a[2]), right::<N>(a[3])] }
    }
    #[inline(always)]
    fn shl_b<const M: i32, const N: i32>(self, a: Self::B) -> Self::B {
        // SAFETY: the token stands for the instructions.
        unsafe { [left::<M>(a[0]), left::<M>(a[1]), left::<N>(a[2]), left::<N>(a[3])] }
    }
    #[inline(always)]
    unsafe fn nibbles(self, first: *const u8, second: *const u8) -> Self::B {
        // SAFETY: the token stands for the instructions, the caller lets us read 16 bytes twice.
        unsafe {
            let (first, second, four) = (vld1q_u8(first), vld1q_u8(second), vdupq_n_u8(15));
            [vandq_u8(first, four), vshrq_n_u8::<4>(first), vandq_u8(second, four), vshrq_n_u8::<4>(second)]
        }
    }
    #[inline(always)]
    fn lookup(self, index: Self::B, table: &[u8; 16]) -> Self::B {
        // SAFETY: the token stands for the instructions; the table has 16 bytes.
        unsafe {
            let table = vld1q_u8(table.as_ptr());
            index.map(|index| vqtbl1q_u8(table, index))
        }
    }
    #[inline(always)]
    fn bits(self, bits: u64) -> Self::B {
        // SAFETY: the token stands for the instructions. Byte `i` gets the byte of `bits` that holds bit `i`, and is
        // tested for that bit.
        unsafe {
            let bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
            let [a, b, c, d, e, f, g, h] = bits.to_le_bytes().map(|byte| vdup_n_u8(byte));
            let bytes = [vcombine_u8(a, b), vcombine_u8(c, d), vcombine_u8(e, f), vcombine_u8(g, h)];
            bytes.map(|bytes| vandq_u8(vtstq_u8(bytes, bit), vdupq_n_u8(16)))
        }
    }
    #[inline(always)]
    unsafe fn transpose(self, from: *const u8, from_stride: usize, to: *mut u8, to_stride: usize) {
        for (row, unit) in [(0, 0), (0, 4), (4, 0), (4, 4)] {
            // SAFETY: the token stands for the instructions; eight rows of 32 bytes on both sides.
            unsafe {
                let (from, to) = (from.add(row * from_stride + 4 * unit), to.add(unit * to_stride + 4 * row));
                let mut rows = [vdupq_n_u32(0); 4];
                for i in 0..4 {
                    rows[i] = vreinterpretq_u32_u8(vld1q_u8(from.add(i * from_stride)));
                }
                let turned = turn(rows);
                for i in 0..4 {
                    vst1q_u8(to.add(i * to_stride), vreinterpretq_u8_u32(turned[i]));
                }
            }
        }
    }
    #[inline(always)]
    fn prefetch(self, at: *const u8) {
        // SAFETY: a prefetch never faults and changes nothing that can be seen.
        unsafe { asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(readonly, nostack, preserves_flags)) }
    }
}
