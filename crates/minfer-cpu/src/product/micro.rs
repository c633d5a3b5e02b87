//! The innermost loops: a panel of weight rows times a few rows of activations, all sums in registers.
//!
//! A panel holds `R · LANES` rows side by side, so that lanes are rows: one load gives the next element (or the next
//! four bytes) of `LANES` rows, one broadcast that of a token, and no sum ever crosses lanes.

use crate::simd::Simd;

/// Adds to `acc[t][r]` the dots of `n` floats: `x[t]`, whose elements are `x_stride` floats apart, with the columns of the
/// panel, whose rows of lanes are `panel_stride` floats apart.
///
/// # Safety
/// `n` floats, so far apart, are readable from each `x[t]`, and `R · LANES` from each of `n` rows of the panel.
#[inline(always)]
pub(crate) unsafe fn floats<S: Simd, const R: usize, const T: usize>(
    s: S,
    panel: *const f32,
    panel_stride: usize,
    x: [*const f32; T],
    x_stride: usize,
    n: usize,
    acc: &mut [[S::F; R]; T],
) {
    let mut sums = *acc;
    for k in 0..n {
        // SAFETY: as promised by the caller.
        unsafe {
            let mut w = [s.splat(0.0); R];
            for r in 0..R {
                w[r] = s.load(panel.add(k * panel_stride + r * S::LANES));
            }
            for t in 0..T {
                let x = s.splat(x[t].add(k * x_stride).read_unaligned());
                for r in 0..R {
                    sums[t][r] = s.fma(w[r], x, sums[t][r]);
                }
            }
        }
    }
    *acc = sums;
}

/// A panel of small integers, as [`super::gemm`] unpacks it.
#[derive(Clone, Copy)]
pub(crate) struct Ints {
    /// For each four columns, `R` vectors of `LANES` rows of four bytes.
    pub q: *const u8,
    /// For each group, `R · LANES` scales.
    pub d: *const f32,
    /// For each group, `R · LANES` addends.
    pub m: *const f32,
    /// Blocks of 32 columns.
    pub n_blocks: usize,
    /// What is subtracted from `q`.
    pub offset: i16,
}

/// The activations that meet the panel: addresses in the first token's row, and how far apart tokens are. Few addresses,
/// so that registers hold them.
#[derive(Clone, Copy)]
pub(crate) struct Tokens {
    /// Levels.
    pub q: *const u8,
    /// Scales.
    pub d: *const u8,
    /// Sums of levels.
    pub sums: *const u8,
    /// Bytes from one token to the next.
    pub token_bytes: usize,
    /// Bytes from a token's row to its second one, if there is one.
    pub second_row: usize,
}

/// Adds to `acc[t][r]` the dots of the panel with tokens' rows, group by group: the exact integer sum of a group, then
/// times both scales.
///
/// `G`: columns of a group. `MIN`: groups have addends (and no offset). `WIDE`: bytes use their full range. `FINE`: tokens
/// have a second row, whose scales are 1/256 of the first's.
///
/// # Safety
/// The panel has `n_blocks` blocks, and so have the rows of `T` tokens; if `FINE`, their second rows too.
#[inline(always)]
pub(crate) unsafe fn ints<
    S: Simd,
    const R: usize,
    const T: usize,
    const G: usize,
    const MIN: bool,
    const WIDE: bool,
    const FINE: bool,
