//! Arguments of gates: rules that fail a job.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::compare::rules::{GateRule, NoSecondSide, Rules};

/// Options of gates.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Gates")]
pub(crate) struct GateArgs {
    /// Exit with status 3 if RULE is true, such as 'self(f) > 5%'
    ///
    /// May be given several times. Subjects: self(NAME), children(NAME), dso(NAME), comm(NAME); lost, unresolved, broken (shares of
    /// samples); samples, runs; and with a second side (`rep diff`) delta(self, NAME),
    /// impact(self, NAME), also of children, dso and comm, delta(total), new, gone, slower, faster.
    /// `*` and `?` in names are wild. `surely` after the limit: the whole interval is beyond it;
    /// `any`: chance or not. An input that cannot be trusted is status 3 too
    #[arg(long, value_name = "RULE")]
    fail_if: Vec<String>,

    /// Rules in a TOML file
    ///
    /// Each [[rule]] has fail-if, and may have why and warn; level and min-impact are of all
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    rules: Option<PathBuf>,

    /// Fail if noise leaves a rule about changes open
    ///
    /// A rule is open if the change is not significant, but one at the limit would not have been
    #[arg(long)]
    strict: bool,
}

/// Rules, and how they are applied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gates {
    pub(crate) rules: Rules,
    /// `true` if an open rule fails.
    pub(crate) is_strict: bool,
}

impl Gates {
    /// Returns whether anything can fail.
    pub(crate) fn is_asked(&self) -> bool {
        !self.rules.rules.is_empty()
    }

    /// Checks that no rule compares, as there is nothing to compare with.
    ///
    /// # Errors
    /// Returns the first rule that does.
    pub(crate) fn check_one_side(&self) -> Result<(), String> {
        match self.rules.rules.iter().find(|rule| rule.subject.needs_two_sides()) {
            Some(GateRule { text: rule, .. }) => {
                Err(NoSecondSide { rule: rule.clone() }.to_string())
            }
            None => super::refuse([(
                self.rules.level.is_some() || self.rules.min_impact.is_some(),
                "`level` and `min-impact` in --rules are of comparisons: rep diff",
            )]),
        }
    }
}

impl GateArgs {
    /// Returns the rules of the file, then those of the command line.
    ///
    /// # Errors
    /// Returns an error if a rule is wrong, or the file cannot be read.
    pub(crate) fn gates(self) -> Result<Gates, String> {
        let mut rules = match &self.rules {
            None => Rules::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| format!("--rules: cannot read {}: {error}", path.display()))?;
                Rules::read(&text).map_err(|error| format!("{}: {error}", path.display()))?
            }
        };
        for text in &self.fail_if {
            rules.rules.push(GateRule::parse(text).map_err(|error| format!("--fail-if: {error}"))?);
        }
        if rules.rules.is_empty() {
            if let Some(path) = self.rules {
                return Err(format!("{}: there is no [[rule]] in it", path.display()));
            }
            super::refuse([(self.strict, "--strict needs a rule: --fail-if or --rules")])?;
        }
        Ok(Gates { rules, is_strict: self.strict })
    }
}
