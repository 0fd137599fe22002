//! Messages of Perfetto's traces, as far as they are written. Fields whose 0 differs from their absence
//! are optional.
//!
//! Source: <https://github.com/google/perfetto/blob/main/protos/perfetto/trace/perfetto_trace.proto>.

use prost::Message;

/// A trace, or a part of one: traces that follow one another are one.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub(super) packets: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub(super) ftrace: Option<FtraceBundle>,
    #[prost(message, optional, tag = "6")]
    pub(super) clocks: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    /// Number of the sequence, whose packets share interned values; never 0.
    #[prost(uint32, tag = "10")]
    pub(super) sequence: u32,
    #[prost(message, optional, tag = "12")]
    pub(super) interned: Option<InternedData>,
    /// [`SEQUENCE_BEGINS`], [`NEEDS_SEQUENCE`].
    #[prost(uint32, tag = "13")]
    pub(super) sequence_flags: u32,
    #[prost(message, optional, tag = "45")]
    pub(super) system: Option<SystemInfo>,
    #[prost(message, optional, tag = "59")]
    pub(super) defaults: Option<PacketDefaults>,
    #[prost(message, optional, tag = "60")]
    pub(super) track: Option<TrackDescriptor>,
    #[prost(message, optional, tag = "66")]
    pub(super) sample: Option<PerfSample>,
}

/// Values that were interned before do not count.
pub(super) const SEQUENCE_BEGINS: u32 = 1;
/// The packet refers to interned values.
pub(super) const NEEDS_SEQUENCE: u32 = 2;

/// Times of several clocks at one moment.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(super) clocks: Vec<ClockTime>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct ClockTime {
    #[prost(uint32, tag = "1")]
    pub(super) clock: u32,
    #[prost(uint64, tag = "2")]
    pub(super) time: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub(super) names: Option<SystemNames>,
    #[prost(string, tag = "4")]
    pub(super) writer: String,
    #[prost(uint32, optional, tag = "8")]
    pub(super) cpus: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SystemNames {
    #[prost(string, tag = "1")]
    pub(super) system: String,
    #[prost(string, optional, tag = "3")]
    pub(super) release: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(super) machine: Option<String>,
}

/// A process or a thread.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, tag = "1")]
    pub(super) uuid: u64,
    #[prost(message, optional, tag = "3")]
    pub(super) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<ThreadDescriptor>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(string, tag = "6")]
    pub(super) name: String,
    #[prost(int64, optional, tag = "7")]
    pub(super) began: Option<i64>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub(super) tid: Option<i64>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PacketDefaults {
    #[prost(message, optional, tag = "12")]
    pub(super) samples: Option<SampleDefaults>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SampleDefaults {
    #[prost(message, optional, tag = "1")]
    pub(super) timebase: Option<Timebase>,
}

/// Event that samples are of.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Timebase {
    #[prost(uint64, optional, tag = "1")]
    pub(super) period: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) frequency: Option<u64>,
    #[prost(message, optional, tag = "5")]
    pub(super) event: Option<RawEvent>,
    #[prost(string, tag = "10")]
    pub(super) name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct RawEvent {
    #[prost(uint32, tag = "1")]
    pub(super) kind: u32,
    #[prost(uint64, tag = "2")]
    pub(super) config: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct PerfSample {
    #[prost(uint32, optional, tag = "1")]
    pub(super) cpu: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) pid: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub(super) tid: Option<u32>,
    #[prost(uint64, optional, tag = "4")]
    pub(super) callstack: Option<u64>,
    /// [`KERNEL_MODE`] or [`USER_MODE`].
    #[prost(int32, tag = "5")]
    pub(super) cpu_mode: i32,
    /// Sum of the periods on the CPU so far.
    #[prost(uint64, tag = "6")]
    pub(super) count: u64,
}

pub(super) const KERNEL_MODE: i32 = 1;
pub(super) const USER_MODE: i32 = 2;

/// Values by number, which are never 0.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedData {
    #[prost(message, repeated, tag = "5")]
    pub(super) functions: Vec<InternedText>,
    #[prost(message, repeated, tag = "6")]
    pub(super) frames: Vec<InternedFrame>,
    #[prost(message, repeated, tag = "7")]
    pub(super) callstacks: Vec<Callstack>,
    #[prost(message, repeated, tag = "16")]
    pub(super) build_ids: Vec<InternedText>,
    #[prost(message, repeated, tag = "17")]
    pub(super) mapping_paths: Vec<InternedText>,
    #[prost(message, repeated, tag = "18")]
    pub(super) source_paths: Vec<InternedText>,
    #[prost(message, repeated, tag = "19")]
    pub(super) mappings: Vec<InternedMapping>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct InternedText {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) text: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct InternedMapping {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) build_id: u64,
    #[prost(uint64, repeated, packed = "false", tag = "7")]
    pub(super) path: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct InternedFrame {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) function: u64,
    #[prost(uint64, tag = "3")]
    pub(super) mapping: u64,
    #[prost(uint64, tag = "4")]
    pub(super) address: u64,
    #[prost(uint64, tag = "5")]
    pub(super) source_path: u64,
    #[prost(uint32, tag = "6")]
    pub(super) line: u32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Callstack {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// Frames, outermost first.
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub(super) frames: Vec<u64>,
}

/// Events of a CPU, in order of time.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(super) cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(super) events: Vec<FtraceEvent>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub(super) timestamp: Option<u64>,
    /// Thread that ran.
    #[prost(uint32, optional, tag = "2")]
    pub(super) tid: Option<u32>,
    #[prost(message, optional, tag = "4")]
    pub(super) switch: Option<SchedSwitch>,
    #[prost(message, optional, tag = "20")]
    pub(super) waking: Option<SchedWaking>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SchedSwitch {
    #[prost(string, optional, tag = "1")]
    pub(super) prev_comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(super) prev_tid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) prev_priority: Option<i32>,
    /// 0 for a thread that could run on.
    #[prost(int64, optional, tag = "4")]
    pub(super) prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub(super) next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    pub(super) next_tid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub(super) next_priority: Option<i32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SchedWaking {
    #[prost(string, optional, tag = "1")]
    pub(super) comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(super) tid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) priority: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(super) success: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(super) target_cpu: Option<i32>,
}
