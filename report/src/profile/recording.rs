//! Recording conditions for the heading of a table: command, machine, duration.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use recrep_format::feature::{
    ClockData, Cmdline, Feature, Hostname, NrCpus, OsRelease, SampleTime,
};

use recrep_format::read::File;

/// Recording conditions, as far as the file's header has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    pub command: Option<String>,
    /// Host name, kernel release and number of CPUs, each formatted.
    pub machine: Vec<String>,
    /// Time from the first sample to the last, in nanoseconds.
    pub duration: Option<u64>,
    /// Number of times the kernel throttled an event because samples came too often.
    pub throttled: u64,
    /// Time of the recording, for an input that the user did not name.
    pub when: Option<When>,
}

/// Time of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    pub time: SystemTime,
    /// `true` if the file itself has its time; else it is when the file was last written.
    pub is_recorded: bool,
}

impl When {
    /// Returns the time that the file has (`CLOCK_DATA`), else that of its last change.
    pub fn of(file: &File<'_>, name: &Path) -> Option<Self> {
        let clock = known(file).filter(|clock: &ClockData| clock.wall_clock > 0);
        let recorded =
            clock.and_then(|clock| UNIX_EPOCH.checked_add(Duration::from_nanos(clock.wall_clock)));
        if let Some(time) = recorded {
            return Some(Self { time, is_recorded: true });
        }
        let time = name.metadata().and_then(|file| file.modified()).ok()?;
        Some(Self { time, is_recorded: false })
    }
}

impl Recording {
    pub fn of(file: &File<'_>, throttled: u64) -> Self {
        let host = known(file).map(|Hostname(name)| name.to_text().into_owned());
        let release = known(file).map(|OsRelease(release)| format!("Linux {}", release.to_text()));
        let cpus = known(file).map(|cpus: NrCpus| format!("{} CPUs", cpus.online));
        let command = known(file).map(|Cmdline { args }| {
            let words: Vec<String> = args.0.iter().map(|arg| quoted(&arg.to_text())).collect();
            words.join(" ")
        });
        let duration = known(file).and_then(|SampleTime { first, last }| last.checked_sub(first));
        Self {
            command: command.filter(|line| !line.is_empty()),
            machine: [host, release, cpus].into_iter().flatten().collect(),
            duration: duration.filter(|length| *length > 0),
            throttled,
            when: None,
        }
    }
}

/// Returns a feature of the header; `None` if the file lacks it or it is damaged.
pub(crate) fn known<'f, F: Feature<'f>>(file: &File<'f>) -> Option<F> {
    file.feature()?.ok()
}

/// Quotes a word of a command line for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let mut chars = word.chars();
    let is_plain = chars.all(|c| c.is_ascii_alphanumeric() || "-_./=:,@%+^".contains(c));
    match is_plain && !word.is_empty() {
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
