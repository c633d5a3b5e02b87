//! The vector machine in 512 bits: AVX-512 F, BW, VL, DQ and VNNI.

use super::avx2::four;
use super::{Kernel, Simd, SimdLevel};
use core::arch::x86_64::*;

/// A token: exists only where the processor has AVX-512 F, BW, VL, DQ and VNNI, AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub(crate) struct V512(());

impl V512 {
    /// The token, if the processor has the instructions.
    pub(super) fn new() -> Option<Self> {
        SimdLevel::Avx512.is_available().then_some(Self(()))
    }
}

#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
#[inline(never)]
fn enable<K: Kernel>(kernel: K, s: V512) -> K::Out {
    kernel.call(s)
}

impl Simd for V512 {
    type F = __m512;
    type I = __m512i;
    type B = __m512i;
    type Scales = __m512;
    const LANES: usize = 16;
    const WIDE_BIAS: u8 = 128;
    const PORTABLE: bool = false;

    #[inline(always)]
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Out {
        // SAFETY: the token says that the processor has these instructions.
        unsafe { enable(kernel, self) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m512 {
        // SAFETY: the token stands for the instructions, the caller lets us read LANES floats.
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, v: __m512) {
        // SAFETY: the token stands for the instructions, the caller lets us write LANES floats.
        unsafe { _mm512_storeu_ps(to, v) }
    }
    #[inline(always)]
    unsafe fn load_f16(self, from: *const u16) -> __m512 {
        // SAFETY: the token stands for the instructions, the caller lets us read LANES half floats.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, from: *const u16) -> __m512 {
        // SAFETY: the token stands for the instructions, the caller lets us read LANES brain floats.
        unsafe {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        }
    }
    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16, v: __m512) {
        // SAFETY: the token stands for the instructions, the caller lets us write LANES half floats.
        unsafe { _mm256_storeu_si256(to.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v)) }
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_min_ps(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn abs(self, a: __m512) -> __m512 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_abs_ps(a) }
    }
    #[inline(always)]
    fn keep_between(self, x: __m512, at: __m512, first: __m512, end: __m512) -> __m512 {
        // SAFETY: the token stands for the instructions.
        unsafe {
            let seen = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(first, at) & _mm512_cmp_ps_mask::<_CMP_LT_OQ>(at, end);
            _mm512_mask_blend_ps(seen, _mm512_set1_ps(f32::NEG_INFINITY), x)
        }
    }
    #[inline(always)]
    fn round(self, a: __m512) -> __m512 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }
    #[inline(always)]
    fn pow2(self, n: __m512) -> __m512 {
        // SAFETY: the token stands for the instructions.
        unsafe {
            let exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(exponent))
        }
    }
    #[inline(always)]
    fn sum(self, a: __m512) -> f32 {
        // SAFETY: the token stands for the instructions.
        unsafe {
            let a = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps::<1>(a));
            let a = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_add_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_add_ss(a, _mm_shuffle_ps::<1>(a, a)))
        }
    }
    #[inline(always)]
    fn max_lane(self, a: __m512) -> f32 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_reduce_max_ps(a) }
    }

    #[inline(always)]
    fn to_f(self, a: __m512i) -> __m512 {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_cvtepi32_ps(a) }
    }
    #[inline(always)]
    fn to_i(self, a: __m512) -> __m512i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_cvtps_epi32(a) }
    }
    #[inline(always)]
    fn zero_i(self) -> __m512i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> __m512i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_set1_epi32(x) }
    }
    #[inline(always)]
    unsafe fn load_i(self, from: *const u8) -> __m512i {
        // SAFETY: the token stands for the instructions, the caller lets us read 4 · LANES bytes.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store_i(self, to: *mut i32, v: __m512i) {
        // SAFETY: the token stands for the instructions, the caller lets us write LANES integers.
        unsafe { _mm512_storeu_si512(to.cast(), v) }
    }
    #[inline(always)]
    unsafe fn splat4(self, from: *const u8) -> __m512i {
        // SAFETY: the token stands for the instructions, the caller lets us read four bytes.
        unsafe { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn splat8(self, from: *const u8) -> __m512i {
        // SAFETY: the token stands for the instructions, the caller lets us read eight bytes.
        unsafe { _mm512_set1_epi64(from.cast::<i64>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn splat16(self, from: *const u8) -> __m512i {
        // SAFETY: the token stands for the instructions, the caller lets us read 16 bytes.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(from.cast())) }
    }
    #[inline(always)]
    fn dot(self, acc: __m512i, u: __m512i, x: __m512i) -> __m512i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_dpbusd_epi32(acc, u, x) }
    }
    #[inline(always)]
    fn dot_wide(self, acc: __m512i, w: __m512i, x: __m512i) -> __m512i {
        self.dot(acc, w, x)
    }
    #[inline(always)]
    fn join(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_add_epi32(_mm512_slli_epi32::<8>(a), b) }
    }
    #[inline(always)]
    fn madd(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_madd_epi16(a, b) }
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
    unsafe fn scale_groups(self, group: usize, d: *const f32, x_d: *const f32) -> __m512 {
        // SAFETY: the token stands for the instructions; 8 or 16 scales on both sides.
        unsafe {
            if group == 32 {
                return _mm512_castps256_ps512(_mm256_mul_ps(_mm256_loadu_ps(d), _mm256_loadu_ps(x_d)));
            }
            _mm512_mul_ps(_mm512_loadu_ps(d), _mm512_loadu_ps(x_d))
        }
    }
    #[inline(always)]
    fn spread(self, group: usize, scales: __m512, v: usize) -> __m512 {
        // SAFETY: the token stands for the instructions. A vector covers two groups of 32 or four of 16.
        unsafe {
            let index = if group == 32 {
                _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)
            } else {
                _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3)
            };
            let first = _mm512_set1_epi32((v * 64 / group) as i32);
            _mm512_permutexvar_ps(_mm512_add_epi32(index, first), scales)
        }
    }
    #[inline(always)]
    unsafe fn add_groups(self, group: usize, m: *const f32, x: *const f32, acc: __m512) -> __m512 {
        // SAFETY: the token stands for the instructions; 8 or 16 addends and as many sums.
        unsafe {
            if group == 32 {
                let (m, x) = (_mm256_loadu_ps(m), _mm256_loadu_ps(x));
                return _mm512_fmadd_ps(_mm512_zextps256_ps512(m), _mm512_zextps256_ps512(x), acc);
            }
            _mm512_fmadd_ps(_mm512_loadu_ps(m), _mm512_loadu_ps(x), acc)
        }
    }

    #[inline(always)]
    unsafe fn load_b(self, from: *const u8) -> __m512i {
        // SAFETY: the token stands for the instructions, the caller lets us read 64 bytes.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    unsafe fn load_b2(self, first: *const u8, second: *const u8) -> __m512i {
        // SAFETY: the token stands for the instructions, the caller lets us read 32 bytes twice.
        unsafe {
            let first = _mm512_castsi256_si512(_mm256_loadu_si256(first.cast()));
            _mm512_inserti64x4::<1>(first, _mm256_loadu_si256(second.cast()))
        }
    }
    #[inline(always)]
    unsafe fn store_b(self, to: *mut u8, v: __m512i) {
        // SAFETY: the token stands for the instructions, the caller lets us write 64 bytes.
        unsafe { _mm512_storeu_si512(to.cast(), v) }
    }
    #[inline(always)]
    fn splat_b(self, x: u8) -> __m512i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_set1_epi8(x as i8) }
    }
    #[inline(always)]
    fn and_b(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_and_si512(a, b) }
    }
    #[inline(always)]
    fn or_b(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_or_si512(a, b) }
    }
    #[inline(always)]
    fn xor_b(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_xor_si512(a, b) }
    }
    #[inline(always)]
    fn shr_b<const M: i32, const N: i32>(self, a: __m512i) -> __m512i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_srlv_epi16(a, halves16(M, N)) }
    }
    #[inline(always)]
    fn shl_b<const M: i32, const N: i32>(self, a: __m512i) -> __m512i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_sllv_epi16(a, halves16(M, N)) }
    }
    #[inline(always)]
    unsafe fn nibbles(self, first: *const u8, second: *const u8) -> __m512i {
        // SAFETY: the token stands for the instructions, the caller lets us read 16 bytes twice. Only loads bring bytes to
        // their places here: the port that shuffles is the one that everything else waits for.
        unsafe {
            let twice = _mm512_castsi256_si512(_mm256_broadcastsi128_si256(_mm_loadu_si128(first.cast())));
            let both = _mm512_mask_broadcast_i32x4(twice, 0xff00, _mm_loadu_si128(second.cast()));
            let shifts = _mm512_setr_epi64(0, 0, FOURS, FOURS, 0, 0, FOURS, FOURS);
            _mm512_and_si512(_mm512_srlv_epi16(both, shifts), _mm512_set1_epi8(15))
        }
    }
    #[inline(always)]
    fn lookup(self, index: __m512i, table: &[u8; 16]) -> __m512i {
        // SAFETY: the token stands for the instructions; the table has 16 bytes.
        unsafe {
            let table = _mm_loadu_si128(table.as_ptr().cast());
            _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), index)
        }
    }
    #[inline(always)]
    fn bits(self, bits: u64) -> __m512i {
        // SAFETY: the token stands for the instructions.
        unsafe { _mm512_maskz_set1_epi8(bits, 16) }
    }
    #[inline(always)]
    unsafe fn transpose(self, from: *const u8, from_stride: usize, to: *mut u8, to_stride: usize) {
        // SAFETY: the token stands for the instructions; 16 rows of 64 bytes on both sides.
        unsafe {
            let mut r = [_mm512_setzero_si512(); 16];
            for (i, r) in r.iter_mut().enumerate() {
                *r = _mm512_loadu_si512(from.add(i * from_stride).cast());
            }
            // Within 128-bit lanes: pairs of rows, then quads of units. `q[4 g + u]` then holds, in lane `l`, unit
            // `4 l + u` of rows `4 g .. 4 g + 4`.
            let mut t = r;
            for i in 0..8 {
                t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
                t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
            }
            let mut q = t;
            for g in 0..4 {
                q[4 * g] = _mm512_unpacklo_epi64(t[4 * g], t[4 * g + 2]);
                q[4 * g + 1] = _mm512_unpackhi_epi64(t[4 * g], t[4 * g + 2]);
                q[4 * g + 2] = _mm512_unpacklo_epi64(t[4 * g + 1], t[4 * g + 3]);
                q[4 * g + 3] = _mm512_unpackhi_epi64(t[4 * g + 1], t[4 * g + 3]);
            }
            // Across lanes: a 4 × 4 transpose of lanes for each `u`.
            for u in 0..4 {
                let low01 = _mm512_shuffle_i32x4::<0x44>(q[u], q[4 + u]);
                let high01 = _mm512_shuffle_i32x4::<0xEE>(q[u], q[4 + u]);
                let low23 = _mm512_shuffle_i32x4::<0x44>(q[8 + u], q[12 + u]);
                let high23 = _mm512_shuffle_i32x4::<0xEE>(q[8 + u], q[12 + u]);
                let lanes = [
                    _mm512_shuffle_i32x4::<0x88>(low01, low23),
                    _mm512_shuffle_i32x4::<0xDD>(low01, low23),
                    _mm512_shuffle_i32x4::<0x88>(high01, high23),
                    _mm512_shuffle_i32x4::<0xDD>(high01, high23),
                ];
                for (l, lane) in lanes.into_iter().enumerate() {
                    _mm512_storeu_si512(to.add((4 * l + u) * to_stride).cast(), lane);
                }
            }
        }
    }
    #[inline(always)]
    fn prefetch(self, at: *const u8) {
        // SAFETY: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}

/// 4 in each of four 16-bit lanes.
const FOURS: i64 = 0x0004_0004_0004_0004;

/// 16-bit lanes of `a` in the first half, of `b` in the second.
///
/// # Safety
/// AVX-512 is there.
#[inline(always)]
unsafe fn halves16(a: i32, b: i32) -> __m512i {
    // SAFETY: as promised by the caller.
    unsafe {
        let (a, b) = (_mm256_set1_epi16(a as i16), _mm256_set1_epi16(b as i16));
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b)
    }
}
