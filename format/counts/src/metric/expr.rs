//! An expression, and its value.

/// Expression of counts and constants.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    /// A constant; NaN if it is unknown.
    Number(f64),
    /// `#name`: a fact about the machine or the target.
    Literal(String),
    /// Count of an event, or value of another metric.
    Named(String),
    /// `source_count(EVENT)`: number of PMUs that count the event.
    Sources(String),
    /// `has_event(EVENT)`
    HasEvent(String),
    /// `strcmp_cpuid_str(ID)`
    IsCpu(String),
    /// Value of another metric: its place in [`Formula`](super::Formula).
    Step(usize),
    Negative(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    If {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
}

/// Operator or function of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    Xor,
    And,
    Less,
    Greater,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Min,
    Max,
    /// `d_ratio`: a quotient that is 0 if the divisor is.
    Ratio,
}

/// Counts that formulas are computed from.
pub trait Counts {
    /// Returns the count of an event, or the seconds of `duration_time`, `user_time` or
    /// `system_time`; `None` if it is unknown.
    fn count(&self, event: &str) -> Option<f64>;

    /// Returns the number of PMUs that count the event; `None` if it is unknown.
    fn sources(&self, event: &str) -> Option<f64>;
}

impl Expr {
    /// Computes the value; NaN if it is unknown. `steps` are the values of other metrics.
    pub(super) fn value(&self, counts: &dyn Counts, steps: &[f64]) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Named(event) => counts.count(event).unwrap_or(f64::NAN),
            Self::Sources(event) => counts.sources(event).unwrap_or(f64::NAN),
            Self::Step(place) => steps.get(*place).copied().unwrap_or(f64::NAN),
            Self::Negative(inner) => -inner.value(counts, steps),
            Self::Binary(operator, left, right) => {
                operator.apply(left.value(counts, steps), right.value(counts, steps))
            }
            Self::If { condition, then, otherwise } => match condition.value(counts, steps) {
                unknown if unknown.is_nan() => f64::NAN,
                0.0 => otherwise.value(counts, steps),
                _ => then.value(counts, steps),
            },
            // Folding has replaced these.
            Self::Literal(_) | Self::HasEvent(_) | Self::IsCpu(_) => f64::NAN,
        }
    }

    /// Calls a function with each part of the expression, from left to right.
    pub(super) fn visit<'a>(&'a self, found: &mut impl FnMut(&'a Self)) {
        found(self);
        match self {
            Self::Negative(inner) => inner.visit(found),
            Self::Binary(_, left, right) => {
                left.visit(found);
                right.visit(found);
            }
            Self::If { condition, then, otherwise } => {
                then.visit(found);
                condition.visit(found);
                otherwise.visit(found);
            }
            _ => {}
        }
    }
}

/// Returns the number of a truth value.
pub(super) fn truth(is_true: bool) -> f64 {
    f64::from(u8::from(is_true))
}

fn is_zero(value: f64) -> bool {
    value == 0.0
}

impl Operator {
    /// Computes the result; NaN if it is unknown, as that of a division by zero.
    pub(super) fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            // One known side can be enough.
            Self::And if is_zero(left) || is_zero(right) => 0.0,
            Self::Or if is_true(left) || is_true(right) => 1.0,
            _ if left.is_nan() || right.is_nan() => f64::NAN,
            Self::And => 1.0,
            Self::Or => 0.0,
            Self::Xor => truth(is_zero(left) != is_zero(right)),
            Self::Less => truth(left < right),
            Self::Greater => truth(left > right),
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Ratio if is_zero(right) => 0.0,
            Self::Divide if is_zero(right) => f64::NAN,
            Self::Divide | Self::Ratio => left / right,
            // Of whole numbers, as perf computes it.
            Self::Remainder if is_zero(right.trunc()) => f64::NAN,
            Self::Remainder => left.trunc() % right.trunc(),
            Self::Min => left.min(right),
            Self::Max => left.max(right),
        }
    }
}

fn is_true(value: f64) -> bool {
    !value.is_nan() && value != 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use Operator as O;

    #[test]
    fn operators() {
        for (operator, left, right, expected) in [
            (O::Add, 1.0, 2.0, 3.0),
            (O::Subtract, 1.0, 2.0, -1.0),
            (O::Multiply, 3.0, 2.0, 6.0),
            (O::Divide, 3.0, 2.0, 1.5),
            (O::Remainder, 7.9, 4.2, 3.0),
            (O::Less, 1.0, 2.0, 1.0),
            (O::Greater, 1.0, 2.0, 0.0),
            (O::And, 0.5, 2.0, 1.0),
            (O::Or, 0.0, 0.0, 0.0),
            (O::Xor, 3.0, 0.0, 1.0),
            (O::Xor, 3.0, 1.0, 0.0),
            (O::Min, 3.0, 1.0, 1.0),
            (O::Max, 3.0, 1.0, 3.0),
            (O::Ratio, 3.0, 0.0, 0.0),
            (O::Ratio, 3.0, 2.0, 1.5),
        ] {
            assert_eq!(operator.apply(left, right), expected, "{left} {operator:?} {right}");
        }
    }

    #[test]
    fn unknown_stays_unknown_unless_the_other_side_decides() {
        let unknown = f64::NAN;
        for operator in
            [O::Add, O::Multiply, O::Less, O::Greater, O::Xor, O::Min, O::Max, O::Ratio, O::Divide]
        {
            assert!(operator.apply(unknown, 1.0).is_nan(), "{operator:?}");
            assert!(operator.apply(1.0, unknown).is_nan(), "{operator:?}");
        }
        assert!(O::Divide.apply(1.0, 0.0).is_nan() && O::Remainder.apply(1.0, 0.5).is_nan());
        assert_eq!((O::And.apply(unknown, 0.0), O::Or.apply(2.0, unknown)), (0.0, 1.0));
        assert!(O::And.apply(unknown, 1.0).is_nan() && O::Or.apply(0.0, unknown).is_nan());
    }
}
