//! How far results are from what they should be. Takes logits; gives relative errors and divergences, by the formulas of
//! the project's golden check, so that a test and the check agree.

/// Largest relative error of the reference backend with an f32 KV cache.
pub const REFERENCE_TOLERANCE: f64 = 5e-5;
/// How many of the largest logits the engine's side of a divergence takes.
pub const KL_TOP: usize = 64;

/// The largest logits of a distribution and what normalises it.
#[derive(Clone, Debug, PartialEq)]
pub struct Top {
    /// `(id, logit)`, largest first.
    pub top: Vec<(u32, f64)>,
    /// `ln Σ exp(logit)` over the whole vocabulary.
    pub logsumexp: f64,
}

impl Top {
    /// The `k` largest of these logits.
    pub fn of(logits: &[f32], k: usize) -> Self {
        Self { top: top_k(logits, k), logsumexp: logsumexp(logits) }
    }
}

/// `√(Σ (got - want)² / Σ want²)`; infinite if the lengths differ or something is not finite.
pub fn relative_error(got: &[f32], want: &[f32]) -> f64 {
    if got.len() != want.len() {
        return f64::INFINITY;
    }
    relative(got.iter().zip(want).map(|(&got, &want)| (f64::from(got), f64::from(want))))
}

/// The same over the listed logits only; all of them must be ids of `got`.
pub fn relative_error_top(got: &[f32], want: &[(u32, f64)]) -> f64 {
    relative(want.iter().map(|&(id, want)| (got.get(id as usize).map_or(f64::NAN, |&got| got.into()), want)))
}

fn relative(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut error, mut norm) = (0.0, 0.0);
    for (got, want) in pairs {
        error += (got - want) * (got - want);
        norm += want * want;
    }
    let result = if error == 0.0 { 0.0 } else { (error / norm).sqrt() };
    if result.is_nan() { f64::INFINITY } else { result }
}

/// Kullback-Leibler divergence of `got` from `want` over `want`'s listed ids plus one bucket for all others, in nats. An id
/// that `got` does not list counts as its smallest listed one.
pub fn kl_divergence(want: &Top, got: &Top) -> f64 {
    let q: std::collections::HashMap<u32, f64> =
        got.top.iter().map(|&(id, logit)| (id, logit - got.logsumexp)).collect();
    let floor = q.values().copied().fold(f64::INFINITY, f64::min);
    let q_of = |id: u32| q.get(&id).copied().unwrap_or(floor);
    let p = || want.top.iter().map(|&(id, logit)| (id, logit - want.logsumexp));
    let rest_p = (1.0 - p().map(|(_, p)| p.exp()).sum::<f64>()).max(1e-12);
    let rest_q = (1.0 - p().map(|(id, _)| q_of(id).exp()).sum::<f64>()).max(1e-12);
    p().map(|(id, p)| p.exp() * (p - q_of(id))).sum::<f64>() + rest_p * (rest_p / rest_q).ln()
}

/// The `k` largest logits, largest first; equal ones by id.
pub fn top_k(logits: &[f32], k: usize) -> Vec<(u32, f64)> {
    let mut all: Vec<(u32, f64)> = (0..).zip(logits.iter().map(|&logit| f64::from(logit))).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(k);
    all
}

/// The id of the largest logit; the lowest of equal ones. `None` without logits.
pub fn argmax(logits: &[f32]) -> Option<u32> {
    top_k(logits, 1).first().map(|&(id, _)| id)
}

/// `ln Σ exp(logit)`.
pub fn logsumexp(logits: &[f32]) -> f64 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - f64::from(max)).exp()).sum();
    f64::from(max) + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_distributions_do_not_diverge() {
        let logits: Vec<f32> = (0..100).map(|i| (i as f32 * 0.37).sin() * 3.0).collect();
        let (want, got) = (Top::of(&logits, 32), Top::of(&logits, KL_TOP));
        assert!(kl_divergence(&want, &got).abs() < 1e-12);
        assert_eq!(relative_error(&logits, &logits), 0.0);
        assert_eq!(relative_error_top(&logits, &want.top), 0.0);
        let shifted: Vec<f32> = logits.iter().map(|logit| logit + 5.0).collect();
        assert!(kl_divergence(&want, &Top::of(&shifted, KL_TOP)).abs() < 1e-6, "a shift changes no probability");
    }

    #[test]
    fn divergence_of_two_coins() {
        // p = (1/2, 1/2), q = (1/4, 3/4): 1/2 ln 2 + 1/2 ln(2/3); the rest buckets are empty on both sides.
        let want = Top::of(&[0.0, 0.0], 32);
        let got = Top::of(&[0.0, 3f32.ln()], KL_TOP);
        let expected = 0.5 * 2f64.ln() + 0.5 * (2f64 / 3.0).ln();
        assert!((kl_divergence(&want, &got) - expected).abs() < 1e-6);
    }

    #[test]
    fn broken_logits_are_infinitely_far() {
        assert_eq!(relative_error(&[f32::NAN], &[1.0]), f64::INFINITY);
        assert_eq!(relative_error(&[1.0], &[1.0, 2.0]), f64::INFINITY);
        assert_eq!(relative_error_top(&[1.0], &[(3, 1.0)]), f64::INFINITY);
        assert_eq!(argmax(&[1.0, 3.0, 3.0]), Some(1));
    }
}
