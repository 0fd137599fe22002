//! Student's distribution, and the normal one for many degrees of freedom.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Student's distribution with some degrees of freedom, infinitely many for the normal one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Student {
    Few(StudentsT),
    Many(Normal),
}

/// Degrees from which on the normal distribution stands in: Student's differs by less than 1e-4
/// there, and its quantile is computed wrongly from 1e5 on.
const MANY: f64 = 10_000.0;

impl Student {
    /// Creates the distribution; `degrees` must be positive.
    pub(super) fn new(degrees: f64) -> Self {
        match StudentsT::new(0.0, 1.0, degrees) {
            Ok(student) if degrees <= MANY => Self::Few(student),
            _ => Self::Many(Normal::standard()),
        }
    }

    /// Returns the degrees of freedom; `None` if infinite.
    pub(crate) fn degrees(&self) -> Option<f64> {
        match self {
            Self::Few(student) => Some(student.freedom()),
            Self::Many(_) => None,
        }
    }

    /// Returns the probability of a value farther from 0 than `t`, on either side.
    pub(super) fn two_sided(&self, t: f64) -> f64 {
        let below = -t.abs();
        let part = match self {
            Self::Few(student) => student.cdf(below),
            Self::Many(normal) => normal.cdf(below),
        };
        (2.0 * part).min(1.0)
    }

    /// Returns the value that is exceeded with probability `part`, less than a half.
    pub(super) fn exceeded(&self, part: f64) -> f64 {
        // The lower tail keeps the digits of a small probability.
        -match self {
            Self::Few(student) => student.inverse_cdf(part),
            Self::Many(normal) => normal.inverse_cdf(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_tails_are_those_of_tables() {
        for (degrees, part, value) in [
            (1.0, 0.025, 12.706_204_736),
            (12.0, 0.025, 2.178_812_830),
            (12.0, 0.001, 3.929_633_265),
            (9_999.0, 0.025, 1.960_201_264),
            (1e7, 0.025, 1.959_963_985),
            (f64::INFINITY, 0.025, 1.959_963_985),
        ] {
            let student = Student::new(degrees);
            assert!((student.exceeded(part) - value).abs() < 1e-6, "{degrees}: {student:?}");
            assert!((student.two_sided(value) - 2.0 * part).abs() < 1e-8, "{degrees}");
        }
        assert_eq!(Student::new(12.0).degrees(), Some(12.0));
        assert_eq!(Student::new(f64::INFINITY).degrees(), None);
    }

    #[test]
    fn tails_keep_their_digits() {
        assert!(Student::new(12.0).two_sided(60.0) > 0.0);
        assert!((Student::new(f64::INFINITY).two_sided(0.0) - 1.0).abs() < 1e-12);
    }
}
