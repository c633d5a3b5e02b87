//! The vector machine in 256 bits: AVX2, FMA and F16C, with AVX-VNNI dot products if `VNNI`.

use super::{Kernel, Simd, SimdLevel};
use core::arch::x86_64::*;

/// A token: exists only where the processor has AVX2, FMA and F16C, and AVX-VNNI if `VNNI`.
#[derive(Clone, Copy)]
pub(crate) struct V256<const VNNI: bool>(());

impl<const VNNI: bool> V256<VNNI> {
    /// The token, if the processor has the instructions.
    pub(super) fn new() -> Option<Self> {
        let level = if VNNI { SimdLevel::AvxVnni } else { SimdLevel::Avx2 };
        level.is_available().then_some(Self(()))
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline(never)]
fn enable_avx2<K: Kernel>(kernel: K, s: V256<false>) -> K::Out {
    kernel.call(s)
}

#[target_feature(enable = "avx2,fma,f16c,avxvnni")]
#[inline(never)]
fn enable_avxvnni<K: Kernel>(kernel: K, s: V256<true>) -> K::Out {
    kernel.call(s)
}

impl<const VNNI: bool> Simd for V256<VNNI> {
    type F = __m256;
    type I = __m256i;
    type B = [__m256i; 2];
    type Scales = [__m256; 2];
    const LANES: usize = 8;
    const WIDE_BIAS: u8 = if VNNI { 128 } else { 0 };
    const PORTABLE: bool = false;

