//! Each parameter alone, and their edges.

use super::*;

fn params(temperature: f32) -> SamplingParams {
    SamplingParams { temperature, top_k: 0, top_p: 1.0, min_p: 0.0, ..SamplingParams::default() }
}

fn draws(params: SamplingParams, logits: &[f32], n: usize) -> Vec<u32> {
    let mut sampler = Sampler::new(params).unwrap();
    (0..n).map(|_| sampler.sample(logits, &[]).unwrap()).collect()
}

#[test]
fn greedy_takes_the_first_largest() {
    assert_eq!(draws(params(0.0), &[1.0, 5.0, 5.0, 2.0], 3), [1, 1, 1]);
}

#[test]
fn same_seed_same_ids() {
    let logits: Vec<f32> = (0..50).map(|i| (i % 7) as f32).collect();
    let with = |seed| draws(SamplingParams { seed, ..params(1.0) }, &logits, 100);
    assert_eq!(with(7), with(7));
    assert_ne!(with(7), with(8));
}

#[test]
fn frequencies_follow_the_softmax() {
    let n = 20_000;
    let ids = draws(params(1.0), &[0.0, (3.0f32).ln()], n);
    let ones = ids.iter().filter(|&&id| id == 1).count() as f64 / n as f64;
    assert!((ones - 0.75).abs() < 0.02, "{ones}");
    let cold = draws(params(0.5), &[0.0, (3.0f32).ln()], n);
    let ones = cold.iter().filter(|&&id| id == 1).count() as f64 / n as f64;
    assert!((ones - 0.9).abs() < 0.02, "half the temperature squares the odds: {ones}");
}

#[test]
fn filters_keep_what_they_say() {
    let logits: Vec<f32> = [0.5f32, 0.3, 0.15, 0.05].iter().map(|p| p.ln()).collect();
    let kept = |params: SamplingParams| {
        let mut ids = draws(params, &logits, 3000);
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    assert_eq!(kept(params(1.0)), [0, 1, 2, 3]);
    assert_eq!(kept(SamplingParams { top_k: 2, ..params(1.0) }), [0, 1]);
    assert_eq!(kept(SamplingParams { top_p: 0.6, ..params(1.0) }), [0, 1]);
    assert_eq!(kept(SamplingParams { min_p: 0.25, ..params(1.0) }), [0, 1, 2]);
    assert_eq!(kept(SamplingParams { top_p: 1e-6, min_p: 1.0, ..params(1.0) }), [0], "one always stays");
}

#[test]
fn repeat_penalty_looks_at_the_last_tokens() {
    let logits = [2.0, 1.9, -1.0];
    let mut sampler = Sampler::new(SamplingParams { repeat_penalty: 1.5, repeat_last_n: 2, ..params(0.0) }).unwrap();
    assert_eq!(sampler.sample(&logits, &[]), Some(0));
    assert_eq!(sampler.sample(&logits, &[0]), Some(1));
    assert_eq!(sampler.sample(&logits, &[0, 2, 2]), Some(0), "too long ago");
    assert_eq!(sampler.sample(&logits, &[9, 99]), Some(0), "ids outside the row are nobody's");
}

#[test]
fn parameters_out_of_range_are_named() {
    let refused = |params: SamplingParams| Sampler::new(params).unwrap_err().parameter;
    assert_eq!(refused(params(-1.0)), "temperature");
    assert_eq!(refused(params(f32::NAN)), "temperature");
    assert_eq!(refused(SamplingParams { top_p: 2.0, ..params(1.0) }), "top-p");
    assert_eq!(refused(SamplingParams { top_p: 0.0, ..params(1.0) }), "top-p");
    assert_eq!(refused(SamplingParams { min_p: -0.1, ..params(1.0) }), "min-p");
    assert_eq!(refused(SamplingParams { repeat_penalty: 0.0, ..params(1.0) }), "repeat-penalty");
}

#[test]
fn odd_rows_do_not_panic() {
    let mut sampler = Sampler::new(params(0.7)).unwrap();
    assert_eq!(sampler.sample(&[], &[]), None);
    assert_eq!(sampler.sample(&[f32::NAN, 1.0], &[]), Some(1));
    assert!(sampler.sample(&[f32::NEG_INFINITY; 3], &[]).is_some());
    assert!(sampler.sample(&[f32::INFINITY, 0.0], &[]).is_some());
}
