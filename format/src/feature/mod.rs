//! Header features: what the file says about the machine and the recording.
//!
//! In file mode each has a section after the data; in pipe mode each comes in a FEATURE record.
//! Source: perf's `perf.data-file-format`. One file for each kind of layout; every feature decodes
//! what it encodes. [`FeatureBody`] decodes a feature by its number; the table of them is in one
//! place.

mod body;
mod bpf;
mod build_ids;
mod bundle;
mod chain_ends;
mod event_desc;
mod id;
mod names;
mod numbers;
mod pmu;
mod recording;
mod simpleperf;
mod strings;
mod topology;
pub mod tracing;

pub use body::FeatureBody;
pub use bpf::{BpfBtf, BpfBtfEntry, BpfProgInfo, BpfProgInfoEntry};
pub use build_ids::{BuildIdEvent, BuildIds, GoBuildIds};
pub use bundle::{
    BodyCompression, Bundle, BundledFrame, BundledFunction, BundledImage, BundledKind,
    BundledModule, BundledPlace, BundledSection, BundledSegment, BundledVersion, Counted,
    bundle_body, bundle_body_with, bundled_modules, bundled_versions,
};
pub use chain_ends::{ChainCause, CutChains, UnwoundChains};
pub use event_desc::{DescribedEvent, EventDesc, Ids};
pub use id::FeatureId;
pub use numbers::{CacheLineSize, EMachine, NrCpus, PmuMapping, PmuMappings, SampleTime, TotalMem};
pub use pmu::{CpuPmuCaps, GroupDesc, GroupDescEntry, PmuCap, PmuCaps, PmuCapsEntry};
pub use recording::{
    AuxtraceIndex, BranchStackMark, ClockData, ClockId, Compression, DirFormat, StatMark,
};
pub use simpleperf::{
    SimpleperfDebugUnwind, SimpleperfDebugUnwindFiles, SimpleperfEtmBranchList, SimpleperfFile,
    SimpleperfFileKind, SimpleperfFiles, SimpleperfFiles2, SimpleperfInitMap, SimpleperfMetaInfo,
    SimpleperfSymbol,
};
pub use strings::{Arch, Cmdline, CpuDesc, CpuId, HeaderString, Hostname, OsRelease, Version};
pub use topology::{
    CacheLevel, Caches, CpuDomainInfo, CpuDomains, CpuTopology, CpuTopologyTail, HybridCores,
    HybridTopology, MemNode, MemTopology, NumaNode, NumaTopology, SchedDomain,
};
pub use tracing::TracingData;

use crate::wire::Wire;

/// The type of a header feature, whose [`Wire`] is the layout of its section.
pub trait Feature<'a>: Wire<'a> {
    /// Number of the feature.
    const ID: FeatureId;

    /// Decodes the section of the feature.
    ///
    /// # Errors
    /// Returns an error if the section is too short, or makes no sense.
    fn of_section(c: &mut crate::bytes::Cursor<'a>) -> crate::error::Result<Self> {
        Self::decode(c, Self::ID.name().unwrap_or("a feature"))
    }
}
