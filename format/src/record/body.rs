//! Types of records and their fields: the one table that decoding, encoding and naming share.

use super::{
    Aux, AuxOutputHwId, Auxtrace, AuxtraceError, AuxtraceInfo, BpfEvent, BpfMetadata,
    CallchainDeferred, Cgroup, Comm, Compressed, Compressed2, Context, CpuMap, EventUpdate,
    HeaderAttr, HeaderBuildId, HeaderEventType, HeaderFeature, HeaderTracingData, IdIndex,
    ItraceStart, KSymbol, Lost, LostSamples, Mmap, Mmap2, Namespaces, ReadRecord, RecordHeader,
    SampleFields, SchedstatCpu, SchedstatDomain, Stat, StatConfig, StatRound, SwitchCpuWide, Task,
    TextPoke, ThreadMap, Throttle, TimeConv,
};
use crate::abi::RecordType;
use crate::bytes::{Cursor, Encoder};
use crate::error::Result;
use crate::fields::{Fields, Value};
use crate::wire::Wire;

macro_rules! bodies {
    ($($(#[$meta:meta])* $variant:ident($type:ty) = $kind:ident;)*) => {
        /// The fields of a record, by its type.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Body<'a> {
            $( $(#[$meta])* $variant($type), )*
            /// A mapping with device and inode, or with a build ID.
            Mmap2(Mmap2<'a>),
            /// A counter's value.
            Read(ReadRecord<'a>),
            /// A sample, every field of its event decoded; without fields if its event is unknown.
            Sample(Box<SampleFields<'a>>),
            /// A context switch of a task (in or out: `misc`); no fields.
            Switch,
            /// The end of a round; no fields.
            FinishedRound,
            /// The end of the synthesized records; no fields.
            FinishedInit,
            /// A record whose fields are not known here, as found.
            Other(RecordType, &'a [u8]),
        }

        impl<'a> Body<'a> {
            /// Returns the record's type.
            pub fn kind(&self) -> RecordType {
                match self {
                    $( Self::$variant(_) => RecordType::$kind, )*
                    Self::Mmap2(_) => RecordType::MMAP2,
                    Self::Read(_) => RecordType::READ,
                    Self::Sample(_) => RecordType::SAMPLE,
                    Self::Switch => RecordType::SWITCH,
                    Self::FinishedRound => RecordType::FINISHED_ROUND,
                    Self::FinishedInit => RecordType::FINISHED_INIT,
                    Self::Other(kind, _) => *kind,
                }
            }

            /// Returns the record's fields, which have names; `None` for a type without fields, and
            /// for one that is not known here.
            fn named(&self) -> Option<&dyn Fields> {
                match self {
                    $( Self::$variant(fields) => Some(fields), )*
                    Self::Mmap2(fields) => Some(fields),
                    Self::Read(fields) => Some(fields),
                    Self::Sample(fields) => Some(&**fields),
                    Self::Switch | Self::FinishedRound | Self::FinishedInit | Self::Other(..) => None,
                }
            }

            /// Reads the fields of a record with this header.
            pub(super) fn decode(c: &mut Cursor<'a>, header: RecordHeader, cx: &Context<'_>) -> Result<Self> {
                Ok(match header.kind {
                    $( RecordType::$kind => Self::$variant(Wire::decode(c, stringify!($variant))?), )*
                    RecordType::MMAP2 => Self::Mmap2(Mmap2::decode(c, header.misc)?),
                    RecordType::READ => Self::Read(ReadRecord::decode(c, cx.sample.read_format)?),
                    RecordType::SAMPLE => Self::Sample(Box::new(SampleFields::decode(c, cx.sample)?)),
                    RecordType::SWITCH => Self::Switch,
                    RecordType::FINISHED_ROUND => Self::FinishedRound,
                    RecordType::FINISHED_INIT => Self::FinishedInit,
                    kind => Self::Other(kind, c.rest()),
                })
            }

            /// Writes the fields of a record with this `misc`.
            pub(super) fn encode(&self, e: &mut Encoder, misc: u16) -> Result<()> {
                match self {
                    $( Self::$variant(fields) => fields.encode(e), )*
                    Self::Mmap2(fields) => fields.encode(e, misc),
                    Self::Read(fields) => fields.encode(e),
                    Self::Sample(fields) => fields.encode(e),
                    Self::Switch | Self::FinishedRound | Self::FinishedInit => Ok(()),
                    Self::Other(_, bytes) => bytes.encode(e),
                }
            }
        }
    };
}

impl Fields for Body<'_> {
    fn each<'v>(&'v self, visit: &mut dyn FnMut(&'static str, Value<'v>)) {
        match (self, self.named()) {
            (_, Some(fields)) => fields.each(visit),
            (Self::Other(_, bytes), None) => visit("not_decoded", Value::Bytes(bytes)),
            (_, None) => {}
        }
    }
}

bodies! {
    /// A file mapped executable.
    Mmap(Mmap<'a>) = MMAP;
    /// Records that the ring had no room for.
    Lost(Lost) = LOST;
    /// A thread's name.
    Comm(Comm<'a>) = COMM;
    /// A task ended.
    Exit(Task) = EXIT;
    /// An event is held back.
    Throttle(Throttle) = THROTTLE;
    /// An event runs again.
    Unthrottle(Throttle) = UNTHROTTLE;
    /// A task began.
    Fork(Task) = FORK;
    /// New data in the AUX area.
    Aux(Aux) = AUX;
    /// Instruction tracing began.
    ItraceStart(ItraceStart) = ITRACE_START;
    /// Samples that were lost.
    LostSamples(LostSamples) = LOST_SAMPLES;
    /// A context switch of a CPU.
    SwitchCpuWide(SwitchCpuWide) = SWITCH_CPU_WIDE;
    /// The namespaces of a task.
    Namespaces(Namespaces<'a>) = NAMESPACES;
    /// A kernel symbol came or went.
    KSymbol(KSymbol<'a>) = KSYMBOL;
    /// A BPF program came or went.
    BpfEvent(BpfEvent) = BPF_EVENT;
    /// A cgroup.
    Cgroup(Cgroup<'a>) = CGROUP;
    /// The kernel changed its text.
    TextPoke(TextPoke<'a>) = TEXT_POKE;
    /// The hardware id behind AUX output.
    AuxOutputHwId(AuxOutputHwId) = AUX_OUTPUT_HW_ID;
    /// A deferred user callchain.
    CallchainDeferred(CallchainDeferred<'a>) = CALLCHAIN_DEFERRED;
    /// An attr and its ids.
    HeaderAttr(HeaderAttr<'a>) = ATTR;
    /// A tracepoint's id and name.
    HeaderEventType(HeaderEventType<'a>) = EVENT_TYPE;
    /// The formats of tracepoints follow.
    HeaderTracingData(HeaderTracingData) = TRACING_DATA;
    /// The build ID of a file.
    HeaderBuildId(HeaderBuildId<'a>) = BUILD_ID;
    /// The CPU and thread of each id.
    IdIndex(IdIndex<'a>) = ID_INDEX;
    /// The kind of AUX data.
    AuxtraceInfo(AuxtraceInfo<'a>) = AUXTRACE_INFO;
    /// AUX data follows.
    Auxtrace(Auxtrace) = AUXTRACE;
    /// An error in hardware tracing.
    AuxtraceError(AuxtraceError<'a>) = AUXTRACE_ERROR;
    /// The threads that were recorded.
    ThreadMap(ThreadMap) = THREAD_MAP;
    /// The CPUs that were recorded.
    CpuMap(CpuMap<'a>) = CPU_MAP;
    /// The settings of `perf stat record`.
    StatConfig(StatConfig<'a>) = STAT_CONFIG;
    /// A count.
    Stat(Stat) = STAT;
    /// The end of an interval.
    StatRound(StatRound) = STAT_ROUND;
    /// A property of an event.
    EventUpdate(EventUpdate<'a>) = EVENT_UPDATE;
    /// The conversion between clocks.
    TimeConv(TimeConv) = TIME_CONV;
    /// A header feature.
    HeaderFeature(HeaderFeature<'a>) = FEATURE;
    /// Compressed records.
    Compressed(Compressed<'a>) = COMPRESSED;
    /// Compressed records, padded.
    Compressed2(Compressed2<'a>) = COMPRESSED2;
    /// Facts about a BPF program, by the program itself.
    BpfMetadata(BpfMetadata<'a>) = BPF_METADATA;
    /// Counts of a CPU's scheduler.
    SchedstatCpu(SchedstatCpu) = SCHEDSTAT_CPU;
    /// Counts of a scheduling domain.
    SchedstatDomain(SchedstatDomain<'a>) = SCHEDSTAT_DOMAIN;
}
