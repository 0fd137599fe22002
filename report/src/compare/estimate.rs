//! Estimate of one row: its change, the error, the test and the interval.

use super::distribution::Student;
use super::result::{Effect, LEAST_RUNS};
use super::sides::{RunShape, RunValues, mean, median};

/// Factors of runs: how much more all functions took in a run, with mean 1 over all runs.
#[derive(Clone, Debug)]
pub(crate) struct Factors {
    all: Vec<f64>,
    /// Sum over base's runs.
    base: f64,
    /// Sum over new's runs.
    new: f64,
}

impl Factors {
    /// Creates factors from their logarithms, one for each run.
    pub(super) fn of_logs(logs: &[f64], shape: RunShape) -> Self {
        Self::of(logs.iter().map(|log| log.exp()).collect(), shape)
    }

    /// Creates factors that are proportional to `values`.
    pub(super) fn of(mut values: Vec<f64>, shape: RunShape) -> Self {
        let mean = mean(&values);
        for value in &mut values {
            *value /= mean;
        }
        let (base, new) = shape.sums(&values);
        Self { all: values, base, new }
    }

    /// Logarithm of the sides' ratio: what is taken out of every row.
    pub(super) fn log_ratio(&self) -> f64 {
        (self.new / self.base).ln()
    }

    /// Dispersion of a row about its side's rate: the variance from run to run, in units of what
    /// chance alone gives. 0 with one run a side.
    pub(super) fn dispersion(&self, row: &[f64], shape: RunShape) -> f64 {
        let (base, new) = shape.sums(row);
        let (base_rate, new_rate) = (base / self.base, new / self.new);
        let mut sum = 0.0;
        for (run, (value, factor)) in row.iter().zip(&self.all).enumerate() {
            let expected = factor * if run < shape.base { base_rate } else { new_rate };
            // A side without samples says nothing about how they scatter.
            if expected > 0.0 {
                sum += (value - expected).powi(2) / expected;
            }
        }
        sum / shape.degrees().max(1.0)
    }
}

/// Weight of the typical row in each row's dispersion, in degrees of freedom: heavier, and
/// restless functions raise false alarms; lighter, and true changes drown.
pub(super) const BORROWED: f64 = 4.0;

/// A timer samples more evenly than chance, so that less than 1 is real; but not arbitrarily even.
const LEAST_DISPERSION: f64 = 0.5;

/// Rows that tell of the typical dispersion have at least this many samples.
const TELLING: f64 = 20.0;

/// Fewer rows than this do not tell of the typical dispersion.
pub(super) const LEAST_ROWS: usize = 5;

/// The dispersion of a typical row, from which each row borrows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Typical {
    dispersion: f64,
    degrees: f64,
}

impl Typical {
    /// Returns the typical one of rows, given the sum of samples and the dispersion of each.
    pub(super) fn of(rows: impl Iterator<Item = (f64, f64)>, shape: RunShape) -> Self {
        let degrees = shape.degrees();
        let telling = rows.filter(|(samples, _)| *samples >= TELLING);
        let telling: Vec<f64> = telling.map(|(_, dispersion)| dispersion).collect();
        // The median of χ²/d is below its mean 1 by about this.
        let median_of_chance = (1.0 - 2.0 / (9.0 * degrees)).powi(3);
        let dispersion = match telling.len() < LEAST_ROWS || degrees == 0.0 {
            true => 1.0,
            false => median(telling).unwrap_or(1.0) / median_of_chance,
        };
        Self { dispersion: dispersion.max(LEAST_DISPERSION), degrees }
    }

    /// Shrinks a row's own dispersion towards the typical one.
    pub(super) fn shrunk(self, own: f64) -> f64 {
        if self.degrees == 0.0 {
            return 1.0;
        }
        let sum = self.degrees * own + BORROWED * self.dispersion;
        (sum / (self.degrees + BORROWED)).max(LEAST_DISPERSION)
    }
}

/// Error of every row that no number of samples takes away.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Floor {
    /// Variance that the machine's drift adds between the sides, or that one run a side hides.
    pub drift: f64,
    /// Variance of the common factor, where rows keep it.
    pub common: f64,
}

/// Error that remains between sides recorded in turn.
pub(super) const IN_TURN: f64 = 0.005;
/// Error between sides recorded apart: the machine drifts, and nothing in two blocks of runs tells
/// drift from change.
const APART: f64 = 0.15;
/// Spread of runs where too few runs show it.
const ASSUMED_SPREAD: f64 = 0.20;

