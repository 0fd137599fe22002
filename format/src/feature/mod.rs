//! Header features: what the file says about the machine and the recording.
//!
//! In file mode each has a section after the data; in pipe mode each comes in a FEATURE record. Source: perf's
//! `perf.data-file-format`. One file for each kind of layout; every feature decodes what it encodes.

/// Makes features of types that are declared by [`wire!`](crate::wire!).
macro_rules! wire_features {
    ($($name:ident $(<$life:lifetime>)? = $id:ident;)*) => {$(
        impl<'a> $crate::feature::Feature<'a> for $name $(<$life>)? {
            const ID: $crate::feature::FeatureId = $crate::feature::FeatureId::$id;
            fn decode(c: &mut $crate::bytes::Cursor<'a>) -> $crate::error::Result<Self> {
                $crate::wire::Wire::decode(c, stringify!($id))
            }
            fn encode(&self, e: &mut $crate::bytes::Encoder) -> $crate::error::Result<()> {
                $crate::wire::Wire::encode(self, e)
            }
        }
    )*};
}

mod bpf;
mod build_ids;
mod clock;
mod event_desc;
mod id;
mod numbers;
mod pmu;
mod strings;
mod topology;
mod tracing;

pub use bpf::{BpfBtf, BpfBtfEntry, BpfProgInfo, BpfProgInfoEntry};
pub use build_ids::{BuildIdEvent, BuildIds};
pub use clock::{ClockData, ClockId, Compression, DirFormat};
pub use event_desc::{DescribedEvent, EventDesc, Ids};
pub use id::FeatureId;
pub use numbers::{NrCpus, PmuMapping, PmuMappings, SampleTime, TotalMem};
pub use pmu::{CpuPmuCaps, GroupDesc, GroupDescEntry, PmuCap, PmuCaps, PmuCapsEntry};
pub use strings::{Arch, Cmdline, CpuDesc, CpuId, HeaderString, Hostname, OsRelease, Version};
pub use topology::{
    CacheLevel, Caches, CpuTopology, CpuTopologyTail, HybridCores, HybridTopology, MemNode, MemTopology, NumaNode,
    NumaTopology,
};
pub use tracing::{AuxtraceIndex, BranchStackMark, StatMark, TracingData};

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
    ///
    /// # Errors
    /// The format cannot represent the feature; what was written before stays in `e`.
    fn encode(&self, e: &mut Encoder) -> Result<()>;
}
