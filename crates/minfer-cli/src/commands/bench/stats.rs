//! Figures of several rounds. Takes numbers; gives their mean, spread and middle.

/// Mean, standard deviation, median and ends.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Stats {
    pub mean: f64,
    /// Of the sample (divided by one less than there are); 0 of a single number.
    pub sd: f64,
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Stats {
    /// Of these numbers; all 0 when there are none.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
        let middle = n / 2;
        let median = if n % 2 == 1 { at(middle) } else { (at(middle.saturating_sub(1)) + at(middle)) / 2.0 };
        let mean = sorted.iter().sum::<f64>() / n.max(1) as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = if n < 2 { 0.0 } else { (squares / (n - 1) as f64).sqrt() };
        Self { mean, sd, median, min: at(0), max: at(n.saturating_sub(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let odd = Stats::of(&[3.0, 1.0, 2.0]);
        assert_eq!((odd.median, odd.min, odd.max), (2.0, 1.0, 3.0));
        assert_eq!(Stats::of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
    }

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        // Squares of the distances from 5: 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32, over 7.
        let stats = Stats::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(stats.mean, 5.0);
        assert!((stats.sd - (32.0f64 / 7.0).sqrt()).abs() < 1e-12, "{stats:?}");
        assert_eq!(Stats::of(&[1.5]).sd, 0.0);
        assert_eq!(Stats::of(&[]), Stats { mean: 0.0, sd: 0.0, median: 0.0, min: 0.0, max: 0.0 });
    }
}