/// Returns the variance of any difference between the sides that is not the program's.
pub(super) fn drift(shape: RunShape, in_turn: bool) -> f64 {
    let systematic = f64::powi(if in_turn { IN_TURN } else { APART }, 2);
    let is_assumed = shape.least() < LEAST_RUNS;
    systematic + if is_assumed { ASSUMED_SPREAD.powi(2) * shape.per_run() } else { 0.0 }
}

/// Estimate of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    /// Number of samples in base: a sum of periods divided by the mean period.
    pub base: f64,
    /// Number of samples in new.
    pub new: f64,
    /// What those of new would be in base's runs.
    pub gained: f64,
    pub log: f64,
    pub error: f64,
    pub dispersion: f64,
    pub change: Effect,
}

/// How values of runs become an estimate.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    shape: RunShape,
    factors: Factors,
    typical: Typical,
    floor: Floor,
    pub(crate) student: Student,
    /// Distance of an interval's end, in standard errors.
    reach: f64,
}

/// A side with fewer samples than this is judged by its deviance: the logarithm's error is no
/// longer like Student's.
const FEW_SAMPLES: f64 = 10.0;

/// Bound of logarithms of ratios; an interval's end beyond it does not exist.
const FARTHEST: f64 = 30.0;

impl Model {
    pub(super) fn new(
        counts: &RunValues,
        shape: RunShape,
        factors: Factors,
        floor: Floor,
        level: f64,
    ) -> Self {
        let rows = counts.rows().map(|row| (row.iter().sum(), factors.dispersion(row, shape)));
        let typical = Typical::of(rows, shape);
        let degrees = match shape.degrees() {
            0.0 => f64::INFINITY,
            degrees => degrees + BORROWED,
        };
        let student = Student::new(degrees);
        let reach = student.exceeded(level / 2.0);
        Self { shape, factors, typical, floor, student, reach }
    }

    /// Estimates a row from its values in all runs, in samples; `None` without any sample.
    pub(crate) fn estimate(&self, values: &[f64]) -> Option<Estimate> {
        let (base, new) = self.shape.sums(values);
        if base + new <= 0.0 {
            return None;
        }
        let dispersion = self.typical.shrunk(self.factors.dispersion(values, self.shape));
        // Half a sample stands for none, whose logarithm does not exist.
        let half = if base > 0.0 && new > 0.0 { 0.0 } else { 0.5 };
        let log = ((new + half) / (base + half)).ln() - self.factors.log_ratio();
        let sampling = dispersion * (1.0 / (base + half) + 1.0 / (new + half));
        let error = (sampling + self.floor.drift + self.floor.common).sqrt();
        let (t, low, high) = match base < FEW_SAMPLES || new < FEW_SAMPLES {
            false => (log / error, Some(log - self.reach * error), Some(log + self.reach * error)),
            true => {
                // The share of the error that sampling has no part in widens the deviance, too.
                let scale = (sampling / dispersion).sqrt() / error;
                let deviance = Deviance { base, new, ratio: self.factors.log_ratio() };
                let least = (self.reach / scale).powi(2);
                (deviance.root(0.0) * scale, deviance.low(least), deviance.high(least))
            }
        };
        let (relative, low, high) = if base == 0.0 {
            (None, low, None)
        } else if new == 0.0 {
            (Some(f64::NEG_INFINITY), Some(f64::NEG_INFINITY), high)
        } else {
            (Some(log), low, high)
        };
        let change = Effect {
            relative: relative.map(f64::exp_m1),
            low: low.filter(|low| new == 0.0 || low.abs() <= FARTHEST).map(f64::exp_m1),
            high: high.filter(|high| high.abs() <= FARTHEST).map(f64::exp_m1),
            p: self.student.two_sided(t),
        };
        let gained = new / self.factors.log_ratio().exp();
        Some(Estimate { base, new, gained, log, error, dispersion, change })
    }

    /// Returns the reach of the interval of the logarithm of a new row's samples.
    pub(super) fn reach_of_new(&self, samples: f64, dispersion: f64) -> f64 {
        self.reach * (dispersion / samples + self.floor.drift).sqrt()
    }

