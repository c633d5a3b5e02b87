//! Logits become a token. Takes a row of logits and the ids so far; gives an id; the same seed gives the same ids.

use std::collections::HashSet;

/// How the next token is chosen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SamplingParams {
    /// Divides the logits; 0 takes the largest.
    pub temperature: f32,
    /// Keep only this many of the most likely; 0 keeps all.
    pub top_k: u32,
    /// Keep the most likely whose probabilities sum to this (Holtzman et al. 2019); 1 keeps all.
    pub top_p: f32,
    /// Keep those at least this likely relative to the most likely (Nguyen et al. 2024); 0 keeps all.
    pub min_p: f32,
    /// Logits of recent tokens are divided by this if positive, else multiplied (Keskar et al. 2019); 1 does nothing.
    pub repeat_penalty: f32,
    /// How many of the last tokens the penalty looks at.
    pub repeat_last_n: usize,
    /// Start of the random sequence.
    pub seed: u64,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self { temperature: 0.8, top_k: 40, top_p: 0.95, min_p: 0.05, repeat_penalty: 1.0, repeat_last_n: 64, seed: 0 }
    }
}

/// A parameter outside its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{parameter} is {got}, expected {expected}")]
pub struct SamplerError {
    /// Which.
    pub parameter: &'static str,
    /// What fits.
    pub expected: &'static str,
    /// What came.
    pub got: f32,
}

/// Chooses tokens.
#[derive(Clone, Debug)]
pub struct Sampler {
    params: SamplingParams,
    random: SplitMix,
    /// `(id, logit)`, kept between calls.
    candidates: Vec<(u32, f32)>,
}

impl Sampler {
    /// A sampler, or which parameter is out of range.
    pub fn new(params: SamplingParams) -> Result<Self, SamplerError> {
        let check = |ok: bool, parameter, expected, got| match ok {
            true => Ok(()),
            false => Err(SamplerError { parameter, expected, got }),
        };
        let t = params.temperature;
        check(t.is_finite() && t >= 0.0, "temperature", "a number of 0 or more", t)?;
        check((0.0..=1.0).contains(&params.top_p) && params.top_p > 0.0, "top-p", "above 0, at most 1", params.top_p)?;
        check((0.0..=1.0).contains(&params.min_p), "min-p", "0 to 1", params.min_p)?;
        let penalty = params.repeat_penalty;
        check(penalty.is_finite() && penalty > 0.0, "repeat-penalty", "a number above 0", penalty)?;
        Ok(Self { params, random: SplitMix(params.seed), candidates: Vec::new() })
    }

    /// The next token after `history`, from its row of logits. `None` for an empty row.
    pub fn sample(&mut self, logits: &[f32], history: &[u32]) -> Option<u32> {
        // A NaN is never chosen.
        let usable = |logit: f32| if logit.is_nan() { f32::NEG_INFINITY } else { logit };
        let candidates = logits.iter().enumerate().map(|(id, &logit)| (id as u32, usable(logit)));
        if self.params.temperature == 0.0 && self.params.repeat_penalty == 1.0 {
            return largest(candidates);
        }
        self.candidates.clear();
        self.candidates.extend(candidates);
        self.penalise(history);
        if self.params.temperature == 0.0 {
            return largest(self.candidates.iter().copied());
        }
        self.keep_top_k();
        self.take_softmax();
        self.keep_top_p_and_min_p();
        self.draw()
    }

    fn penalise(&mut self, history: &[u32]) {
        let penalty = self.params.repeat_penalty;
        if penalty == 1.0 {
            return;
        }
        let start = history.len().saturating_sub(self.params.repeat_last_n);
        let recent: HashSet<u32> = history[start..].iter().copied().collect();
        for id in recent {
            if let Some((_, logit)) = self.candidates.get_mut(id as usize) {
                *logit = if *logit > 0.0 { *logit / penalty } else { *logit * penalty };
            }
        }
    }

    /// Keeps the largest logits, in falling order; equal ones by id.
    fn keep_top_k(&mut self) {
        let falling = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        let k = self.params.top_k as usize;
        if k > 0 && k < self.candidates.len() {
            self.candidates.select_nth_unstable_by(k - 1, falling);
            self.candidates.truncate(k);
        }
        self.candidates.sort_unstable_by(falling);
    }

    /// Softmax with temperature; the candidates are in falling order.
    fn take_softmax(&mut self) {
        let Some(&(_, largest)) = self.candidates.first() else { return };
        let temperature = self.params.temperature;
        let mut sum = 0.0;
        for (_, value) in &mut self.candidates {
            *value = ((*value - largest) / temperature).exp();
            sum += *value;
        }
        for (_, value) in &mut self.candidates {
            *value /= sum;
        }
    }

    /// At least the most likely stays.
    fn keep_top_p_and_min_p(&mut self) {
        let Some(&(_, largest)) = self.candidates.first() else { return };
        let mut sum = 0.0;
        let mut keep = 0;
        for &(_, p) in &self.candidates {
            if keep > 0 && (sum >= self.params.top_p || p < largest * self.params.min_p) {
                break;
            }
            sum += p;
            keep += 1;
        }
        self.candidates.truncate(keep);
    }

    fn draw(&mut self) -> Option<u32> {
        let total: f32 = self.candidates.iter().map(|(_, p)| p).sum();
        let mut left = self.random.unit() * total;
        for &(id, p) in &self.candidates {
            left -= p;
            if left < 0.0 {
                return Some(id);
            }
        }
        self.candidates.last().map(|&(id, _)| id)
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014): a few lines of our own, since the same seed must give the same text in every
/// version, which no random number crate promises.
#[derive(Clone, Debug)]
struct SplitMix(u64);

impl SplitMix {
    /// A number in `[0, 1)` with 24 random bits.
    fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        (z >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// The id of the largest logit, the first of equal ones.
fn largest(candidates: impl Iterator<Item = (u32, f32)>) -> Option<u32> {
    candidates.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(id, _)| id)
}

#[cfg(test)]
mod tests;
