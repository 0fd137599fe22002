//! How a file was recorded, in a line: what a reader of a table wants to know first.

use recrep_format::feature::{Cmdline, Hostname, NrCpus, OsRelease, SampleTime};

use recrep_format::read::File;

/// How a file was recorded, as far as its header says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The recorder's command line.
    pub command: Option<String>,
    /// The machine: its name, its kernel, how many CPUs.
    pub machine: Vec<String>,
    /// How long it took, from the first sample to the last, in nanoseconds.
    pub duration: Option<u64>,
    /// How often the kernel sampled less than it was asked to, because samples came too often.
    pub throttled: u64,
}

impl Recording {
    /// What the header says.
    #[must_use]
    pub fn of(file: &File<'_>, throttled: u64) -> Self {
        let mut machine = Vec::new();
        if let Some(Ok(Hostname(name))) = file.feature() {
            machine.push(name.to_text().into_owned());
        }
        if let Some(Ok(OsRelease(release))) = file.feature() {
            machine.push(format!("Linux {}", release.to_text()));
        }
        if let Some(Ok(cpus)) = file.feature::<NrCpus>() {
            machine.push(format!("{} CPUs", cpus.online));
        }
        let command = match file.feature::<Cmdline<'_>>() {
            Some(Ok(Cmdline { args })) => {
                let words: Vec<String> = args.0.iter().map(|arg| quoted(&arg.to_text())).collect();
                Some(words.join(" ")).filter(|line| !line.is_empty())
            }
            _ => None,
        };
        let duration = match file.feature() {
            Some(Ok(SampleTime { first, last })) => last.checked_sub(first).filter(|length| *length > 0),
            _ => None,
        };
        Self { command, machine, duration, throttled }
    }
}

/// A word of a command line as a shell would take it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+^".contains(c);
    match word.chars().all(is_plain) && !word.is_empty() {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(["a-b", "a b", "", "it's"].map(quoted), ["a-b", "'a b'", "''", r"'it'\''s'"]);
    }
}
