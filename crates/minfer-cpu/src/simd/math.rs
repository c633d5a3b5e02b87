//! Functions of vectors: the exponential and what follows from it. The same code on every level.

use super::Simd;

/// `e^x` with a relative error below 3e-7 for `x` in `-87..=88`; clamped outside, except that below -87 it is 0.
///
/// `x = n ln 2 + r` with `|r| <= ln 2 / 2`, in two steps so that `r` keeps its digits (Cody and Waite 1980), then the
/// Taylor polynomial of degree 7 of `e^r`, whose remainder is below 1e-8.
#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::F) -> S::F {
    // Constants first: where x is NaN, both give x.
    let clamped = s.max(s.splat(-87.0), s.min(s.splat(88.0), x));
    let n = s.round(s.mul(clamped, s.splat(std::f32::consts::LOG2_E)));
    // ln 2 in a part of few digits, so that its product with n is exact, and the rest.
    let r = s.fma(n, s.splat(-0.693_359_4), clamped);
    let r = s.fma(n, s.splat(2.121_944_4e-4), r);
    let mut p = s.splat(1.0 / 5040.0);
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = s.fma(p, r, s.splat(c));
    }
    let e = s.mul(p, s.pow2(n));
    // 1 where x >= -87, else 0: the exponentials of masked scores vanish exactly.
    let below = s.min(s.splat(TWO_TO_MINUS_100), s.sub(clamped, x));
    s.mul(e, s.fma(s.max(s.splat(0.0), below), s.splat(-TWO_TO_100), s.splat(1.0)))
}

const TWO_TO_100: f32 = f32::from_bits((127 + 100) << 23);
const TWO_TO_MINUS_100: f32 = f32::from_bits((127 - 100) << 23);

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(s: S, x: S::F) -> S::F {
    let one = s.splat(1.0);
    s.div(one, s.add(one, exp(s, s.sub(s.splat(0.0), x))))
}

/// `x · sigmoid(x)`.
#[inline(always)]
pub(crate) fn silu<S: Simd>(s: S, x: S::F) -> S::F {
    s.mul(x, sigmoid(s, x))
}

/// `0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))`, as `x · sigmoid` of twice the argument: no digits are lost near zero.
#[inline(always)]
pub(crate) fn gelu_tanh<S: Simd>(s: S, x: S::F) -> S::F {
    // 2 √(2/π).
    const FACTOR: f32 = std::f32::consts::FRAC_2_SQRT_PI * std::f32::consts::SQRT_2;
    let cubic = s.fma(s.mul(x, x), s.splat(0.044_715), s.splat(1.0));
    s.mul(x, sigmoid(s, s.mul(s.mul(x, cubic), s.splat(FACTOR))))
}
