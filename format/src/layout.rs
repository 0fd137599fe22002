//! Places of the fields: computed once for each attr, so that no sample is walked to find its ip.
//!
//! A sample begins with fields of fixed size, in the order below; each is there when its bit is set
//! in `sample_type`. So their places follow from the attr alone. After them come fields whose size
//! only the sample knows (READ, CALLCHAIN, RAW, …), found by walking from
//! [`SampleLayout::variable`].
//!
//! ```text
//! header  IDENTIFIER  IP  PID,TID  TIME  ADDR  ID  STREAM_ID  CPU,res  PERIOD | READ  CALLCHAIN  RAW …
//! 0       8           each 8 bytes, there or not                               | walked, and only when asked
//! ```
//!
//! Records that are not samples end, where the attr has `sample_id_all`, in a trailer
//! (`struct sample_id`):
//!
//! ```text
//! … record's own fields | PID,TID  TIME  ID  STREAM_ID  CPU,res  IDENTIFIER | end of record
//! ```
//!
//! Source: perf_event_open(2), "MMAP layout"; the kernel's `perf_output_sample` and
//! `perf_event__header_size`.

use crate::abi::{BranchSampleType, ReadFormat, SampleType};
use crate::attr::Attr;

/// The place of a fixed field: bytes from the start of the record. A field that is not there has
/// a place that lies beyond every record, so that one bounds check answers both questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u16);

impl Slot {
    /// Not there.
    pub const NONE: Self = Self(u16::MAX);

    /// Returns the byte in the record; beyond its end when the field is not there.
    #[inline]
    pub const fn at(self) -> usize {
        self.0 as usize
    }

    /// Returns whether the field is there.
    pub const fn is_some(self) -> bool {
        self.0 != u16::MAX
    }
}

/// The fields of a sample in the order in which the kernel writes them (`perf_output_sample`); the
/// first ones have fixed places.
pub const ORDER: &[SampleType] = &[
    SampleType::IDENTIFIER,
    SampleType::IP,
    SampleType::TID,
    SampleType::TIME,
    SampleType::ADDR,
    SampleType::ID,
    SampleType::STREAM_ID,
    SampleType::CPU,
    SampleType::PERIOD,
    SampleType::READ,
    SampleType::CALLCHAIN,
    SampleType::RAW,
    SampleType::BRANCH_STACK,
    SampleType::REGS_USER,
    SampleType::STACK_USER,
    SampleType::WEIGHT,
    SampleType::WEIGHT_STRUCT,
    SampleType::DATA_SRC,
    SampleType::TRANSACTION,
    SampleType::REGS_INTR,
    SampleType::PHYS_ADDR,
    SampleType::CGROUP,
    SampleType::DATA_PAGE_SIZE,
    SampleType::CODE_PAGE_SIZE,
    SampleType::AUX,
];

/// Number of fields in [`ORDER`] that have fixed places.
const FIXED: usize = 9;

/// The last field to walk to in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpTo(u32);

impl UpTo {
    /// The walk to the last field.
    pub(crate) const ALL: Self = Self(u32::MAX);

    /// Returns the walk up to this field. Made once, as it looks through all fields.
    #[allow(clippy::indexing_slicing, reason = "the place is below the length")]
    pub const fn field(last: SampleType) -> Self {
        let mut place = 0;
        while place < ORDER.len() - 1 && ORDER[place].bits() != last.bits() {
            place += 1;
        }
        Self(u32::MAX >> (31 - place))
    }
}

/// The places of the fields of an attr's samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleLayout {
    /// The attr's `sample_type`.
    pub sample_type: SampleType,
    /// The attr's `read_format`: how READ is laid out.
    pub read_format: ReadFormat,
    /// The attr's `branch_sample_type`: how BRANCH_STACK is laid out.
    pub branch_sample_type: BranchSampleType,
    /// The mask of the user registers in REGS_USER.
    pub regs_user: u64,
    /// The mask of the registers in REGS_INTR.
    pub regs_intr: u64,
    /// `PERF_SAMPLE_IDENTIFIER`.
    pub identifier: Slot,
    /// `PERF_SAMPLE_IP`.
    pub ip: Slot,
    /// `PERF_SAMPLE_TID`: pid, then tid, 4 bytes each.
    pub tid: Slot,
    /// `PERF_SAMPLE_TIME`.
    pub time: Slot,
    /// `PERF_SAMPLE_ADDR`.
    pub addr: Slot,
    /// `PERF_SAMPLE_ID`.
    pub id: Slot,
    /// `PERF_SAMPLE_STREAM_ID`.
    pub stream_id: Slot,
    /// `PERF_SAMPLE_CPU`: cpu, then a reserved word, 4 bytes each.
    pub cpu: Slot,
    /// `PERF_SAMPLE_PERIOD`.
    pub period: Slot,
    /// The place of the first field of variable size.
    pub variable: Slot,
    /// The fields of [`ORDER`] that must be walked to, a bit each.
    walked: u32,
}

