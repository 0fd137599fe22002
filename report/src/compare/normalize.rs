//! Which part of the runs' factors is taken out of the rows.

use super::common::CommonFactor;
use super::estimate::Factors;
use super::result::{Normalize, NotComparable};
use super::sides::{RunShape, RunValues, Sides, Turns, deviations, to_float};

/// What is taken out of every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Normalization {
    /// What all functions share, as it is no more than runs differ among themselves.
    Noise,
    /// What all functions share: rows show changes beyond it.
    Relative,
    /// Nothing but each run's own factor: rows show changes of time.
    Absolute,
    /// What the user asked for.
    Asked(Normalize),
    /// The runs' totals, since cut runs have too few rows to tell what they share.
    Share,
}

impl Normalization {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Noise => "noise",
            Self::Relative => "relative",
            Self::Absolute => "absolute",
            Self::Asked(asked) => asked.word(),
            Self::Share => Normalize::Share.word(),
        }
    }
}

/// What is taken out, and the variance of what is left in.
pub(super) struct Taken {
    pub mode: Normalization,
    pub factors: Factors,
    /// Variance of the common factor between the sides, as far as sampling does not explain it.
    pub variance: f64,
    /// D, if rows keep it.
    pub kept: Option<f64>,
}

/// The sides' common change is noise unless it is rarer than this by chance.
const NOISE: f64 = 0.01;

/// Runs have a fixed length if the totals changed by less than this part of the common change.
const FIXED_LENGTH: f64 = 1.0 / 3.0;

/// Of sides recorded apart, this many rows that stand still for one that moved show that the
/// machine is the same.
const STILL_FOR_MOVED: u64 = 4;

impl Taken {
    /// Creates what leaves no error in.
    fn of(mode: Normalization, factors: Factors) -> Self {
        Self { mode, factors, variance: 0.0, kept: None }
    }
}

/// Decides what is taken out.
pub(super) fn decide(
    sides: &Sides,
    shape: RunShape,
    own: &RunValues,
    common: Option<&CommonFactor>,
    turns: Turns,
    asked: Option<Normalize>,
) -> Result<Taken, NotComparable> {
    let nothing = Factors::of(vec![1.0; shape.runs()], shape);
    // A run without samples still needs a factor; its rows are all 0.
    let shares = Factors::of(own.totals().iter().map(|total| total.max(0.5)).collect(), shape);
    let is_cut = sides.base.iter().chain(&sides.new).any(|run| run.is_cut);
    let mode = match asked {
        Some(Normalize::None) => {
            return Ok(Taken::of(Normalization::Asked(Normalize::None), nothing));
        }
        Some(Normalize::Share) => {
            return Ok(Taken::of(Normalization::Asked(Normalize::Share), shares));
        }
        Some(Normalize::Time) => {
            let all = sides.base.iter().chain(&sides.new);
            let seconds = all.map(|run| run.seconds.filter(|seconds| *seconds > 0.0));
            let seconds = seconds.collect::<Option<Vec<f64>>>().ok_or(NotComparable::NoLength)?;
            return Ok(Taken::of(
                Normalization::Asked(Normalize::Time),
                Factors::of(seconds, shape),
            ));
        }
        Some(Normalize::Common) => Some(Normalization::Asked(Normalize::Common)),
        None => None,
    };
    let Some(common) = common else {
        return Ok(match (mode, is_cut) {
            (Some(mode), _) => Taken::of(mode, nothing),
            (None, true) => Taken::of(Normalization::Share, shares),
            (None, false) => Taken::of(Normalization::Absolute, nothing),
        });
    };
    let mode = mode.unwrap_or_else(|| by_rule(common, shape, own, turns, is_cut));
    let squared = common.between.powi(2);
    let sampling = common.sampling * shape.per_run();
    let (part, variance) = match mode {
        // Only what sampling does not explain is taken out, and at D = 0 there is nothing.
        Normalization::Noise if squared > 0.0 => ((1.0 - 2.0 * sampling / squared).max(0.0), 0.0),
        Normalization::Noise => (0.0, 0.0),
        Normalization::Absolute => {
            (0.0, ((common.variance - common.sampling) * shape.per_run()).max(0.0))
        }
        Normalization::Relative | Normalization::Share | Normalization::Asked(_) => (1.0, 0.0),
    };
    let half = common.between / 2.0 * part;
    let logs = common.own.iter().enumerate();
    let logs = logs.map(|(run, own)| if run < shape.base { own - half } else { own + half });
    Ok(Taken {
        mode,
        factors: Factors::of_logs(&logs.collect::<Vec<f64>>(), shape),
        variance,
        kept: (mode == Normalization::Absolute).then_some(common.between),
    })
}

fn by_rule(
    common: &CommonFactor,
    shape: RunShape,
    own: &RunValues,
    turns: Turns,
    is_cut: bool,
) -> Normalization {
    if is_cut {
        return Normalization::Relative;
    }
    if common.change.p > NOISE {
        return Normalization::Noise;
    }
    let totals = RunTotals::of(own, shape);
    if totals.log().abs() < common.between.abs() * FIXED_LENGTH {
        return Normalization::Relative;
    }
    let is_same_machine = common.votes.still * STILL_FOR_MOVED > common.votes.moved;
    if turns.in_turn || is_same_machine { Normalization::Absolute } else { Normalization::Relative }
}

/// Logarithms of the runs' numbers of samples.
pub(super) struct RunTotals {
    logs: Vec<f64>,
    shape: RunShape,
}

impl RunTotals {
    pub(super) fn of(own: &RunValues, shape: RunShape) -> Self {
        // Half a sample stands for none, whose logarithm does not exist.
        let logs = own.totals().iter().map(|total| total.max(0.5).ln()).collect();
        Self { logs, shape }
    }