    /// Variance of what differs between the sides and is not the program's.
    pub(super) fn drift(&self) -> f64 {
        self.floor.drift
    }
}

/// Deviance of a binomial split: of all samples `new` are on the new side, where the logarithm x of
/// the ratio lets one expect ρ = 1/(1 + e^−θ) of them, θ = x + `ratio`.
struct Deviance {
    base: f64,
    new: f64,
    /// Logarithm of the ratio of the sides' factors.
    ratio: f64,
}

impl Deviance {
    /// Returns the deviance at θ.
    fn at(&self, theta: f64) -> f64 {
        let all = self.base + self.new;
        // ln ρ and ln(1−ρ), which 1 − ρ would lose for large θ.
        let (log_new, log_base) = (-softplus(-theta), -softplus(theta));
        let part = |count: f64, log: f64| match count > 0.0 {
            true => count * ((count / all).ln() - log),
            false => 0.0,
        };
        (2.0 * (part(self.base, log_base) + part(self.new, log_new))).max(0.0)
    }

    /// Returns the signed root of the deviance at x, positive if more is new than x lets expect.
    fn root(&self, x: f64) -> f64 {
        let theta = x + self.ratio;
        let expected = (self.base + self.new) / (1.0 + (-theta).exp());
        self.at(theta).sqrt().copysign(self.new - expected)
    }

    /// Returns the least x at which the deviance is `deviance`; `None` if nothing is new.
    fn low(&self, deviance: f64) -> Option<f64> {
        (self.new > 0.0).then(|| self.solve(deviance, -1.0))
    }

    /// Returns the largest x at which the deviance is `deviance`; `None` if nothing is in base.
    fn high(&self, deviance: f64) -> Option<f64> {
        (self.base > 0.0).then(|| self.solve(deviance, 1.0))
    }

    /// Follows tangents on one side of the minimum: the deviance is convex in θ, so that every step
    /// but the first stays beyond the solution, and no bound is needed.
    fn solve(&self, deviance: f64, side: f64) -> f64 {
        // Far out the deviance grows by 2·base or 2·new for each step of θ.
        let slope = 2.0 * if side > 0.0 { self.base } else { self.new };
        let middle = (self.new.max(0.5) / self.base.max(0.5)).ln();
        let mut theta = middle + side * (deviance / slope + 10.0);
        for _ in 0..100 {
            let rho = 1.0 / (1.0 + (-theta).exp());
            let slope = 2.0 * ((self.base + self.new) * rho - self.new);
            let step = (self.at(theta) - deviance) / slope;
            theta -= step;
            if step.abs() < 1e-12 * theta.abs().max(1.0) {
                break;
            }
        }
        theta - self.ratio
    }
}

