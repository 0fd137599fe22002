//! Functions by the tables that unwinding and exceptions need, which stay in a stripped file.
//!
//! ```text
//!   .eh_frame, .eh_frame_hdr   an entry for each function, with its start and length
//!   .ARM.exidx                 32-bit ARM: an entry for each function, with its start; it ends where the next one
//!                              begins
//! ```
//!
//! An entry is not always a function of the source. The part that a compiler moved away from the
//! others (`f.cold`) has its own; assembly with several symbols may have one; the procedure linkage
//! table has one; and on ARM linkers join entries of neighbors that are unwound alike.

use std::ops::Range;

use object::Endianness;
use object::elf::EM_ARM;
use recrep_format::endian::Endian;
use recrep_unwind::ArmIndex;

use crate::input::map::Bytes;
use crate::symbols::elf::call_frames::CallFrames;
use crate::symbols::elf::{self, ElfImage, Segment};

/// Functions of a file, by offset in it.
#[derive(Debug)]
pub(crate) struct UnwoundFunctions {
    table: Table,
    segments: Vec<Segment>,
    pub(crate) file: Bytes,
}

#[derive(Debug)]
enum Table {
    CallFrames(Box<CallFrames>),
    Index(ArmIndex<Bytes>),
}

impl UnwoundFunctions {
    /// Returns the functions of a file; `None` if it has no table of them.
    pub(crate) fn of(image: &ElfImage) -> Option<Self> {
        let table = match CallFrames::of(image, None) {
            Some(frames) => Table::CallFrames(Box::new(frames)),
            None => Table::Index(arm_index(image)?),
        };
        Some(Self { table, segments: image.segments.clone(), file: image.file.clone() })
    }

    pub(crate) fn len(&self) -> usize {
        match &self.table {
            Table::CallFrames(frames) => frames.rules.functions(),
            Table::Index(index) => index.functions(),
        }
    }

    /// Returns the place of the function at an offset in the file.
    pub(crate) fn find(&self, offset: u64) -> Option<usize> {
        let address = elf::address_of(&self.segments, offset)?;
        match &self.table {
            Table::CallFrames(frames) => frames.rules.function_at(address),
            Table::Index(index) => index.function_at(address),
        }
    }

    /// Returns the linked address of a function's start, and the offsets of its ends.
    pub(crate) fn function(&self, place: usize) -> Option<(u64, Range<u64>)> {
        let Range { start, end } = match &self.table {
            Table::CallFrames(frames) => frames.rules.function(place)?,
            Table::Index(index) => index.function(place)?,
        };
        let offset = self.offset_of(start)?;
        Some((start, offset..offset.saturating_add(end.checked_sub(start)?)))
    }

    /// Returns the offsets of the function at an offset, if the table proves that it is one: an
    /// entry of `.ARM.exidx` may be for several.
    pub(crate) fn proven_at(&self, offset: u64) -> Option<Range<u64>> {
        let (_, function) = self.function(self.find(offset)?)?;
        let is_one = matches!(self.table, Table::CallFrames(_));
        (is_one && function.contains(&offset)).then_some(function)
    }

    /// Returns the offset of the first function that begins behind an offset.
    pub(crate) fn next_start(&self, offset: u64) -> Option<u64> {
        let address = elf::address_of(&self.segments, offset)?;
        let start = match &self.table {
            Table::CallFrames(frames) => frames.rules.start_behind(address),
            Table::Index(index) => index.start_behind(address),
        };
        self.offset_of(start?)
    }

    fn offset_of(&self, address: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| segment.has_address(address))?;
        Some(segment.to_offset(address))
    }
}

/// Returns the index of the functions of a file for 32-bit ARM, if it has one.
fn arm_index(image: &ElfImage) -> Option<ArmIndex<Bytes>> {
    let section = image.section(b".ARM.exidx").filter(|_| image.machine == EM_ARM)?;
    Some(ArmIndex {
        address: section.address,
        bytes: image.keep(section).ok()?,
        endian: match image.endian {
            Endianness::Little => Endian::Little,
            Endianness::Big => Endian::Big,
        },
    })
}
