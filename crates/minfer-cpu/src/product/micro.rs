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

/// Where the activations that meet the panel begin in a token's row, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Offsets {
    /// From one token to the next.
    pub token_bytes: usize,
    /// From a token's row to its second one, if there is one.
    pub second_row: usize,
    pub q: usize,
    pub d: usize,
    pub sums: usize,
}

/// Adds to `acc[t][r]` the dots of the panel with tokens' rows, group by group: the exact integer sum of a group, then
/// times both scales.
///
/// `G`: columns of a group. `MIN`: groups have addends (and no offset). `WIDE`: bytes use their full range. `FINE`: tokens
/// have a second row, whose scales are 1/256 of the first's.
///
/// # Safety
/// The panel has `n_blocks` blocks, and so have the rows from the offsets on.
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
    rows: [*const u8; T],
    at: Offsets,
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
    for block in 0..panel.n_blocks {
        if block % 2 == 0 {
            // The next tokens' rows are far apart and only read here: no prefetcher of the machine follows them.
            for row in rows {
                s.prefetch(row.wrapping_add(T * at.token_bytes + at.q + block * 32));
            }
        }
        for half in 0..32 / G {
            let group = block * (32 / G) + half;
            // SAFETY: block, group and columns are within the panel and the rows.
            unsafe {
                // A token's sum of levels in the group, times the factor.
                let level_sum = |row: *const u8| s.madd(s.splat4(row.add(at.sums + block * 4)), factors[half]);
                let mut sums = [[s.zero_i(); R]; T];
                for second in 0..1 + usize::from(FINE) {
                    let skip = second * at.second_row;
                    for t in 0..T {
                        let init = if MIN { s.zero_i() } else { level_sum(rows[t].add(skip)) };
                        for r in 0..R {
                            sums[t][r] = if second == 0 { init } else { s.join(sums[t][r], init) };
                        }
                    }
                    for four in 0..G / 4 {
                        let column = group * G + four * 4;
                        let mut w = [s.zero_i(); R];
                        for r in 0..R {
                            w[r] = s.load_i(panel.q.add((column * R + r * 4) * lanes));
                        }
                        for t in 0..T {
                            let x = s.splat4(rows[t].add(skip + at.q + column));
                            for r in 0..R {
                                let sum = sums[t][r];
                                sums[t][r] = if WIDE { s.dot_wide(sum, w[r], x) } else { s.dot(sum, w[r], x) };
                            }
                        }
                    }
                }
                let mut d = [s.splat(0.0); R];
                let mut m = [s.splat(0.0); R];
                for r in 0..R {
                    d[r] = s.load(panel.d.add((group * R + r) * lanes));
                    if MIN {
                        m[r] = s.load(panel.m.add((group * R + r) * lanes));
                    }
                }
                for t in 0..T {
                    let last_row = rows[t].add(if FINE { at.second_row } else { 0 });
                    let x_d = s.splat(last_row.add(at.d + block * 4).cast::<f32>().read_unaligned());
                    for r in 0..R {
                        totals[t][r] = s.fma(s.to_f(sums[t][r]), s.mul(d[r], x_d), totals[t][r]);
                    }
                    if MIN {
                        let first = level_sum(rows[t]);
                        let x_sum = if FINE { s.join(first, level_sum(last_row)) } else { first };
                        let x_sum = s.mul(s.to_f(x_sum), x_d);
                        for r in 0..R {
                            totals[t][r] = s.fma(m[r], x_sum, totals[t][r]);
                        }
                    }
                }
            }
        }
    }
    *acc = totals;
}
