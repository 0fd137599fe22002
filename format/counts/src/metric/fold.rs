//! Folding: facts take the place of literals, and branches that are never taken need no events.

use super::expr::{Expr, Operator, truth};

/// Facts about the machine and the target, and the other metrics.
pub trait Facts {
    /// Returns the value of `#name`, such as `smt_on`, in small letters; `None` if it is unknown.
    fn literal(&self, name: &str) -> Option<f64>;

    /// Returns whether the machine has an event.
    fn has_event(&self, event: &str) -> bool;

    /// Returns whether the CPU is the one with this ID; `None` if it is unknown.
    fn is_cpu(&self, id: &str) -> Option<bool>;

    /// Returns the expression of a metric; `None` if there is none of this name.
    fn metric(&self, name: &str) -> Option<String>;
}

/// Replaces what the facts tell, and what is constant by that. An error names the fact that is
/// unknown.
pub(super) fn fold(expr: Expr, facts: &dyn Facts) -> Result<Expr, String> {
    Ok(match expr {
        Expr::Literal(name) => match facts.literal(&name) {
            Some(value) => Expr::Number(value),
            None => return Err(format!("the value of #{name} is unknown on this machine")),
        },
        Expr::HasEvent(event) => Expr::Number(truth(facts.has_event(&event))),
        Expr::IsCpu(id) => match facts.is_cpu(&id) {
            Some(is_cpu) => Expr::Number(truth(is_cpu)),
            None => {
                return Err(format!(
                    "strcmp_cpuid_str({id}): this machine does not tell which CPU it has"
                ));
            }
        },
        Expr::Negative(inner) => match fold(*inner, facts)? {
            Expr::Number(number) => Expr::Number(-number),
            inner => Expr::Negative(Box::new(inner)),
        },
        Expr::Binary(operator, left, right) => binary(operator, *left, *right, facts)?,
        Expr::If { condition, then, otherwise } => match fold(*condition, facts)? {
            Expr::Number(0.0) => fold(*otherwise, facts)?,
            Expr::Number(number) if !number.is_nan() => fold(*then, facts)?,
            condition => {
                let (then, otherwise) = (fold(*then, facts)?, fold(*otherwise, facts)?);
                match (&then, &otherwise) {
                    (Expr::Number(one), Expr::Number(other)) if one == other => then,
                    _ => Expr::If {
                        condition: Box::new(condition),
                        then: Box::new(then),
                        otherwise: Box::new(otherwise),
                    },
                }
            }
        },
        other => other,
    })
}

fn binary(operator: Operator, left: Expr, right: Expr, facts: &dyn Facts) -> Result<Expr, String> {
    // A literal that is not needed may be unknown: only what is left is folded.
    let left = fold(left, facts)?;
    if let (Operator::And, Expr::Number(0.0)) = (operator, &left) {
        return Ok(left);
    }
    let right = fold(right, facts)?;
    Ok(match (operator, left, right) {
        (operator, Expr::Number(left), Expr::Number(right)) => {
            Expr::Number(operator.apply(left, right))
        }
        (Operator::Or, Expr::Number(known), _) | (Operator::Or, _, Expr::Number(known))
            if known != 0.0 && !known.is_nan() =>
        {
            Expr::Number(1.0)
        }
        (Operator::And | Operator::Ratio, _, Expr::Number(0.0)) => Expr::Number(0.0),
        (Operator::Divide | Operator::Remainder, _, Expr::Number(0.0)) => Expr::Number(f64::NAN),
        (operator, left, right) => Expr::Binary(operator, Box::new(left), Box::new(right)),
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    struct Machine;

    impl Facts for Machine {
        fn literal(&self, name: &str) -> Option<f64> {
            match name {
                "smt_on" => Some(0.0),
                "num_cpus" => Some(8.0),
                _ => None,
            }
        }

        fn has_event(&self, event: &str) -> bool {
            event == "there"
        }

        fn is_cpu(&self, id: &str) -> Option<bool> {
            (id != "0x0").then_some(id == "0x41")
        }

        fn metric(&self, _: &str) -> Option<String> {
            None
        }
    }

    fn folded(text: &str) -> Result<Expr, String> {
        fold(parse(text).unwrap(), &Machine)
    }

    #[test]
    fn constant_parts_need_no_events() {
        for (text, same) in [
            ("a / 2 if #smt_on else b", "b"),
            ("a if #num_cpus > 4 else b", "a"),
            ("a if has_event(there) else b", "a"),
            ("a if has_event(away) else 0", "0"),
            ("a if strcmp_cpuid_str(0x42) | strcmp_cpuid_str(0x41) ^ 1 else b", "b"),
            ("3 if a else 3", "3"),
            ("(#smt_on & a) + 1", "1"),
            ("(a & 0) + 1", "1"),
            ("(1 | a) * 4", "4"),
            ("(a | 1) * 4", "4"),
            ("d_ratio(a, #smt_on)", "0"),
            ("#num_cpus * 2 + a", "16 + a"),
            ("-(2 - 3) * a", "1 * a"),
            // Known only once it is counted.
            ("0 * slots", "0 * slots"),
            ("(0 | a) + 1", "(0 | a) + 1"),
            ("a if b else 0", "a if b else 0"),
        ] {
            assert_eq!(folded(text).unwrap(), parse(same).unwrap(), "{text}");
        }
        for text in ["a / 0", "a % #smt_on", "NaN + 1"] {
            let Expr::Number(number) = folded(text).unwrap() else { panic!("{text}") };
            assert!(number.is_nan());
        }
    }

    #[test]
    fn unknown_facts_are_named() {
        assert!(folded("a * #slots").unwrap_err().contains("#slots"));
        assert!(folded("a if strcmp_cpuid_str(0x0) else b").unwrap_err().contains("0x0"));
        // Not needed.
        assert!(folded("a if #num_cpus else #slots").is_ok());
    }
}
