//! What prints a profile.

use std::io::{self, Write};

use crate::engine::facts::RecordingFacts;
use crate::profile::Profile;
use crate::query::{Needs, Query};
use crate::terminal::style::Screen;

/// An output of a report.
pub(crate) trait Export: Sync {
    fn needs(&self) -> Needs;

    /// Returns the sort keys if none are asked for; `None` for those of the mode.
    fn default_keys(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether it is for people: it has headings, colours, column widths and separators.
    fn is_for_people(&self) -> bool {
        false
    }

    /// Returns whether it prints plain tables only: no hierarchy, no group, no statistics.
    fn is_plain(&self) -> bool {
        false
    }

    /// Returns whether it says something of a recording without samples, such as the numbers of
    /// other records.
    fn has_other_records(&self) -> bool {
        false
    }

    /// Returns whether it can show what the counters of threads counted.
    fn has_threads(&self) -> bool {
        self.is_for_people() || self.has_other_records()
    }

    /// Writes the answer to a query.
    fn write(&self, answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()>;
}

/// An output that is the file of one input, for other programs.
pub(crate) trait FileExport: Sync {
    /// Returns the end of the names of its files.
    fn extension(&self) -> &'static str;

    /// Returns whether it shows samples one by one in time, which have no labels, and threads over
    /// time.
    fn shows_time(&self) -> bool {
        false
    }

    /// Adds what the file needs to a query whose columns are the labels of samples.
    fn complete(&self, query: &mut Query);

    /// Writes the profile of an input, with the facts about its recording.
    fn write(
        &self,
        profile: &Profile,
        query: &Query,
        facts: &RecordingFacts,
        out: &mut dyn Write,
    ) -> io::Result<()>;
}

/// What an export prints.
#[derive(Clone, Copy)]
pub(crate) struct Answer<'p> {
    pub(crate) profile: &'p Profile,
    /// Its query, with the columns that are shown.
    pub(crate) query: &'p Query,
    pub(crate) screen: Screen,
}
