//! Mean and spread over several runs.

/// Mean and spread of the values of several runs (Welford's algorithm).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    runs: u32,
    mean: f64,
    /// Sum of the squared distances to the mean.
    squares: f64,
}

impl Spread {
    /// Creates the spread of one run's value.
    pub fn of(value: f64) -> Self {
        Self { runs: 1, mean: value, squares: 0.0 }
    }

    /// Adds a run's value.
    pub fn add(&mut self, value: f64) {
        self.runs = self.runs.saturating_add(1);
        let distance = value - self.mean;
        self.mean += distance / f64::from(self.runs);
        self.squares += distance * (value - self.mean);
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// Returns the mean; 0 without runs.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the standard deviation of a single run; 0 for fewer than two.
    pub fn deviation(&self) -> f64 {
        match self.runs {
            0 | 1 => 0.0,
            runs => (self.squares / f64::from(runs - 1)).sqrt(),
        }
    }

    /// Returns the standard error of the mean, which perf prints after `+-`.
    pub fn error(&self) -> f64 {
        if self.runs == 0 { 0.0 } else { self.deviation() / f64::from(self.runs).sqrt() }
    }

    /// Returns the standard error as a percentage of the mean.
    pub fn percent_error(&self) -> f64 {
        if self.mean == 0.0 { 0.0 } else { 100.0 * self.error() / self.mean }
    }

    /// Returns the interval that contains the true mean with a probability of 95 %, by Student's
    /// distribution; `None` for fewer than two runs. Counts and times are not below 0.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let half = self.error() * quantile(self.runs.checked_sub(1).filter(|free| *free > 0)?);
        let low = self.mean - half;
        Some((if self.mean >= 0.0 { low.max(0.0) } else { low }, self.mean + half))
    }

    /// Multiplies all values by a factor.
    pub fn scaled(self, factor: f64) -> Self {
        Self { mean: self.mean * factor, squares: self.squares * factor * factor, ..self }
    }
}

/// Returns the 97.5 % quantile of Student's distribution: from the table up to 30 degrees of
/// freedom, then by the first terms of its expansion around the normal distribution's.
fn quantile(freedom: u32) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    const NORMAL: f64 = 1.959_964;
    let place = usize::try_from(freedom).unwrap_or(usize::MAX).saturating_sub(1);
    match TABLE.get(place) {
        Some(quantile) => *quantile,
        None => NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * f64::from(freedom)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[f64]) -> Spread {
        let mut spread = Spread::default();
        for value in values {
            spread.add(*value);
        }
        spread
    }

    #[test]
    fn spread_of_a_few_runs() {
        let wide = spread(&[0.001, 0.02]).interval().unwrap();
        assert!(wide.0 == 0.0 && wide.1 > 0.02, "{wide:?}");
        let spread = spread(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-3, "{a} {b}");
        near(spread.mean(), 5.0);
        near(spread.deviation(), (32.0f64 / 7.0).sqrt());
        near(spread.error(), (32.0f64 / 7.0 / 8.0).sqrt());
        near(spread.percent_error(), spread.error() * 20.0);
        let (low, high) = spread.interval().unwrap();
        near(low, 5.0 - 2.365 * spread.error());
        near(high + low, 10.0);
        near(spread.scaled(10.0).deviation(), spread.deviation() * 10.0);
    }

    #[test]
    fn no_interval_of_times_goes_below_nothing() {
        let (low, high) = spread(&[0.001, 0.03]).interval().unwrap();
        assert!(low == 0.0 && high > 0.03, "{low} {high}");
    }

    #[test]
    fn one_run_has_no_spread() {
        for one in [spread(&[3.0]), Spread::of(3.0)] {
            assert_eq!((one.mean(), one.deviation(), one.interval()), (3.0, 0.0, None));
        }
        assert_eq!(Spread::default().percent_error(), 0.0);
        // The table and the expansion meet.
        assert!(
            (quantile(30) - quantile(31)).abs() < 0.01 && (quantile(1000) - 1.962).abs() < 0.001
        );
    }
}
