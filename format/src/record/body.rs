//! Which type has which fields: the one table that decoding, encoding and naming share.

use super::{
    Aux, AuxOutputHwId, BpfEvent, CallchainDeferred, Cgroup, Comm, Context, ItraceStart, KSymbol, Lost, LostSamples,
    Mmap, Mmap2, Namespaces, ReadRecord, RecordHeader, SampleFields, SwitchCpuWide, Task, TextPoke, Throttle,
};
use crate::abi::RecordType;
use crate::bytes::{Cursor, Encoder};
use crate::error::Result;
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
            /// A sample, every field decoded.
            Sample(Box<SampleFields<'a>>),
            /// A context switch of a task (in or out: `misc`); no fields.
            Switch,
            /// A record whose fields are not known here, as found.
            Other(RecordType, &'a [u8]),
        }

        impl<'a> Body<'a> {
            /// The record's type.
            #[must_use]
            pub fn kind(&self) -> RecordType {
                match self {
                    $( Self::$variant(_) => RecordType::$kind, )*
                    Self::Mmap2(_) => RecordType::MMAP2,
                    Self::Read(_) => RecordType::READ,
                    Self::Sample(_) => RecordType::SAMPLE,
                    Self::Switch => RecordType::SWITCH,
                    Self::Other(kind, _) => *kind,
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
                    kind => Self::Other(kind, c.rest()),
                })
            }

            /// Writes the fields.
            pub(super) fn encode(&self, e: &mut Encoder) {
                match self {
                    $( Self::$variant(fields) => fields.encode(e), )*
                    Self::Mmap2(fields) => fields.encode(e),
                    Self::Read(fields) => fields.encode(e),
                    Self::Sample(fields) => fields.encode(e),
                    Self::Switch => {}
                    Self::Other(_, bytes) => e.bytes(bytes),
                }
            }
        }
    };
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
}
