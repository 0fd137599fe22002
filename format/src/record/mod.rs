//! Records: the items of the data stream.
//!
//! ```text
//! type u32 | misc u16 | size u16 | body … | trailer (struct sample_id) | [payload: AUXTRACE, TRACING_DATA]
//! '-------- header, 8 bytes -----'                                     ^ size ends here
//! ```
//!
//! [`RawRecord`] is what framing finds: a header and bytes, nothing believed beyond the size. [`RawRecord::decode`]
//! makes it a typed [`Record`] that borrows from the bytes, and [`Record::encode`] writes the same bytes back:
//! what a record has beyond the fields known here is kept in [`Record::rest`].
//!
//! One file for each family of records; samples, which are many and hot, are read lazily by [`Sample`].

mod auxtrace;
mod body;
mod header;
mod lost;
mod mmap;
mod other;
mod raw;
mod sample;
mod sample_fields;
mod task;
mod trailer;
mod user;

pub use auxtrace::{Auxtrace, AuxtraceError, AuxtraceInfo};
pub use body::Body;
pub use header::{Context, HEADER_SIZE, RecordHeader};
pub use lost::{Lost, LostSamples, Throttle};
pub use mmap::{Inode, Mmap, Mmap2, MmapBuildId, MmapIdentity};
pub use other::{
    Aux, AuxOutputHwId, BpfEvent, CallchainDeferred, Cgroup, ItraceStart, KSymbol, Namespace, Namespaces, ReadRecord,
    SwitchCpuWide, TextPoke,
};
pub use raw::{RawRecord, Record};
pub use sample::Sample;
pub use sample_fields::{BranchStack, Counter, ReadValues, Regs, SampleFields, StackUser};
pub use task::{Comm, Task};
pub use trailer::Trailer;
pub use user::{
    BpfMetadata, Compressed, Compressed2, CpuMap, EventUpdate, HeaderAttr, HeaderBuildId, HeaderEventType,
    HeaderFeature, HeaderTracingData, IdIndex, IdIndexEntry, Stat, StatConfig, StatRound, ThreadMap, TimeConv,
    TimeConvShort,
};

#[cfg(test)]
mod tests;
