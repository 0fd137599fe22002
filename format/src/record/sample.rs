//! A sample, read lazily: fixed fields straight from their places, the rest by a walk when asked
//! for.

use super::{RawRecord, ReadValues, SampleFields, sample_fields};
use crate::abi::{CpuMode, SampleType, misc};
use crate::bytes::{Cursor, U64s};
use crate::endian::Endian;
use crate::error::Result;
use crate::layout::{SampleLayout, Slot, UpTo};

/// A sample where it lies. Asking for the ip does not look at the callchain.
///
/// A field that is not in `sample_type`, or that a damaged record is too short for, is `None`.
/// ```
/// use recrep_format::abi::{CpuMode, SampleType};
/// use recrep_format::attr::Attr;
/// use recrep_format::endian::Endian;
/// use recrep_format::layout::SampleLayout;
/// use recrep_format::read::Frames;
/// use recrep_format::record::Sample;
///
/// let sample_type = SampleType::IP | SampleType::TIME | SampleType::CALLCHAIN;
/// let attr = Attr { sample_type, ..Attr::default() };
/// // Once for each attr.
/// let layout = SampleLayout::of(&attr);
///
/// // Header, ip, time, a callchain of two.
/// let words = [48 << 48 | 2 << 32 | 9, 0x40_0123, 1_000, 2, 0x40_0123, 0x40_0456u64];
/// let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
/// # let bytes: Vec<u8> = {
/// #     let mut bytes = bytes;
/// #     bytes[..8].copy_from_slice(&[0, 0, 0, 9, 0, 2, 0, 48]);
/// #     bytes
/// # };
/// let raw = Frames::new(&bytes, 0, Endian::Big).next().unwrap().unwrap();
/// let sample = Sample::new(raw, &layout, Endian::Big);
/// assert_eq!((sample.cpu_mode(), sample.ip()), (CpuMode::User, Some(0x40_0123)));
/// assert_eq!((sample.time(), sample.pid()), (Some(1_000), None));
/// let all = sample.fields().unwrap();
/// assert_eq!(all.callchain.unwrap().iter().collect::<Vec<_>>(), [0x40_0123, 0x40_0456]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a, 'l> {
    // What is used of its record, and no more: copying a whole record that was just made takes
    // long.
    bytes: &'a [u8],
    offset: u64,
    cpu_mode: CpuMode,
    layout: &'l SampleLayout,
    endian: Endian,
}

/// The fields of fixed size of a sample, for readers that know their places and compare some of
/// them as they were recorded.
/// ```
/// use recrep_format::abi::SampleType;
/// use recrep_format::attr::Attr;
/// use recrep_format::endian::Endian;
/// use recrep_format::layout::SampleLayout;
/// use recrep_format::record::FixedFields;
///
/// let sample_type = SampleType::IP | SampleType::TIME;
/// let layout = SampleLayout::of(&Attr { sample_type, ..Attr::default() });
/// // Header, ip, time.
/// let bytes = [24 << 48 | 2 << 32 | 9, 0x40_0123, 1_000u64].map(u64::to_le_bytes).concat();
/// let fields = FixedFields::of(&bytes, Endian::Little);
/// assert_eq!((fields.number(layout.ip), fields.number(layout.cpu)), (Some(0x40_0123), None));
/// assert_eq!(fields.recorded(layout.time), Some([0xe8, 3, 0, 0, 0, 0, 0, 0]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FixedFields<'a> {
    // Each has eight bytes, one after the other.
    words: &'a [[u8; 8]],
    endian: Endian,
}

impl<'a> FixedFields<'a> {
    /// Returns the fields in the bytes of a record of type SAMPLE.
    #[inline]
    pub fn of(bytes: &'a [u8], endian: Endian) -> Self {
        Self { words: bytes.as_chunks().0, endian }
    }

    /// Returns a field as it was recorded; `None` if the sample does not have it.
    #[inline]
    pub fn recorded(self, at: Slot) -> Option<[u8; 8]> {
        self.words.get(at.at() / 8).copied()
    }

    /// Returns a field as a number; `None` if the sample does not have it.
    #[inline]
    pub fn number(self, at: Slot) -> Option<u64> {
        self.recorded(at).map(|bytes| self.endian.u64(bytes))
    }
}

impl<'a, 'l> Sample<'a, 'l> {
    /// Returns the record `raw`, which must be of type SAMPLE, of the event with this layout.
    #[inline]
    pub fn new(raw: RawRecord<'a>, layout: &'l SampleLayout, endian: Endian) -> Self {
        Self {
            bytes: raw.bytes,
            offset: raw.offset,
            cpu_mode: raw.header.cpu_mode(),
            layout,
            endian,
        }
    }

    /// Returns the record's offset in the file, in bytes.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the CPU mode by the record's `misc`: whether the sample was taken in the kernel, in
    /// user space, in a hypervisor or in a guest. Every sample has it.
    #[inline]
    pub fn cpu_mode(&self) -> CpuMode {
        self.cpu_mode
    }

    /// Returns whether `rec` made it of a thread that waited when the recording began.
    pub fn waits_at_start(&self) -> bool {
        // Behind the header's type.
        let misc = self.endian.u16_at(self.bytes, 4);
        misc.is_some_and(|misc| misc & misc::WAITS_AT_START != 0)
    }

    /// Returns the sampled instruction.
    #[inline]
    pub fn ip(&self) -> Option<u64> {
        self.word(self.layout.ip)
    }

    /// Returns the process: 0 for idle CPUs, `u32::MAX` for a task that has ended
    /// ([`Pid`](crate::abi::Pid)).
    #[inline]
    pub fn pid(&self) -> Option<u32> {
        self.pair(self.layout.tid).map(|[pid, _]| pid)
    }

