//! A formula: the expression of a metric with those of the metrics that it names, ready to be
//! computed.

use std::collections::HashMap;
use std::fmt;

use super::expr::{Counts, Expr};
use super::fold::{Facts, fold};
use super::parse::parse;

/// Maximum number of metrics that lead from one to another.
const MOST_NESTED: usize = 100;

/// The expression of a metric, ready to be computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    /// Metrics that it is made of, each behind those that it needs.
    steps: Vec<Expr>,
    /// Place of the metric itself among them.
    own: usize,
    /// Condition under which the value is remarkable.
    threshold: Option<Expr>,
}

/// Reason why a metric cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormulaError {
    /// Name of the metric with the expression.
    pub metric: String,
    /// Expression.
    pub expression: String,
    /// Column in it, from 1 on, if a place in it is wrong.
    pub column: Option<usize>,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { metric, expression, column, why } = self;
        match column {
            Some(column) => {
                write!(f, "metric '{metric}': {why}, at column {column} of '{expression}'")
            }
            None => write!(f, "metric '{metric}': {why} (in '{expression}')"),
        }
    }
}

impl std::error::Error for FormulaError {}

impl Formula {
    /// Creates the formula of a metric.
    ///
    /// # Errors
    /// Fails if an expression is invalid, a fact that it needs is unknown, or metrics need one
    /// another in a circle.
    pub fn new(name: &str, expression: &str, facts: &dyn Facts) -> Result<Self, FormulaError> {
        let mut resolver = Resolver { facts, steps: Vec::new(), known: HashMap::new() };
        let own = resolver.metric(name, expression, &mut Vec::new())?;
        Ok(Self { steps: resolver.steps, own, threshold: None })
    }

    /// Adds the condition under which the value is remarkable: an expression of the metric's name
    /// and of other metrics.
    ///
    /// # Errors
    /// Fails like [`new`](Self::new).
    pub fn with_threshold(
        self,
        name: &str,
        condition: &str,
        facts: &dyn Facts,
    ) -> Result<Self, FormulaError> {
        let known = HashMap::from([(name.to_lowercase(), self.own)]);
        let mut resolver = Resolver { facts, steps: self.steps, known };
        // The name means the metric, which is known by now.
        let threshold = resolver.expression(name, condition, &mut Vec::new())?;
        Ok(Self { steps: resolver.steps, own: self.own, threshold: Some(threshold) })
    }

    /// Returns the formula without its condition, and without what only that needs.
    pub fn without_threshold(&self) -> Self {
        // Metrics that only the condition names are behind it.
        let steps = self.steps.iter().take(self.own + 1).cloned().collect();
        Self { steps, own: self.own, threshold: None }
    }

    /// Returns the names of the events, each once, in the order in which they are written.
    pub fn events(&self) -> Vec<&str> {
        let mut events: Vec<&str> = Vec::new();
        for expr in self.steps.iter().chain(&self.threshold) {
            expr.visit(&mut |part| {
                if let Expr::Named(event) | Expr::Sources(event) = part
                    && !events.contains(&event.as_str())
                {
                    events.push(event);
                }
            });
        }
        events
    }

    /// Computes the value; `None` if it is unknown, because of a count that is, or of a division by
    /// zero.
    pub fn value(&self, counts: &dyn Counts) -> Option<f64> {
        let steps = self.steps(counts);
        steps.get(self.own).copied().filter(|value| value.is_finite())
    }

    /// Returns whether the value is remarkable; `None` if that is unknown, or there is no
    /// condition.
    pub fn is_remarkable(&self, counts: &dyn Counts) -> Option<bool> {
        let value = self.threshold.as_ref()?.value(counts, &self.steps(counts));
        (!value.is_nan()).then_some(value != 0.0)
    }

    fn steps(&self, counts: &dyn Counts) -> Vec<f64> {
        let mut values = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let value = step.value(counts, &values);
            values.push(value);
        }
        values
    }
}

/// Collects the metrics that a formula is made of.
struct Resolver<'a> {
    facts: &'a dyn Facts,
    steps: Vec<Expr>,
    /// Place of each metric in `steps`, by its name in small letters.
    known: HashMap<String, usize>,
}

impl Resolver<'_> {
    /// Adds a metric and those that it needs. `open`: those that led here.
    fn metric(
        &mut self,
        name: &str,
        expression: &str,
        open: &mut Vec<String>,
    ) -> Result<usize, FormulaError> {
        open.push(name.to_lowercase());
        let expr = self.expression(name, expression, open)?;
        open.pop();
        self.steps.push(expr);
        let place = self.steps.len() - 1;
        self.known.insert(name.to_lowercase(), place);
        Ok(place)
    }

    fn expression(
        &mut self,
        name: &str,
        expression: &str,
        open: &mut Vec<String>,
    ) -> Result<Expr, FormulaError> {
        let error = |column, why| FormulaError {
            metric: name.to_owned(),
            expression: expression.to_owned(),
            column,
            why,
        };
        let parsed = parse(expression).map_err(|wrong| {
            let before = expression.get(..wrong.at).unwrap_or(expression);
            error(Some(before.chars().count() + 1), wrong.why)
        })?;
        let mut expr = fold(parsed, self.facts).map_err(|why| error(None, why))?;
        let mut names: Vec<String> = Vec::new();
        expr.visit(&mut |part| {
            if let Expr::Named(name) = part
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        });
        for other in names {
            let small = other.to_lowercase();
            if open.contains(&small) {
                let mut circle = open.clone();
                circle.push(small);
                let why = format!("metrics need one another in a circle: {}", circle.join(" → "));
                return Err(error(None, why));
            }
            let place = match self.known.get(&small) {
                Some(place) => *place,
                None => match self.facts.metric(&other) {
                    Some(_) if open.len() >= MOST_NESTED => {
                        let why = format!("more than {MOST_NESTED} metrics need one another");
                        return Err(error(None, why));
                    }
                    Some(inner) => self.metric(&other, &inner, open)?,
                    None => continue,
                },
            };
            refer(&mut expr, &other, place);
        }
        Ok(expr)
    }
}

