//! File names with timestamps, and removal of old files (`--switch-output`).

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use jiff::Zoned;

use super::files::Output;
use super::place;
use crate::messages::error::Result;
use crate::plan::config;

/// Naming of a recording's files.
#[derive(Debug)]
pub(crate) struct Names {
    stamp: bool,
    kept: NewestFiles,
}

impl Names {
    pub(crate) fn new(config: &config::OutputOptions) -> Self {
        let stamp = config.timestamp_name || config.switch.is_some();
        Self { stamp, kept: NewestFiles::at_most(config.max_files) }
    }

    /// Gives a file its final name before it is completed.
    pub(crate) fn settle(&mut self, output: &mut Output, path: &Path) -> Result<()> {
        if !self.stamp {
            return Ok(());
        }
        let stamped = stamped(path, &Zoned::now());
        if let Some(name) = output.rename(numbered(&stamped))? {
            self.kept.add(name);
        }
        Ok(())
    }
}

/// Returns `PATH.YYYYMMDDhhmmsscc`, in local time, like perf record.
fn stamped(path: &Path, now: &Zoned) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    let hundredths = now.subsec_nanosecond() / 10_000_000;
    name.push(format!(".{}{hundredths:02}", now.strftime("%Y%m%d%H%M%S")));
    PathBuf::from(name)
}

/// The name, and if it is taken the same with a number: several files may be finished in a
/// hundredth of a second.
fn numbered(name: &Path) -> impl Iterator<Item = PathBuf> {
    std::iter::once(name.to_owned()).chain((1..=u32::MAX).map(|n| {
        let mut numbered = name.as_os_str().to_owned();
        numbered.push(format!("-{n:02}"));
        PathBuf::from(numbered)
    }))
}

/// Completed files, oldest first.
#[derive(Debug, Default)]
struct NewestFiles {
    most: Option<usize>,
    files: VecDeque<PathBuf>,
}

impl NewestFiles {
    /// Creates a list that keeps at most `most` files.
    fn at_most(most: Option<usize>) -> Self {
        Self { most, files: VecDeque::new() }
    }

    /// Adds a file, and removes the oldest if there are too many.
    fn add(&mut self, file: PathBuf) {
        self.files.push_back(file);
        while self.most.is_some_and(|most| self.files.len() > most) {
            if let Some(oldest) = self.files.pop_front() {
                // The user may have removed it already.
                let _ = place::remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_time_is_part_of_the_name() {
        let then = jiff::civil::date(2026, 11, 21).at(7, 8, 9, 987_654_321);
        let now = then.to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        assert_eq!(
            stamped(Path::new("a/out.data"), &now),
            Path::new("a/out.data.2026112107080998")
        );
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let names: Vec<_> = numbered(Path::new("out.data.2026112107080998")).take(3).collect();
        let wanted =
            ["", "-01", "-02"].map(|end| PathBuf::from(format!("out.data.2026112107080998{end}")));
        assert_eq!(names, wanted);
        assert!(names.is_sorted());
    }

    #[test]
    fn the_oldest_go() {
        let dir = tempfile::tempdir().unwrap();
        let file = |n: u32| dir.path().join(n.to_string());
        let mut kept = NewestFiles::at_most(Some(2));
        for n in 0..5 {
            fs::write(file(n), "").unwrap();
            kept.add(file(n));
        }
        assert_eq!((0..5).filter(|n| file(*n).exists()).collect::<Vec<_>>(), [3, 4]);
    }
}
