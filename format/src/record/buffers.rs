//! The kernel's records about its buffers: LOST, LOST_SAMPLES, THROTTLE, UNTHROTTLE; about the AUX
//! area: AUX, ITRACE_START, AUX_OUTPUT_HW_ID.

use crate::abi::AuxFlags;
use crate::wire;

wire! {
    /// The ring was full (`PERF_RECORD_LOST`).
    pub struct Lost {
        /// The id of the event whose ring it was.
        pub id: u64,
        /// Number of records that did not fit.
        pub lost: u64,
    }

    /// Samples that the hardware or the ring lost (`PERF_RECORD_LOST_SAMPLES`); the event is in the
    /// trailer. Recorders also write it at the end, with what `PERF_FORMAT_LOST` read.
    pub struct LostSamples {
        /// Number of lost samples.
        pub lost: u64,
    }

    /// The kernel holds an event back, or lets it run again (`PERF_RECORD_THROTTLE`,
    /// `PERF_RECORD_UNTHROTTLE`).
    pub struct Throttle {
        /// The time, in nanoseconds of the perf clock.
        pub time: u64,
        /// The event.
        pub id: u64,
        /// The event that took the sample.
        pub stream_id: u64,
    }

    /// New data in the AUX area (`PERF_RECORD_AUX`).
    pub struct Aux {
        /// Its offset, in bytes since the area was mapped.
        pub aux_offset: u64 => hex,
        /// Its size in bytes.
        pub aux_size: u64 => hex,
        /// Flags: whether it is complete, and its format.
        pub flags: AuxFlags,
    }

    /// Instruction tracing began for a task (`PERF_RECORD_ITRACE_START`).
    pub struct ItraceStart {
        /// The process.
        pub pid: u32 => signed,
        /// The thread.
        pub tid: u32 => signed,
    }

    /// The hardware id that stands for an event in AUX output (`PERF_RECORD_AUX_OUTPUT_HW_ID`); the
    /// event is in the trailer.
    pub struct AuxOutputHwId {
        /// The id.
        pub hw_id: u64 => hex,
    }
}