>(
    s: S,
    panel: Ints,
    x: Tokens,
    acc: &mut [[S::F; R]; T],
) {
    let lanes = S::LANES;
    let mut totals = *acc;
    // Pairs of 16-bit factors for the two sums of a block: both where the group is the block, else the one of its half.
    let pair = |first: i16, second: i16| i32::from(second) << 16 | i32::from(first as u16);
    let factor = if MIN { 1 } else { panel.offset.wrapping_neg() };
    let factors = if G == 32 {
        [s.splat_i(pair(factor, factor)); 2]
    } else {
        [s.splat_i(pair(factor, 0)), s.splat_i(pair(0, factor))]
    };
    let tokens: [usize; T] = std::array::from_fn(|t| t * x.token_bytes);
    for block in 0..panel.n_blocks {
        let (q, d, levels) =
            (x.q.wrapping_add(block * 32), x.d.wrapping_add(block * 4), x.sums.wrapping_add(block * 4));
        if block % 2 == 0 {
            // The next tokens' rows are far apart and only read here: no prefetcher of the machine follows them.
            for t in tokens {
                s.prefetch(q.wrapping_add(T * x.token_bytes + t));
            }
        }
        for half in 0..32 / G {
            let group = block * (32 / G) + half;
            // SAFETY: block, group and columns are within the panel and the rows.
            unsafe {
                // A token's sum of levels in the group, times the factor.
                let level_sum = |t: usize, row: usize| s.madd(s.splat4(levels.add(row + tokens[t])), factors[half]);
                let init = |t: usize, row: usize| if MIN { s.zero_i() } else { level_sum(t, row) };
                let w = panel.q.add(group * G * R * lanes);
                let mut sums: [[S::I; R]; T] = std::array::from_fn(|t| [init(t, 0); R]);
                add_dots::<S, R, T, G, WIDE>(s, w, q.add(half * G), &tokens, &mut sums);
                if FINE {
                    for t in 0..T {
                        let init = init(t, x.second_row);
                        for r in 0..R {
                            sums[t][r] = s.join(sums[t][r], init);
                        }
                    }
                    add_dots::<S, R, T, G, WIDE>(s, w, q.add(x.second_row + half * G), &tokens, &mut sums);
                }
                let mut w_d = [s.splat(0.0); R];
                let mut w_m = [s.splat(0.0); R];
                for r in 0..R {
                    w_d[r] = s.load(panel.d.add((group * R + r) * lanes));
                    if MIN {
                        w_m[r] = s.load(panel.m.add((group * R + r) * lanes));
                    }
                }
                for t in 0..T {
                    let last_row = if FINE { x.second_row } else { 0 };
                    let x_d = s.splat(d.add(last_row + tokens[t]).cast::<f32>().read_unaligned());
                    for r in 0..R {
                        totals[t][r] = s.fma(s.to_f(sums[t][r]), s.mul(w_d[r], x_d), totals[t][r]);
                    }
                    if MIN {
                        let first = level_sum(t, 0);
                        let x_sum = if FINE { s.join(first, level_sum(t, x.second_row)) } else { first };
                        let x_sum = s.mul(s.to_f(x_sum), x_d);
                        for r in 0..R {
                            totals[t][r] = s.fma(w_m[r], x_sum, totals[t][r]);
                        }
                    }
                }
            }
        }
    }
    *acc = totals;
}

/// Adds to `sums[t][r]` the dots of one group of the panel with the levels of tokens, of which the first's are at `x`.
///
/// # Safety
/// The group is readable, and so are `G` levels of each token.
#[inline(always)]
unsafe fn add_dots<S: Simd, const R: usize, const T: usize, const G: usize, const WIDE: bool>(
    s: S,
    panel: *const u8,
    x: *const u8,
    tokens: &[usize; T],
    sums: &mut [[S::I; R]; T],
) {
    for four in 0..G / 4 {
        // SAFETY: as promised by the caller.
        unsafe {
            let mut w = [s.zero_i(); R];
            for r in 0..R {
                w[r] = s.load_i(panel.add((four * R + r) * 4 * S::LANES));
            }
            for t in 0..T {
                let x = s.splat4(x.add(tokens[t] + four * 4));
                for r in 0..R {
                    let sum = sums[t][r];
                    sums[t][r] = if WIDE { s.dot_wide(sum, w[r], x) } else { s.dot(sum, w[r], x) };
                }
            }
        }
    }
}