    /// Returns the logarithm of the sides' ratio.
    pub(super) fn log(&self) -> f64 {
        let (base, new) = self.shape.means(&self.logs);
        new - base
    }

    /// Returns the variance of the logarithm, and Welch's degrees of freedom: the sides may scatter
    /// differently.
    pub(super) fn spread(&self) -> (f64, f64) {
        let (base, new) = self.shape.split(&self.logs);
        let [base, new] = [base, new].map(|logs| {
            let degrees = to_float(logs.len().saturating_sub(1));
            let variance = deviations(logs) / degrees.max(1.0);
            (variance / to_float(logs.len().max(1)), degrees)
        });
        let variance = base.0 + new.0;
        let divisor: f64 =
            [base, new].iter().map(|(variance, degrees)| variance.powi(2) / degrees.max(1.0)).sum();
        let degrees = if divisor > 0.0 { variance.powi(2) / divisor } else { f64::INFINITY };
        (variance, degrees)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sides::tests::in_turn;
    use super::super::{Options, SideRun, Verdict, compare};
    use super::*;

    /// Seven rows and two runs a side that scatter by 1 %; new's times `factor`, and those of the
    /// first row times `first`.
    fn sides(factor: f64, first: f64) -> Sides {
        let sizes = [2000.0, 400.0, 300.0, 250.0, 200.0, 150.0, 100.0];
        let run = |row: usize, size: f64, run: usize| {
            let scattered = size * if run.is_multiple_of(2) { 0.99 } else { 1.01 };
            let new = if run < 3 { 1.0 } else { factor };
            scattered * new * if run >= 3 && row == 0 { first } else { 1.0 }
        };
        let rows = sizes.iter().enumerate();
        let rows = rows.map(|(row, size)| (0..6).map(|at| run(row, *size, at)).collect());
        in_turn(&rows.collect::<Vec<_>>(), 3)
    }

    fn mode(sides: &Sides, normalize: Option<Normalize>) -> Normalization {
        compare(sides, &Options { normalize, ..Options::default() }).unwrap().mode
    }

    fn apart(mut sides: Sides) -> Sides {
        sides.new.iter_mut().for_each(|run| run.start = Some(600.0));
        sides
    }

    #[test]
    fn the_rule_chooses_a_mode() {
        assert_eq!(mode(&sides(1.0, 1.0), None), Normalization::Noise);
        assert_eq!(mode(&sides(1.2, 1.0), None), Normalization::Absolute);
        assert_eq!(mode(&apart(sides(1.2, 1.0)), None), Normalization::Relative);
        // The first row takes what the others lose: the runs are of one length.
        assert_eq!(mode(&sides(0.7, 1.7), None), Normalization::Relative);
        let one = in_turn(&[vec![100.0, 100.0]], 1);
        assert_eq!(mode(&one, None), Normalization::Absolute);
    }

    #[test]
    fn the_length_of_a_cut_run_says_nothing() {
        let mut cut = sides(1.0, 1.0);
        cut.new[1].is_cut = true;
        assert_eq!(mode(&cut, None), Normalization::Relative);
        let mut cut = sides(3.0, 1.0);
        cut.new[1].is_cut = true;
        let found = compare(&cut, &Options::default()).unwrap();
        assert!(found.total.p < 0.01 && !found.total_marked && found.verdict != Verdict::Changed);
        let mut one = in_turn(&[vec![100.0, 200.0], vec![50.0, 100.0]], 1);
        one.base[0].is_cut = true;
        let found = compare(&one, &Options::default()).unwrap();
        assert_eq!(found.mode.word(), "share");
        assert!(found.rows.iter().all(|row| row.log.abs() < 1e-12), "{found:?}");
    }

    #[test]
    fn each_mode_takes_out_what_it_says() {
        let log = |normalize| {
            let options = Options { normalize: Some(normalize), ..Options::default() };
            let found = compare(&sides(1.2, 1.0), &options).unwrap();
            assert_eq!(found.mode.word(), normalize.word());
            found.rows[3].log
        };
        assert!((log(Normalize::None) - 1.2_f64.ln()).abs() < 0.01);
        assert!((log(Normalize::Time) - 1.2_f64.ln()).abs() < 0.01);
        assert!(log(Normalize::Common).abs() < 0.01);
        assert!(log(Normalize::Share).abs() < 0.01);
        let absolute = compare(&sides(1.2, 1.0), &Options::default()).unwrap();
        let row = &absolute.rows[3];
        assert!((row.change.relative.unwrap() - 0.2).abs() < 0.01, "{row:?}");
        assert!(row.beyond.unwrap().abs() < 0.01, "{row:?}");
    }

    #[test]
    fn time_needs_lengths() {
        let mut sides = sides(1.0, 1.0);
        sides.new[0] = SideRun { seconds: None, ..sides.new[0].clone() };
        let options = Options { normalize: Some(Normalize::Time), ..Options::default() };
        assert_eq!(compare(&sides, &options).unwrap_err(), NotComparable::NoLength);
    }

    #[test]
    fn the_spread_of_totals_is_welchs() {
        let sides = in_turn(&[vec![1.0, 1.0, 10.0_f64.exp(), 14.0_f64.exp()]], 2);
        let totals = RunTotals::of(&sides.own, RunShape::of(&sides).unwrap());
        // Base has no spread; new's variance is 8, of two runs: 4, one degree.
        let (variance, degrees) = totals.spread();
        assert!((variance - 4.0).abs() < 1e-9 && (degrees - 1.0).abs() < 1e-9);
        assert!((totals.log() - 12.0).abs() < 1e-9);
    }
}