/// ln(1 + eˣ) without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHAPE: RunShape = RunShape { base: 2, new: 2 };

    fn model(floor: f64) -> Model {
        let factors = Factors::of(vec![1.0; 4], SHAPE);
        let floor = Floor { drift: floor, common: 0.0 };
        Model::new(&RunValues::new(0, 4), SHAPE, factors, floor, 0.05)
    }

    #[track_caller]
    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
    }

    #[test]
    fn dispersion_is_the_spread_in_units_of_chance() {
        let factors = Factors::of(vec![1.0; 4], SHAPE);
        // Squares of 2 about 10, twice, over two degrees; new's runs are equal.
        assert_close(factors.dispersion(&[8.0, 12.0, 30.0, 30.0], SHAPE), 0.4);
        // A run with twice the factor is expected to have twice as many.
        let factors = Factors::of(vec![1.0, 2.0, 1.0, 2.0], SHAPE);
        assert_close(factors.dispersion(&[10.0, 20.0, 30.0, 60.0], SHAPE), 0.0);
        // A side without samples has no spread.
        assert_close(factors.dispersion(&[0.0, 0.0, 10.0, 20.0], SHAPE), 0.0);
    }

    #[test]
    fn rows_borrow_from_the_typical_one() {
        let typical = Typical::of([(100.0, 1.0)].into_iter(), SHAPE);
        assert_close(typical.dispersion, 1.0);
        assert_close(typical.shrunk(0.4), (2.0 * 0.4 + 4.0) / 6.0);
        let rows = [(100.0, 2.0), (100.0, 3.0), (100.0, 4.0), (100.0, 3.0), (100.0, 9.0)];
        let typical = Typical::of(rows.into_iter(), SHAPE);
        assert_close(typical.dispersion, 3.0 / (1.0_f64 - 1.0 / 9.0).powi(3));
        // Rows of few samples do not tell, and none is less than half as restless as chance.
        let small = rows.map(|(_, dispersion)| (19.0, dispersion));
        assert_close(Typical::of(small.into_iter(), SHAPE).dispersion, 1.0);
        let even = rows.map(|(samples, _)| (samples, 0.0));
        assert_close(Typical::of(even.into_iter(), SHAPE).shrunk(0.0), 0.5);
        // One run a side has no spread at all.
        let one = RunShape { base: 1, new: 1 };
        assert_close(Typical::of(rows.into_iter(), one).shrunk(7.0), 1.0);
    }

    #[test]
    fn a_row_with_many_samples_has_a_symmetric_interval_of_its_logarithm() {
        let found = model(0.01).estimate(&[80.0, 120.0, 150.0, 150.0]).unwrap();
        // Squares of 20 about 100, twice, over two degrees: 4; shrunk: (2·4 + 4)/6 = 2.
        assert_close(found.dispersion, 2.0);
        assert_close(found.log, 1.5_f64.ln());
        assert_close(found.error, (2.0_f64 / 200.0 + 2.0 / 300.0 + 0.01).sqrt());
        // Student's with six degrees exceeds 2.4469 in one of forty cases.
        let (low, high) = (found.change.low.unwrap().ln_1p(), found.change.high.unwrap().ln_1p());
        assert!(((high - found.log) / found.error - 2.4469).abs() < 1e-4);
        assert_close(f64::midpoint(low, high), found.log);
        assert_close(found.change.relative.unwrap(), 0.5);
    }

    #[test]
    fn new_and_gone_rows_have_one_bound() {
        let new = model(0.0).estimate(&[0.0, 0.0, 30.0, 20.0]).unwrap();
        assert_eq!((new.change.relative, new.change.high), (None, None));
        assert!(new.change.low.unwrap() > 1.0);
        assert_close(new.log, 101.0_f64.ln());
        let gone = model(0.0).estimate(&[30.0, 20.0, 0.0, 0.0]).unwrap();
        assert_eq!((gone.change.relative, gone.change.low), (Some(-1.0), Some(-1.0)));
        assert!(gone.change.high.unwrap() < -0.5);
        assert_close(gone.change.p, new.change.p);
        assert!(model(0.0).estimate(&[0.0; 4]).is_none());
    }

    #[test]
    fn drift_is_assumed_where_runs_do_not_show_it() {
        let shape = |base, new| RunShape { base, new };
        assert_close(drift(shape(5, 5), true), 0.005 * 0.005);
        assert_close(drift(shape(5, 5), false), 0.15 * 0.15);
        assert_close(drift(shape(2, 4), true), 0.005 * 0.005 + 0.04 * 0.75);
    }

    /// Finds the end of an interval by halving [−30, 30].
    fn halved(deviance: &Deviance, t: f64) -> Option<f64> {
        // The signed root falls with x.
        let (mut low, mut high) = (-FARTHEST, FARTHEST);
        if deviance.root(low) < t || deviance.root(high) > t {
            return None;
        }
        for _ in 0..80 {
            let middle = f64::midpoint(low, high);
            if deviance.root(middle) > t { low = middle } else { high = middle }
        }
        Some(low)
    }

    proptest! {
        #[test]
        fn ends_of_intervals_are_those_found_by_halving(
            base in 0_u32..300, new in 0_u32..300, ratio in -1.0..1.0_f64, t in 0.05..20.0_f64,
        ) {
            let (base, new) = (f64::from(base) / 2.0, f64::from(new) / 2.0);
            let deviance = Deviance { base, new, ratio };
            let found = [deviance.low(t * t), deviance.high(t * t)];
            let found = found.map(|end| end.filter(|x| x.abs() <= FARTHEST));
            for (found, expected) in found.into_iter().zip([halved(&deviance, t), halved(&deviance, -t)]) {
                if base + new > 0.0 {
                    prop_assert_eq!(found.is_some(), expected.is_some(), "{:?} {:?}", found, expected);
                    let distance = (found.unwrap_or(0.0) - expected.unwrap_or(0.0)).abs();
                    prop_assert!(distance < 1e-6, "{:?} {:?}", found, expected);
                }
            }
        }
    }
}
