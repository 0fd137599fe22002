//! Losses and throttling: LOST, LOST_SAMPLES, THROTTLE, UNTHROTTLE.

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
}