/// Replaces a name by the metric at this place.
fn refer(expr: &mut Expr, name: &str, place: usize) {
    match expr {
        Expr::Named(own) if own == name => *expr = Expr::Step(place),
        Expr::Negative(inner) => refer(inner, name, place),
        Expr::Binary(_, left, right) => {
            refer(left, name, place);
            refer(right, name, place);
        }
        Expr::If { condition, then, otherwise } => {
            refer(condition, name, place);
            refer(then, name, place);
            refer(otherwise, name, place);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Metrics by name.
    struct Table(&'static [(&'static str, &'static str)]);

    impl Facts for Table {
        fn literal(&self, name: &str) -> Option<f64> {
            (name == "smt_on").then_some(1.0)
        }

        fn has_event(&self, _: &str) -> bool {
            true
        }

        fn is_cpu(&self, _: &str) -> Option<bool> {
            None
        }

        fn metric(&self, name: &str) -> Option<String> {
            let found = self.0.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
            found.map(|(_, expression)| (*expression).to_owned())
        }
    }

    /// Counts by event.
    struct Values(&'static [(&'static str, f64)]);

    impl Counts for Values {
        fn count(&self, event: &str) -> Option<f64> {
            self.0.iter().find(|(own, _)| *own == event).map(|(_, value)| *value)
        }

        fn sources(&self, _: &str) -> Option<f64> {
            Some(6.0)
        }
    }

    const TREE: Table = Table(&[
        ("Slots", "4 * cycles"),
        ("Bad", "issued / Slots"),
        ("Good", "retired / slots"),
        ("Left", "1 - (Bad + good)"),
    ]);

    #[test]
    fn metrics_of_metrics() {
        let left = Formula::new("Left", "1 - (Bad + good)", &TREE).unwrap();
        assert_eq!(left.events(), ["cycles", "issued", "retired"]);
        let values = Values(&[("cycles", 100.0), ("issued", 40.0), ("retired", 200.0)]);
        assert_eq!(left.value(&values), Some(0.4));
        assert_eq!(left.value(&Values(&[("cycles", 0.0), ("issued", 1.0)])), None);
        assert_eq!(left.is_remarkable(&values), None);
        let left = left.with_threshold("Left", "left > 0.3 & Extra < 1", &TREE).unwrap();
        assert_eq!(left.events(), ["cycles", "issued", "retired", "Extra"]);
        assert_eq!(left.is_remarkable(&values), None, "Extra is unknown");
        assert_eq!(left.without_threshold().events(), ["cycles", "issued", "retired"]);
        let left = Formula::new("Left", "1 - Bad", &TREE).unwrap();
        let left = left.with_threshold("Left", "Left > 0.3 & Good > 0.4", &TREE).unwrap();
        assert_eq!(left.is_remarkable(&values), Some(true));
        assert_eq!(left.without_threshold(), Formula::new("Left", "1 - Bad", &TREE).unwrap());
    }

    #[test]
    fn counts_of_sources() {
        let mean = Formula::new("mean", "clk / source_count(clk)", &TREE).unwrap();
        assert_eq!(mean.events(), ["clk"]);
        assert_eq!(mean.value(&Values(&[("clk", 60.0)])), Some(10.0));
    }

    #[test]
    fn what_cannot_be_computed_is_told() {
        let circle = Table(&[("a", "b + 1"), ("b", "2 * A")]);
        let error = Formula::new("a", "b + 1", &circle).unwrap_err().to_string();
        assert!(error.contains("in a circle: a → b → a"), "{error}");
        let own = Formula::new("a", "a + 1", &circle).unwrap_err().to_string();
        assert!(own.contains("a → a"), "{own}");
        let wrong = Formula::new("x", "ä + ", &circle).unwrap_err();
        assert_eq!((wrong.column, &wrong.metric[..]), (Some(1), "x"));
        let text = Formula::new("x", "1 + (2", &circle).unwrap_err().to_string();
        assert!(text.ends_with("at column 7 of '1 + (2'"), "{text}");
        let unknown = Formula::new("x", "#slots * 2", &circle).unwrap_err().to_string();
        assert!(unknown.contains("the value of #slots is unknown"), "{unknown}");
        let inner = Table(&[("bad", "1 +")]);
        assert_eq!(Formula::new("x", "bad * 2", &inner).unwrap_err().metric, "bad");
    }
}
