//! Computation of the moment at which each record of a file takes effect.

use std::ops::Range;
use std::sync::OnceLock;

use recrep_format::abi::RecordType;
use recrep_format::attr::AttrTable;
use recrep_format::read::Mode;

use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::timeline::{FlushLimits, Moment, is_time};

/// Computes the moments of a file's records. The flush limits are computed only when a record without a time follows
/// the first round, which is rare.
#[derive(Debug)]
pub struct Clock<'f> {
    attrs: &'f AttrTable,
    pieces: &'f [Piece<'f>],
    first_round: u64,
    ordered: bool,
    limits: OnceLock<FlushLimits>,
}

impl<'f> Clock<'f> {
    /// Creates the clock of a file. Without `sample_id_all` the side-band has no times, so the whole file is read in
    /// file order; except in pipe mode, where perf decides before it has read the attrs.
    pub fn new(attrs: &'f AttrTable, mode: Mode, pieces: &'f [Piece<'f>], first_round: Option<u64>) -> Self {
        let all = attrs.entries().first().is_some_and(|e| e.attr.sample_id_all());
        Self {
            attrs,
            pieces,
            first_round: first_round.unwrap_or(u64::MAX),
            ordered: all || mode == Mode::Pipe,
            limits: OnceLock::new(),
        }
    }

    /// Returns the moment of the record at `offset` with this time.
    #[inline]
    pub fn moment(&self, time: Option<u64>, offset: u64) -> Moment {
        match time {
            _ if !self.ordered => Moment::timed(0, offset),
            Some(time) if is_time(time) => Moment::timed(time, offset),
            _ => self.untimed(offset),
        }
    }

    /// Returns times that records have only at these moments.
    pub fn times_within(&self, moments: &Range<Moment>) -> Range<u64> {
        if self.ordered { moments.start.time().saturating_add(1)..moments.end.time() } else { 0..0 }
    }

    #[cold]
    fn untimed(&self, offset: u64) -> Moment {
        if offset < self.first_round {
            return Moment::untimed(0, offset);
        }
        Moment::untimed(self.limits.get_or_init(|| self.find_limits()).at(offset), offset)
    }

    fn find_limits(&self) -> FlushLimits {
        let (mut limits, mut buffer) = (FlushLimits::default(), UnpackBuffer::default());
        for piece in self.pieces {
            for raw in piece.records(&mut buffer) {
                if raw.header.kind == RecordType::FINISHED_ROUND {
                    limits.round(raw.offset);
                } else if let Some(time) = self.attrs.time_of(&raw) {
                    limits.record(time);
                }
            }
        }
        limits
    }
}