    /// Returns the thread: 0 for the idle task of any CPU (perf calls it `swapper`), `u32::MAX` for
    /// a task that has ended ([`Tid`](crate::abi::Tid)).
    #[inline]
    pub fn tid(&self) -> Option<u32> {
        self.pair(self.layout.tid).map(|[_, tid]| tid)
    }

    /// Returns the time, in nanoseconds of the perf clock.
    #[inline]
    pub fn time(&self) -> Option<u64> {
        self.word(self.layout.time)
    }

    /// Returns the data address, or what the event defines.
    #[inline]
    pub fn addr(&self) -> Option<u64> {
        self.word(self.layout.addr)
    }

    /// Returns the event: IDENTIFIER, else ID.
    #[inline]
    pub fn event_id(&self) -> Option<u64> {
        self.word(self.layout.event_id())
    }

    /// Returns the event that took the sample.
    pub fn stream_id(&self) -> Option<u64> {
        self.word(self.layout.stream_id)
    }

    /// Returns the CPU.
    #[inline]
    pub fn cpu(&self) -> Option<u32> {
        self.pair(self.layout.cpu).map(|[cpu, _]| cpu)
    }

    /// Returns the number of events that the sample stands for.
    #[inline]
    pub fn period(&self) -> Option<u64> {
        self.word(self.layout.period)
    }

    /// Returns the callchain as recorded, context marks included.
    ///
    /// # Errors
    /// Returns an error if the record is too short for what it says.
    pub fn callchain(&self) -> Result<Option<U64s<'a>>> {
        if !self.layout.sample_type.contains(SampleType::CALLCHAIN) {
            return Ok(None);
        }
        // Every sample of a call tree comes here: filling all fields but one in vain would take
        // longer than this.
        sample_fields::callchain(&mut self.behind_read()?).map(Some)
    }

    /// Returns the raw bytes: those of a tracepoint, for instance.
    ///
    /// # Errors
    /// Returns an error if the record is too short for what it says.
    #[inline]
    pub fn raw(&self) -> Result<Option<&'a [u8]>> {
        if !self.layout.sample_type.contains(SampleType::RAW) {
            return Ok(None);
        }
        let before = SampleType::READ | SampleType::CALLCHAIN;
        let at = self.layout.variable.at();
        // Most tracepoints have nothing of variable size before: then a cursor would take longer.
        if !self.layout.sample_type.intersects(before)
            && let Some(size) = self.endian.u32_at(self.bytes, at)
            && let Some(bytes) = self.bytes.get(at + 4..at + 4 + size as usize)
        {
            return Ok(Some(bytes));
        }
        let mut cursor = self.behind_read()?;
        if self.layout.sample_type.contains(SampleType::CALLCHAIN) {
            sample_fields::callchain(&mut cursor)?;
        }
        sample_fields::raw(&mut cursor).map(Some)
    }

    /// Puts the fields of variable size and those behind them, up to a last one, into `fields`.
    /// Those before them have fixed places, and stay what they are in `fields`.
    ///
    /// # Errors
    /// Returns an error if the record is too short for what it says.
    #[inline]
    pub fn walk(&self, last: UpTo, fields: &mut SampleFields<'a>) -> Result<()> {
        fields.walk(&mut self.variable()?, self.layout, last)
    }

    /// Returns every field.
    ///
    /// # Errors
    /// Returns an error if the record is too short for what it says.
    pub fn fields(&self) -> Result<SampleFields<'a>> {
        let mut fields = SampleFields::default();
        self.read(&mut fields)?;
        Ok(fields)
    }

    /// Like [`Sample::fields`], but sets `fields`, which had better not be moved for each sample:
    /// they are large.
    ///
    /// # Errors
    /// Returns an error if the record is too short for what it says.
    pub fn read(&self, fields: &mut SampleFields<'a>) -> Result<()> {
        // From their places all at once: decoding one after the other takes longer.
        *fields = SampleFields {
            identifier: self.word(self.layout.identifier),
            ip: self.ip(),
            tid: self.pair(self.layout.tid),
            time: self.time(),
            addr: self.addr(),
            id: self.word(self.layout.id),
            stream_id: self.stream_id(),
            cpu: self.pair(self.layout.cpu),
            period: self.period(),
            ..SampleFields::default()
        };
        self.walk(UpTo::ALL, fields)
    }

    #[inline]
    fn fixed(&self) -> FixedFields<'a> {
        FixedFields::of(self.bytes, self.endian)
    }

    #[inline]
    fn word(&self, field: Slot) -> Option<u64> {
        self.fixed().number(field)
    }

    /// Returns the halves of a field.
    #[inline]
    fn pair(&self, field: Slot) -> Option<[u32; 2]> {
        let [a, b, c, d, e, f, g, h] = self.fixed().recorded(field)?;
        Some([[a, b, c, d], [e, f, g, h]].map(|half| self.endian.u32(half)))
    }

    /// Returns a cursor behind READ, the first of the fields of variable size.
    #[inline]
    fn behind_read(&self) -> Result<Cursor<'a>> {
        let mut cursor = self.variable()?;
        if self.layout.sample_type.contains(SampleType::READ) {
            ReadValues::decode(&mut cursor, self.layout.read_format)?;
        }
        Ok(cursor)
    }

    /// Returns a cursor at the first field of variable size.
    #[inline]
    fn variable(&self) -> Result<Cursor<'a>> {
        let body = self.bytes.get(super::HEADER_SIZE..).unwrap_or_default();
        let mut cursor = Cursor::new(body, self.offset + super::HEADER_SIZE as u64, self.endian);
        cursor.take(self.layout.variable.at() - super::HEADER_SIZE, "sample")?;
        Ok(cursor)
    }
}
