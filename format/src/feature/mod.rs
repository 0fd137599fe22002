//! Header features: what the file says about the machine and the recording.
//!
//! In file mode each has a section after the data; in pipe mode each comes in a FEATURE record. Source: perf's
//! `perf.data-file-format`. One file for each kind of layout; every feature decodes what it encodes.

mod build_ids;
mod event_desc;
mod id;
mod numbers;
mod strings;

pub use build_ids::{BuildIdEvent, BuildIds};
pub use event_desc::{DescribedEvent, EventDesc, Ids};
pub use id::FeatureId;
pub use numbers::{NrCpus, PmuMapping, PmuMappings, SampleTime, TotalMem};
pub use strings::{Arch, Cmdline, CpuDesc, CpuId, HeaderString, Hostname, OsRelease, Version};

use crate::bytes::{Cursor, Encoder};
use crate::error::Result;

/// A header feature that can be read and written.
pub trait Feature<'a>: Sized {
    /// Its number.
    const ID: FeatureId;

    /// Reads it from its section.
    ///
    /// # Errors
    /// The section is too short for what it says.
    fn decode(c: &mut Cursor<'a>) -> Result<Self>;

    /// Writes its section.
    fn encode(&self, e: &mut Encoder);
}
