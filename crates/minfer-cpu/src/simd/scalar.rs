//! The vector machine in plain code: vectors of eight that a compiler may map to whatever the target has at least.

use super::{Kernel, Simd};
use half::{bf16, f16};

/// Runs anywhere.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

const N: usize = 8;
type F = [f32; N];
type I = [i32; N];
type B = [u8; 64];

/// On its own, as on the other levels: all of them in one function take a compiler minutes.
#[inline(never)]
fn run<K: Kernel>(kernel: K) -> K::Out {
    kernel.call(Scalar)
}

#[inline(always)]
fn map(a: F, b: F, f: impl Fn(f32, f32) -> f32) -> F {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Simd for Scalar {
    type F = F;
    type I = I;
    type B = B;
    type Scales = [f32; 16];
    const LANES: usize = N;
    const WIDE_BIAS: u8 = 0;
    const PORTABLE: bool = true;

    #[inline(always)]
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Out {
        run(kernel)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> F {
        [x; N]
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> F {
        // SAFETY: the caller lets us read LANES floats.
        unsafe { from.cast::<F>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, v: F) {
        // SAFETY: the caller lets us write LANES floats.
        unsafe { to.cast::<F>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn load_f16(self, from: *const u16) -> F {
        // SAFETY: the caller lets us read LANES half floats.
        let bits = unsafe { from.cast::<[u16; N]>().read_unaligned() };
        bits.map(|b| f16::from_bits(b).to_f32_const())
    }
    #[inline(always)]
    unsafe fn load_bf16(self, from: *const u16) -> F {
        // SAFETY: the caller lets us read LANES brain floats.
        let bits = unsafe { from.cast::<[u16; N]>().read_unaligned() };
        bits.map(|b| bf16::from_bits(b).to_f32_const())
    }
    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16, v: F) {
        // SAFETY: the caller lets us write LANES half floats.
        unsafe { to.cast::<[u16; N]>().write_unaligned(v.map(|x| f16::from_f32_const(x).to_bits())) }
    }
    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        map(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        map(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        map(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        map(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        map(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, a: F, b: F) -> F {
        map(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    fn abs(self, a: F) -> F {
        a.map(f32::abs)
    }
    #[inline(always)]
    fn keep_between(self, x: F, at: F, first: F, end: F) -> F {
        std::array::from_fn(|i| if first[i] <= at[i] && at[i] < end[i] { x[i] } else { f32::NEG_INFINITY })
    }
    #[inline(always)]
    fn round(self, a: F) -> F {
        a.map(f32::round_ties_even)
    }
    #[inline(always)]
    fn pow2(self, n: F) -> F {
        n.map(|n| f32::from_bits(((n as i32 + 127) as u32) << 23))
    }
    #[inline(always)]
    fn sum(self, a: F) -> f32 {
        ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
    }
    #[inline(always)]
    fn max_lane(self, a: F) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, |m, x| if x > m { x } else { m })
    }

    #[inline(always)]
    fn to_f(self, a: I) -> F {
        a.map(|x| x as f32)
    }
    #[inline(always)]
    fn to_i(self, a: F) -> I {
        a.map(|x| x.round_ties_even() as i32)
    }
    #[inline(always)]
    fn zero_i(self) -> I {
        [0; N]
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> I {
        [x; N]
    }
    #[inline(always)]
    unsafe fn load_i(self, from: *const u8) -> I {
        // SAFETY: the caller lets us read 4 · LANES bytes.
        unsafe { from.cast::<I>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store_i(self, to: *mut i32, v: I) {
        // SAFETY: the caller lets us write LANES integers.
        unsafe { to.cast::<I>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn splat4(self, from: *const u8) -> I {
        // SAFETY: the caller lets us read four bytes.
        [unsafe { from.cast::<i32>().read_unaligned() }; N]
    }
    #[inline(always)]
    unsafe fn splat8(self, from: *const u8) -> I {
        // SAFETY: the caller lets us read eight bytes.
        let lanes = unsafe { from.cast::<[i32; 2]>().read_unaligned() };
        std::array::from_fn(|i| lanes[i % 2])
    }
    #[inline(always)]
    unsafe fn splat16(self, from: *const u8) -> I {
        // SAFETY: the caller lets us read 16 bytes.
        let lanes = unsafe { from.cast::<[i32; 4]>().read_unaligned() };
        std::array::from_fn(|i| lanes[i % 4])
    }
    #[inline(always)]
    fn dot(self, acc: I, u: I, x: I) -> I {
        // At most 127, so signed and unsigned are the same.
        self.dot_wide(acc, u, x)
    }
    #[inline(always)]
    fn dot_wide(self, acc: I, w: I, x: I) -> I {
        std::array::from_fn(|i| {
            let (w, x) = (w[i].to_le_bytes(), x[i].to_le_bytes());
            let product = |j: usize| i32::from(w[j] as i8) * i32::from(x[j] as i8);
            acc[i] + product(0) + product(1) + product(2) + product(3)
        })
    }
    #[inline(always)]
    fn join(self, a: I, b: I) -> I {
        std::array::from_fn(|i| (a[i] << 8) + b[i])
    }
    #[inline(always)]
    fn madd(self, a: I, b: I) -> I {
        let product = |a: i32, b: i32| (a as i16 as i32) * (b as i16 as i32) + (a >> 16) * (b >> 16);
        std::array::from_fn(|i| product(a[i], b[i]))
    }

    #[inline(always)]
    fn half(self, bits: u16) -> f32 {
        f16::from_bits(bits).to_f32_const()
    }
    #[inline(always)]
    unsafe fn halves8(self, bits: [u16; 8], to: *mut f32) {
        // SAFETY: the caller lets us write eight.
        unsafe { self.store(to, bits.map(|b| f16::from_bits(b).to_f32_const())) }
    }
    #[inline(always)]
    unsafe fn scale8(self, bytes: u64, minus: f32, factor: f32, to: *mut f32) {
        // SAFETY: the caller lets us write eight.
        unsafe { self.store(to, bytes.to_le_bytes().map(|b| (f32::from(b) - minus) * factor)) }
    }
    #[inline(always)]
    unsafe fn scale_groups(self, group: usize, d: *const f32, x_d: *const f32) -> [f32; 16] {
        let mut scales = [0.0; 16];
        for (g, scale) in scales.iter_mut().enumerate().take(256 / group) {
            // SAFETY: one scale per group on both sides.
            *scale = unsafe { *d.add(g) * *x_d.add(g) };
        }
        scales
    }
    #[inline(always)]
    fn spread(self, group: usize, scales: [f32; 16], v: usize) -> F {
        std::array::from_fn(|lane| scales[(v * 32 + lane * 4) / group])
    }
    #[inline(always)]
    unsafe fn add_groups(self, group: usize, m: *const f32, x: *const f32, acc: F) -> F {
        let mut acc = acc;
        for g in 0..256 / group {
            // SAFETY: one addend per group, and one sum.
            acc[g % 8] += unsafe { *m.add(g) * *x.add(g) };
        }
        acc
    }

    #[inline(always)]
    unsafe fn load_b(self, from: *const u8) -> B {
        // SAFETY: the caller lets us read 64 bytes.
        unsafe { from.cast::<B>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn load_b2(self, first: *const u8, second: *const u8) -> B {
        // SAFETY: the caller lets us read 32 bytes twice.
        let halves = unsafe { [first, second].map(|from| from.cast::<[u8; 32]>().read_unaligned()) };
        std::array::from_fn(|i| halves[i / 32][i % 32])
    }
    #[inline(always)]
    unsafe fn store_b(self, to: *mut u8, v: B) {
        // SAFETY: the caller lets us write 64 bytes.
        unsafe { to.cast::<B>().write_unaligned(v) }
    }
    #[inline(always)]
    fn splat_b(self, x: u8) -> B {
        [x; 64]
    }
    #[inline(always)]
    fn and_b(self, a: B, b: B) -> B {
        std::array::from_fn(|i| a[i] & b[i])
    }
    #[inline(always)]
    fn or_b(self, a: B, b: B) -> B {
        std::array::from_fn(|i| a[i] | b[i])
    }
    #[inline(always)]
    fn xor_b(self, a: B, b: B) -> B {
        std::array::from_fn(|i| a[i] ^ b[i])
    }
    #[inline(always)]
    fn shr_b<const M: i32, const N: i32>(self, a: B) -> B {
        std::array::from_fn(|i| if i < 32 { a[i] >> M } else { a[i] >> N })
    }
    #[inline(always)]
    fn shl_b<const M: i32, const N: i32>(self, a: B) -> B {
        std::array::from_fn(|i| if i < 32 { a[i] << M } else { a[i] << N })
    }
    #[inline(always)]
    unsafe fn nibbles(self, first: *const u8, second: *const u8) -> B {
        // SAFETY: the caller lets us read 16 bytes twice.
        let bytes = unsafe { [first, second].map(|from| from.cast::<[u8; 16]>().read_unaligned()) };
        std::array::from_fn(|i| bytes[i / 32][i % 16] >> (i / 16 % 2 * 4) & 15)
    }
    #[inline(always)]
    fn lookup(self, index: B, table: &[u8; 16]) -> B {
        index.map(|i| table[usize::from(i & 15)])
    }
    #[inline(always)]
    fn bits(self, bits: u64) -> B {
        std::array::from_fn(|i| ((bits >> i & 1) << 4) as u8)
    }
    #[inline(always)]
    unsafe fn transpose(self, from: *const u8, from_stride: usize, to: *mut u8, to_stride: usize) {
        for row in 0..N {
            for unit in 0..N {
                // SAFETY: LANES rows of LANES units on both sides, as the caller promises.
                unsafe {
                    let word = from.add(row * from_stride + unit * 4).cast::<u32>().read_unaligned();
                    to.add(unit * to_stride + row * 4).cast::<u32>().write_unaligned(word);
                }
            }
        }
    }
    #[inline(always)]
    fn prefetch(self, _at: *const u8) {}
}
