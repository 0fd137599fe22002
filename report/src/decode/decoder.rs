//! What a decoder of a kind of trace has.

use std::fmt::Debug;

use super::gaps::Gaps;
use super::samples::{DecodedEvents, SampleWriter};
use crate::query::Letter;

/// Decodes one kind of trace.
pub(super) trait TraceDecoder: Debug + Send + Sync {
    /// Returns the number of bytes of trace in each part, in the order of their samples.
    fn parts(&self) -> Vec<usize>;

    /// Returns the time at which each part begins, 0 where it is not known.
    fn begins(&self) -> Vec<u64>;

    /// Writes the samples of a part, and counts what could not be decoded. Which parts were decoded
    /// before, and by whom, makes no difference.
    fn decode(&self, part: usize, samples: &mut SampleWriter, gaps: &mut Gaps);
}

/// A decoder with its events.
pub(super) struct Decoding<'i> {
    pub decoder: Box<dyn TraceDecoder + 'i>,
    pub events: DecodedEvents,
    /// Letters for which it has no samples, each with the reason.
    pub unserved: Vec<(Letter, &'static str)>,
}
