//! Files of rules, checked in beside the program that they guard.

use serde::Deserialize;
use toml::Spanned;

use super::parse::RuleError;
use super::rule::GateRule;

/// Rules of a file, or of the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rules {
    /// Rate of errors that the file asks for.
    pub level: Option<f64>,
    /// Least impact of marked rows that the file asks for: a part of all time.
    pub min_impact: Option<f64>,
    pub rules: Vec<GateRule>,
}

/// A file of rules that cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum FileError {
    /// The message says line and column.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    #[error("line {line}: {error}")]
    Rule { line: usize, error: RuleError },
    #[error("line {line}: `{key}` must be {expected}")]
    Value { line: usize, key: &'static str, expected: &'static str },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    level: Option<Spanned<f64>>,
    min_impact: Option<Spanned<String>>,
    #[serde(default)]
    rule: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    fail_if: Spanned<String>,
    why: Option<String>,
    #[serde(default)]
    warn: bool,
}

impl Rules {
    /// Reads the text of a TOML file.
    ///
    /// # Errors
    ///
    /// Returns the first line that is wrong, and why.
    pub(crate) fn read(text: &str) -> Result<Self, FileError> {
        let file: File = toml::from_str(text)?;
        let level = file.level.map(|level| {
            let (line, value) = (line_of(text, &level), *level.get_ref());
            let is_rate = value > 0.0 && value < 1.0;
            let expected = "between 0 and 1";
            is_rate.then_some(value).ok_or(FileError::Value { line, key: "level", expected })
        });
        let min_impact = file.min_impact.map(|impact| {
            let expected = "a percentage such as \"0.5%\"";
            percentage(impact.get_ref()).ok_or(FileError::Value {
                line: line_of(text, &impact),
                key: "min-impact",
                expected,
            })
        });
        let rules = file.rule.into_iter().map(|table| {
            let line = line_of(text, &table.fail_if);
            let rule = GateRule::parse(table.fail_if.get_ref());
            let rule = rule.map_err(|error| FileError::Rule { line, error })?;
            Ok(GateRule { why: table.why, warn: table.warn, ..rule })
        });
        Ok(Self {
            level: level.transpose()?,
            min_impact: min_impact.transpose()?,
            rules: rules.collect::<Result<_, FileError>>()?,
        })
    }
}

/// Returns a percentage from 0 to 100 as a part of one.
fn percentage(text: &str) -> Option<f64> {
    let number: f64 = text.trim().strip_suffix('%')?.trim_end().parse().ok()?;
    (0.0..=100.0).contains(&number).then_some(number / 100.0)
}

/// Returns the line of a value, from 1 on.
fn line_of<T>(text: &str, value: &Spanned<T>) -> usize {
    let before = text.as_bytes().get(..value.span().start).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_file_has_rules_and_their_reasons() {
        let text = r#"
            level = 0.01
            min-impact = "1 %"
            [[rule]]
            fail-if = "delta(self, app::parse*) > 10%"
            why = "hot path, ask the parser team"
            [[rule]]
            fail-if = "slower > 0"
            warn = true
        "#;
        let file = Rules::read(text).unwrap();
        assert_eq!((file.level, file.min_impact), (Some(0.01), Some(0.01)));
        let [first, second] = file.rules.as_slice() else { panic!("{file:?}") };
        assert_eq!(first.why.as_deref(), Some("hot path, ask the parser team"));
        assert!(!first.warn && second.warn && second.why.is_none());
        assert_eq!(Rules::read("").unwrap(), Rules::default());
    }

    #[test]
    fn errors_say_the_line_and_the_column() {
        for (text, parts) in [
            (
                "level = 0.05\n[[rule]]\nfail-if = \"self(f > 1%\"\n",
                &["line 3: column 12:", "`)`"][..],
            ),
            ("[[rule]]\nfail = \"slower > 0\"\n", &["line 2", "fail"]),
            ("[[rule]]\nwhy = \"x\"\n", &["fail-if"]),
            ("levl = 1", &["line 1", "levl"]),
            ("level = 0", &["line 1", "level"]),
            ("level = 1.5", &["line 1: `level` must be between 0 and 1"]),
            ("\nmin-impact = \"0.5\"", &["line 2: `min-impact` must be a percentage"]),
            ("[[rule]\n", &["line 1"]),
        ] {
            let error = Rules::read(text).unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "{text}: {error}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), rule in any::<String>()) {
            _ = Rules::read(&text).map_err(|error| error.to_string());
            let file = format!("[[rule]]\nfail-if = {rule:?}\nmin-impact = {text:?}");
            _ = Rules::read(&file).map_err(|error| error.to_string());
        }
    }
}
