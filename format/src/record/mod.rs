//! Records: the items of the data stream.
//!
//! ```text
//! type u32 | misc u16 | size u16 | body … | trailer (struct sample_id) | [payload: AUXTRACE, TRACING_DATA]
//! '-------- header, 8 bytes -----'                                     ^ size ends here
//! ```
//!
//! [`RawRecord`] is what framing finds: a header and bytes, nothing believed beyond the size.
//! [`RawRecord::decode`] makes it a typed [`Record`] that borrows from the bytes, and
//! [`Record::encode`] writes the same bytes back: what a record has beyond the fields known here is
//! kept in [`Record::rest`].
//!
//! Samples, which are many and hot, are read lazily by [`Sample`]. One file for each family of
//! records:
//!
//! | file | records |
//! |---|---|
//! | `sample`, `sample_fields` | SAMPLE |
//! | `read`, `callchain`, `branch_stack`, `regs` | its fields of variable size; READ, CALLCHAIN_DEFERRED |
//! | `mmap`, `task`, `kernel_code` | mappings; threads, namespaces, cgroups; KSYMBOL, BPF_EVENT, TEXT_POKE |
//! | `buffers` | LOST and THROTTLE; AUX |
//! | `user`, `auxtrace`, `id_index`, `thread_map`, `cpu_map`, `event_update`, `stat` | perf's own |
//! | `sample_id` | the trailer of the kernel's records |

mod auxtrace;
mod body;
mod branch_stack;
mod buffers;
mod callchain;
mod cpu_map;
mod event_update;
mod header;
mod id_index;
mod kernel_code;
mod mmap;
mod raw;
mod read;
mod regs;
mod sample;
mod sample_fields;
mod sample_id;
mod schedstat;
mod stat;
mod synth;
mod task;
mod thread_map;
mod user;

pub use auxtrace::{Auxtrace, AuxtraceError, AuxtraceInfo};
pub use body::Body;
pub use branch_stack::BranchStack;
pub use buffers::{Aux, AuxOutputHwId, ItraceStart, Lost, LostSamples, Throttle};
pub use callchain::{CallchainDeferred, CallchainItem, CallchainItems};
pub use cpu_map::{CpuMap, CpuMask, CpuRange, CpuSet};
pub use event_update::{EventProperty, EventUpdate, Scale};
pub use header::{Context, HEADER_SIZE, RecordHeader};
pub use id_index::{Guest, IdIndex, IdIndexEntry};
pub use kernel_code::{BpfEvent, KSymbol, TextPoke};
pub use mmap::{Inode, Mmap, Mmap2, MmapBuildId, MmapIdentity};
pub use raw::{RawRecord, Record};
pub use read::{Counter, ReadRecord, ReadValues};
pub use regs::Regs;
pub use sample::{FixedFields, Sample};
pub use sample_fields::{SampleFields, StackUser};
pub use sample_id::SampleId;
pub use schedstat::{SchedstatCpu, SchedstatDomain};
pub use stat::{Stat, StatConfig, StatConfigEntry, StatRound};
pub use synth::SynthData;
pub use task::{Cgroup, Comm, Namespace, Namespaces, SwitchCpuWide, Task};
pub use thread_map::{ThreadMap, ThreadMapEntry};
pub use user::{
    BpfMetadata, Compressed, Compressed2, HeaderAttr, HeaderBuildId, HeaderEventType,
    HeaderFeature, HeaderTracingData, TimeConv, TimeConvShort,
};

#[cfg(test)]
mod tests;