impl SampleLayout {
    /// Returns the layout of the samples of `attr`.
    pub fn of(attr: &Attr) -> Self {
        let mut next = 8u16;
        let mut slot = |bit: SampleType| {
            if !attr.sample_type.contains(bit) {
                return Slot::NONE;
            }
            let here = next;
            next += 8;
            Slot(here)
        };
        let mut walked = 0;
        for (place, bit) in ORDER.iter().enumerate().skip(FIXED) {
            walked |= u32::from(attr.sample_type.contains(*bit)) << place;
        }
        Self {
            sample_type: attr.sample_type,
            read_format: attr.read_format,
            branch_sample_type: attr.branch_sample_type,
            regs_user: attr.sample_regs_user,
            regs_intr: attr.sample_regs_intr,
            identifier: slot(SampleType::IDENTIFIER),
            ip: slot(SampleType::IP),
            tid: slot(SampleType::TID),
            time: slot(SampleType::TIME),
            addr: slot(SampleType::ADDR),
            id: slot(SampleType::ID),
            stream_id: slot(SampleType::STREAM_ID),
            cpu: slot(SampleType::CPU),
            period: slot(SampleType::PERIOD),
            variable: Slot(next),
            walked,
        }
    }

    /// Returns the fields that must be walked to, in their order.
    #[inline]
    pub(crate) fn walked(&self, last: UpTo) -> impl Iterator<Item = SampleType> + use<> {
        let mut left = self.walked & last.0;
        std::iter::from_fn(move || {
            let bit = ORDER.get(left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(*bit)
        })
    }

    /// Returns the place of the event's id: IDENTIFIER, else ID.
    pub fn event_id(&self) -> Slot {
        if self.identifier.is_some() { self.identifier } else { self.id }
    }
}

/// The places of the fields of an attr's trailer (`struct sample_id`), in bytes before the end of
/// the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleIdLayout {
    /// The bits of `sample_type` that a trailer holds.
    pub fields: SampleType,
    /// Size in bytes; 0 without `sample_id_all` in the attr.
    pub size: usize,
    /// TIME, in bytes before the end of the record.
    pub time: Option<usize>,
    /// IDENTIFIER or ID, in bytes before the end of the record.
    pub event_id: Option<usize>,
}

impl SampleIdLayout {
    /// No trailer.
    pub const NONE: Self =
        Self { fields: SampleType::empty(), size: 0, time: None, event_id: None };

    /// The fields a trailer may have, in their order.
    pub const ORDER: &[SampleType] = &[
        SampleType::TID,
        SampleType::TIME,
        SampleType::ID,
        SampleType::STREAM_ID,
        SampleType::CPU,
        SampleType::IDENTIFIER,
    ];

    /// Returns the layout of the trailers of `attr`.
    pub fn of(attr: &Attr) -> Self {
        if !attr.sample_id_all() {
            return Self::NONE;
        }
        let mut layout = Self::NONE;
        for bit in Self::ORDER.iter().copied().rev().filter(|bit| attr.sample_type.contains(*bit)) {
            layout.size += 8;
            layout.fields |= bit;
            if bit == SampleType::TIME {
                layout.time = Some(layout.size);
            } else if bit == SampleType::IDENTIFIER
                || (bit == SampleType::ID && layout.event_id.is_none())
            {
                layout.event_id = Some(layout.size);
            }
        }
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::AttrFlags;

    #[test]
    fn fixed_fields_follow_each_other_in_the_kernels_order() {
        let attr = Attr {
            sample_type: SampleType::IDENTIFIER
                | SampleType::IP
                | SampleType::TID
                | SampleType::TIME
                | SampleType::CPU
                | SampleType::PERIOD
                | SampleType::CALLCHAIN,
            ..Attr::default()
        };
        let l = SampleLayout::of(&attr);
        let at = [l.identifier, l.ip, l.tid, l.time, l.cpu, l.period, l.variable].map(Slot::at);
        assert_eq!(at, [8, 16, 24, 32, 40, 48, 56]);
        assert!(!l.addr.is_some());
        assert_eq!(l.event_id(), l.identifier);
    }

    #[test]
    fn the_trailer_is_measured_from_the_end() {
        let all = SampleType::TID
            | SampleType::TIME
            | SampleType::ID
            | SampleType::STREAM_ID
            | SampleType::CPU
            | SampleType::IDENTIFIER;
        let attr = Attr { sample_type: all, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() };
        let l = SampleIdLayout::of(&attr);
        assert_eq!((l.size, l.time, l.event_id), (48, Some(40), Some(8)));
        let attr = Attr { sample_type: all - SampleType::IDENTIFIER, ..attr };
        assert_eq!(SampleIdLayout::of(&attr).event_id, Some(24));
        let attr = Attr { flags: AttrFlags::empty(), ..attr };
        assert_eq!(SampleIdLayout::of(&attr), SampleIdLayout::NONE);
    }
}
