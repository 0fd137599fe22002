//! Changes of a program whose effect on the length of a run is asked for (`--what-if`).

use std::collections::HashSet;

use super::lists::UsageError;

/// Code that is to be faster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FasterCode {
    /// A function with all that it calls, by any of its names.
    Function(HashSet<String>),
    /// All that a thread runs.
    Thread(i32),
}

/// How much of its running time is saved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Saving {
    /// A part, from 0 to 1.
    Part(f64),
    /// Nanoseconds of all threads together.
    Time(u64),
}

/// A change of a program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WhatIf {
    pub(crate) code: FasterCode,
    pub(crate) saving: Saving,
    /// What the user named.
    pub(crate) name: String,
}

impl WhatIf {
    /// Parses `FUNCTION=-20%`, `FUNCTION=-50ms` or `tid:7=-20%`.
    pub(crate) fn parse(text: &str) -> Result<Self, UsageError> {
        let wrong = || {
            let forms = "FUNCTION=-20%, FUNCTION=-50ms or tid:TID=-20%";
            UsageError(format!("--what-if takes {forms}, not `{text}`"))
        };
        // Names of operators have the sign, too.
        let (name, change) = text.rsplit_once('=').ok_or_else(wrong)?;
        let saving = change.trim().strip_prefix('-').and_then(saving).ok_or_else(wrong)?;
        let name = name.trim();
        let code = match name.strip_prefix("tid:") {
            Some(tid) => FasterCode::Thread(tid.parse().map_err(|_| wrong())?),
            None if name.is_empty() => return Err(wrong()),
            None => FasterCode::Function([name.to_owned()].into()),
        };
        Ok(Self { code, saving, name: name.to_owned() })
    }
}

fn saving(text: &str) -> Option<Saving> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    if let Some(percent) = text.strip_suffix('%') {
        return number(percent)
            .filter(|percent| *percent <= 100.0)
            .map(|p| Saving::Part(p / 100.0));
    }
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    units.iter().find_map(|(unit, length)| {
        let nanoseconds = number(text.strip_suffix(unit)?)? * length;
        Some(Saving::Time(whole_nanoseconds(nanoseconds)))
    })
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time that is not negative; what is too long is the longest"
)]
fn whole_nanoseconds(nanoseconds: f64) -> u64 {
    nanoseconds.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_of_functions_and_threads() {
        let parse = |text: &str| WhatIf::parse(text).map(|one| (one.code, one.saving));
        let function = |name: &str| FasterCode::Function([name.to_owned()].into());
        assert_eq!(parse("parse=-20%"), Ok((function("parse"), Saving::Part(0.2))));
        assert_eq!(parse("f=-1.5ms"), Ok((function("f"), Saving::Time(1_500_000))));
        assert_eq!(
            parse("A::operator===-3us"),
            Ok((function("A::operator=="), Saving::Time(3000)))
        );
        assert_eq!(parse("tid:7=-100%"), Ok((FasterCode::Thread(7), Saving::Part(1.0))));
        for text in ["f", "f=20%", "f=-101%", "f=-20", "=-20%", "tid:x=-20%", "f=--1%", "f=-1h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