    #[inline(always)]
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Out {
        if VNNI {
            // SAFETY: the token says that the processor has these instructions.
            unsafe { enable_avxvnni(kernel, V256(())) }
        } else {
            // SAFETY: as above.
            unsafe { enable_avx2(kernel, V256(())) }
        }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m256 {
        // SAFETY: the token stands for the instructions, the caller lets us read LANES floats.
        unsafe { _mm256_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, v: __m256) {
        // SAFETY: the token stands for the instructions, the caller lets us write LANES floats.
        unsafe { _mm256_storeu_ps(to, v) }
    }
    #[inline(always)]
    unsafe fn load_f16(self, from: *const u16) -> __m256 {
        // SAFETY: the token stands for the instructions, the caller lets us read LANES half floats.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, from: *const u16) -> __m256 {
        // SAFETY: the token stands for the instructions, the caller lets us read LANES brain floats.
        unsafe {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
        }
    }
    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16, v: __m256) {
        // SAFETY: the token stands for the instructions, the caller lets us write LANES half floats.
        unsafe { _mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v)) }
    }
    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_div_ps(a, b) }
    }
    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_max_ps(a, b) }
    }
    #[inline(always)]
    fn min(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_min_ps(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn abs(self, a: __m256) -> __m256 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), a) }
    }
    #[inline(always)]
    fn keep_between(self, x: __m256, at: __m256, first: __m256, end: __m256) -> __m256 {
        // SAFETY: the token stands for the instructions.
        unsafe {
            let seen = _mm256_and_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(first, at), _mm256_cmp_ps::<_CMP_LT_OQ>(at, end));
            _mm256_blendv_ps(_mm256_set1_ps(f32::NEG_INFINITY), x, seen)
        }
    }
    #[inline(always)]
    fn round(self, a: __m256) -> __m256 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }
    #[inline(always)]
    fn pow2(self, n: __m256) -> __m256 {
        // SAFETY: the token stands for the instructions.
        unsafe {
            let exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent))
        }
    }
    #[inline(always)]
    fn sum(self, a: __m256) -> f32 {
        // SAFETY: the token stands for the instructions.
        unsafe {
            let a = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_add_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_add_ss(a, _mm_shuffle_ps::<1>(a, a)))
        }
    }
    #[inline(always)]
    fn max_lane(self, a: __m256) -> f32 {
        // SAFETY: the token stands for the instructions.
        unsafe {
            let a = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_max_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_max_ss(a, _mm_shuffle_ps::<1>(a, a)))
        }
    }

    #[inline(always)]
    fn to_f(self, a: __m256i) -> __m256 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_cvtepi32_ps(a) }
    }
    #[inline(always)]
    fn to_i(self, a: __m256) -> __m256i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_cvtps_epi32(a) }
    }
    #[inline(always)]
    fn zero_i(self) -> __m256i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_setzero_si256() }
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> __m256i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_set1_epi32(x) }
    }
    #[inline(always)]
    unsafe fn load_i(self, from: *const u8) -> __m256i {
        // SAFETY: the token stands for the instructions, the caller lets us read 4 · LANES bytes.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store_i(self, to: *mut i32, v: __m256i) {
        // SAFETY: the token stands for the instructions, the caller lets us write LANES integers.
        unsafe { _mm256_storeu_si256(to.cast(), v) }
    }
    #[inline(always)]
    unsafe fn splat4(self, from: *const u8) -> __m256i {
        // SAFETY: the token stands for the instructions, the caller lets us read four bytes.
        unsafe { _mm256_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn splat8(self, from: *const u8) -> __m256i {
        // SAFETY: the token stands for the instructions, the caller lets us read eight bytes.
        unsafe { _mm256_set1_epi64x(from.cast::<i64>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn splat16(self, from: *const u8) -> __m256i {
        // SAFETY: the token stands for the instructions, the caller lets us read 16 bytes.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(from.cast())) }
    }
    #[inline(always)]
    fn dot(self, acc: __m256i, u: __m256i, x: __m256i) -> __m256i {
        // SAFETY: the token stands for the instructions. Pairs stay below 2 · 127 · 128, so that nothing saturates.
        unsafe {
            if VNNI {
                _mm256_dpbusd_avx_epi32(acc, u, x)
            } else {
                _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(u, x), _mm256_set1_epi16(1)))
            }
        }
    }
    #[inline(always)]
    fn dot_wide(self, acc: __m256i, w: __m256i, x: __m256i) -> __m256i {
        if VNNI {
            return self.dot(acc, w, x);
        }
        // SAFETY: the token stands for the instructions. |w| is at most 128 and |x| at most 127: no pair saturates.
        unsafe { self.dot(acc, _mm256_abs_epi8(w), _mm256_sign_epi8(x, w)) }
    }
    #[inline(always)]
    fn join(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_add_epi32(_mm256_slli_epi32::<8>(a), b) }
    }
    #[inline(always)]
    fn madd(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm256_madd_epi16(a, b) }
    }

    #[inline(always)]
    fn half(self, bits: u16) -> f32 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(bits)))) }
    }
    #[inline(always)]
    unsafe fn halves8(self, bits: [u16; 8], to: *mut f32) {
        // SAFETY: the token stands for the instructions; the caller lets us write eight.
        unsafe { _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_set_epi64x(four(&bits[4..]), four(&bits[..4])))) }
    }
    #[inline(always)]
    unsafe fn scale8(self, bytes: u64, minus: f32, factor: f32, to: *mut f32) {
        // SAFETY: the token stands for the instructions; the caller lets us write eight.
        unsafe {
            let levels = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes as i64)));
            _mm256_storeu_ps(to, _mm256_mul_ps(_mm256_sub_ps(levels, _mm256_set1_ps(minus)), _mm256_set1_ps(factor)));
        }
    }
    #[inline(always)]
    unsafe fn scale_groups(self, group: usize, d: *const f32, x_d: *const f32) -> [__m256; 2] {
        // SAFETY: the token stands for the instructions; 8 or 16 scales on both sides.
        unsafe {
            let low = _mm256_mul_ps(_mm256_loadu_ps(d), _mm256_loadu_ps(x_d));
            if group == 32 {
                return [low; 2];
            }
            [low, _mm256_mul_ps(_mm256_loadu_ps(d.add(8)), _mm256_loadu_ps(x_d.add(8)))]
        }
    }
    #[inline(always)]
    fn spread(self, group: usize, scales: [__m256; 2], v: usize) -> __m256 {
        // SAFETY: the token stands for the instructions. A vector covers one group of 32 or two of 16.
        unsafe {
            if group == 32 {
                return _mm256_permutevar8x32_ps(scales[0], _mm256_set1_epi32(v as i32));
            }
            let (first, second) = ((2 * v % 8) as i32, (2 * v % 8 + 1) as i32);
            let index = _mm256_setr_epi32(first, first, first, first, second, second, second, second);
            _mm256_permutevar8x32_ps(scales[v / 4], index)
        }
    }
    #[inline(always)]
    unsafe fn add_groups(self, group: usize, m: *const f32, x: *const f32, acc: __m256) -> __m256 {
        // SAFETY: the token stands for the instructions; 8 or 16 addends and as many sums.
        unsafe {
            let acc = _mm256_fmadd_ps(_mm256_loadu_ps(m), _mm256_loadu_ps(x), acc);
            if group == 32 {
                return acc;
            }
            _mm256_fmadd_ps(_mm256_loadu_ps(m.add(8)), _mm256_loadu_ps(x.add(8)), acc)
        }
    }

    #[inline(always)]
    unsafe fn load_b(self, from: *const u8) -> Self::B {
        // SAFETY: the caller lets us read 64 bytes.
        unsafe { self.load_b2(from, from.add(32)) }
    }
    #[inline(always)]
    unsafe fn load_b2(self, first: *const u8, second: *const u8) -> Self::B {
        // SAFETY: the token stands for the instructions, the caller lets us read 32 bytes twice.
        unsafe { [_mm256_loadu_si256(first.cast()), _mm256_loadu_si256(second.cast())] }
    }
    #[inline(always)]
    unsafe fn store_b(self, to: *mut u8, v: Self::B) {
        // SAFETY: the token stands for the instructions, the caller lets us write 64 bytes.
        unsafe {
            _mm256_storeu_si256(to.cast(), v[0]);
            _mm256_storeu_si256(to.add(32).cast(), v[1]);
        }
    }
    #[inline(always)]
    fn splat_b(self, x: u8) -> Self::B {
        // SAFETY: the token stands for the instructions.
        unsafe { [_mm256_set1_epi8(x as i8); 2] }
    }
    #[inline(always)]
    fn and_b(self, a: Self::B, b: Self::B) -> Self::B {
        // SAFETY: the token stands for the instructions.
        unsafe { [_mm256_and_si256(a[0], b[0]), _mm256_and_si256(a[1], b[1])] }
    }
    #[inline(always)]
    fn or_b(self, a: Self::B, b: Self::B) -> Self::B {
        // SAFETY: the token stands for the instructions.
        unsafe { [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])] }
    }
    #[inline(always)]
    fn xor_b(self, a: Self::B, b: Self::B) -> Self::B {
        // SAFETY: the token stands for the instructions.
        unsafe { [_mm256_xor_si256(a[0], b[0]), _mm256_xor_si256(a[1], b[1])] }
    }
    #[inline(always)]
    fn shr_b<const M: i32, const N: i32>(self, a: Self::B) -> Self::B {
        // SAFETY: the token stands for the instructions.
        unsafe { [_mm256_srli_epi16::<M>(a[0]), _mm256_srli_epi16::<N>(a[1])] }
    }
    #[inline(always)]
    fn shl_b<const M: i32, const N: i32>(self, a: Self::B) -> Self::B {
        // SAFETY: the token stands for the instructions.
        unsafe { [_mm256_slli_epi16::<M>(a[0]), _mm256_slli_epi16::<N>(a[1])] }
    }
    #[inline(always)]
    unsafe fn nibbles(self, first: *const u8, second: *const u8) -> Self::B {
        [first, second].map(|from| {
            // SAFETY: the token stands for the instructions, the caller lets us read 16 bytes twice.
            unsafe {
                let bytes = _mm_loadu_si128(from.cast());
                _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16::<4>(bytes), bytes), _mm256_set1_epi8(15))
            }
        })
    }
    #[inline(always)]
    fn lookup(self, index: Self::B, table: &[u8; 16]) -> Self::B {
        // SAFETY: the token stands for the instructions; the table has 16 bytes.
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            [_mm256_shuffle_epi8(table, index[0]), _mm256_shuffle_epi8(table, index[1])]
        }
    }
    #[inline(always)]
    fn bits(self, bits: u64) -> Self::B {
        [bits as u32, (bits >> 32) as u32].map(|bits| {
            // SAFETY: the token stands for the instructions. Byte `i` gets the byte of `bits` that holds bit `i`, and
            // keeps only that bit.
            unsafe {
                let spread = _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
                let bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(bits as i32), spread);
                let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
                let set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
                _mm256_and_si256(set, _mm256_set1_epi8(16))
            }
        })
    }
    #[inline(always)]
    unsafe fn transpose(self, from: *const u8, from_stride: usize, to: *mut u8, to_stride: usize) {
        // SAFETY: the token stands for the instructions; eight rows of 32 bytes on both sides.
        unsafe {
            let mut r = [_mm256_setzero_ps(); 8];
            for (i, r) in r.iter_mut().enumerate() {
                *r = _mm256_loadu_ps(from.add(i * from_stride).cast());
            }
            // Pairs of rows, then quads of units, then halves.
            let mut t = r;
            for i in 0..4 {
                t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
                t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
            }
            let mut q = t;
            for i in 0..2 {
                q[4 * i] = _mm256_shuffle_ps::<0x44>(t[4 * i], t[4 * i + 2]);
                q[4 * i + 1] = _mm256_shuffle_ps::<0xEE>(t[4 * i], t[4 * i + 2]);
                q[4 * i + 2] = _mm256_shuffle_ps::<0x44>(t[4 * i + 1], t[4 * i + 3]);
                q[4 * i + 3] = _mm256_shuffle_ps::<0xEE>(t[4 * i + 1], t[4 * i + 3]);
            }
            for i in 0..4 {
                let low = _mm256_permute2f128_ps::<0x20>(q[i], q[i + 4]);
                let high = _mm256_permute2f128_ps::<0x31>(q[i], q[i + 4]);
                _mm256_storeu_ps(to.add(i * to_stride).cast(), low);
                _mm256_storeu_ps(to.add((i + 4) * to_stride).cast(), high);
            }
        }
    }
    #[inline(always)]
    fn prefetch(self, at: *const u8) {
        // SAFETY: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}

/// Four halves side by side. Put together by the scalar units: the ports that shuffle vectors have enough to do.
#[inline(always)]
pub(super) fn four(halves: &[u16]) -> i64 {
    halves.iter().rev().fold(0, |bits, half| bits << 16 | i64::from(*half))
}
