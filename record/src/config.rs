//! What the user asked for, free of how it was spelt on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::event::EventSpec;
use crate::messages::Verbosity;
use crate::target::Target;

/// A recording, as asked for.
#[derive(Clone, Debug)]
pub struct Config {
    /// The events; none: the default event.
    pub events: Vec<EventSpec>,
    /// How often to sample.
    pub rate: Rate,
    /// Whether samples carry callchains.
    pub callchain: bool,
    /// Whether samples carry data addresses (`-d`).
    pub data_address: bool,
    /// Whom to record.
    pub target: Target,
    /// The CPUs to record on (`-C`); none: all that are online.
    pub cpus: Option<Vec<u32>>,
    /// What to run; empty: nothing.
    pub command: Vec<OsString>,
    /// The size of each ring's data area, if asked for.
    pub ring: Option<RingSize>,
    /// The file to write.
    pub output: PathBuf,
    /// How much to say.
    pub verbosity: Verbosity,
    /// The command line, as the file's header keeps it.
    pub cmdline: Vec<String>,
}

/// How often to sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rate {
    /// Nothing was said: 4000 Hz, or what the kernel allows.
    #[default]
    Default,
    /// So many samples a second.
    Hz(u64),
    /// As many as the kernel allows.
    Max,
    /// One sample every so many events.
    Period(u64),
}

/// The size of a ring's data area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingSize {
    /// In pages.
    Pages(u64),
    /// In bytes.
    Bytes(u64),
}
