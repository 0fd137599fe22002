//! The kernel's records about the AUX area: AUX, ITRACE_START, AUX_OUTPUT_HW_ID.

use crate::abi::AuxFlags;
use crate::wire;

wire! {
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
