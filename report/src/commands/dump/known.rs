//! Facts about the file that are needed to print the fields of its records.

use recrep_format::abi::RegsArch;
use recrep_format::attr::AttrEntry;
use recrep_format::feature::{Arch, NrCpus};
use recrep_format::read::File;

use crate::terminal::escape::escape;

pub(super) struct FileFacts<'f> {
    pub(super) file: &'f File<'f>,
    /// Names of the events, escaped.
    pub(super) events: Vec<String>,
    /// Architecture of the recorded machine, if its registers are known.
    pub(super) registers: Option<RegsArch>,
    /// Number of CPUs of the recorded machine; 0 if unknown.
    pub(super) cpus: u32,
}

impl<'f> FileFacts<'f> {
    pub(super) fn of(file: &'f File<'f>) -> Self {
        let entries = file.attrs.entries().iter();
        let name = |entry: &AttrEntry| escape(&entry.event_name()).into_owned();
        let arch = file.feature::<Arch<'_>>().and_then(Result::ok);
        let cpus = file.feature::<NrCpus>().and_then(Result::ok).map_or(0, |cpus| cpus.available);
        let registers = arch.and_then(|arch| RegsArch::of(&arch.0.to_text()));
        Self { file, events: entries.map(name).collect(), registers, cpus }
    }
}
