//! perf's own records (types 64 and up) that tell about the stream: attrs, names, build IDs, ids, threads, features, time.

use crate::attr::Attr;
use crate::build_id::BuildId;
use crate::bytes::{Cursor, Encoder, U64s};
use crate::error::{Error, Result};
use crate::wire;
use crate::wire::{Text, Wire};

/// An attr and the ids of its counters (`PERF_RECORD_HEADER_ATTR`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderAttr<'a> {
    /// The attr; it takes as many bytes as its `size` says.
    pub attr: Attr,
    /// The ids.
    pub ids: U64s<'a>,
}

impl<'a> Wire<'a> for HeaderAttr<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let mut ahead = *c;
        ahead.u32(what)?;
        let size = ahead.u32(what)? as usize;
        let len = if size == 0 { Attr::MIN_SIZE } else { size };
        Ok(Self { attr: Attr::decode(c, len)?, ids: Wire::decode(c, what)? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        let len = self.attr.stored_size(e.endian());
        if len == self.attr.own_size() {
            self.attr.encode(e, len)?;
        } else {
            self.attr.stored(e.endian())?.encode(e, len)?;
        }
        self.ids.encode(e)
    }
}

wire! {
    /// A tracepoint's id and name (`PERF_RECORD_HEADER_EVENT_TYPE`, deprecated).
    pub struct HeaderEventType<'a> {
        /// The id: `config` of the attr.
        pub event_id: u64,
        /// The name, at most 64 bytes.
        pub name: Text<'a>,
    }

    /// The formats of tracepoints follow the record (`PERF_RECORD_HEADER_TRACING_DATA`).
    pub struct HeaderTracingData {
        /// How many bytes follow, before they are padded to 8.
        pub size: u32,
    }

    /// The build ID of a file (`PERF_RECORD_HEADER_BUILD_ID`); `misc` as in the feature.
    pub struct HeaderBuildId<'a> {
        /// The process for guests; all ones or 0 else.
        pub pid: u32,
        /// The build ID's 20 bytes, its length where `misc` says so, 3 reserved bytes.
        pub raw: [u8; 24],
        /// The file.
        pub filename: Text<'a>,
    }

    /// Which id belongs to which CPU and thread (`PERF_RECORD_ID_INDEX`).
    pub struct IdIndex<'a> {
        /// How many entries there are, by the record's word.
        pub nr: u64,
        /// Four words for each entry (id, index, CPU, thread); then, for guests, two more for each (process, VCPU).
        pub words: U64s<'a>,
    }

    /// The threads that were recorded (`PERF_RECORD_THREAD_MAP`).
    pub struct ThreadMap<'a> {
        /// How many there are, by the record's word.
        pub nr: u64,
        /// For each a 64-bit id and a name of 16 bytes.
        pub entries: &'a [u8],
    }

    /// The CPUs that were recorded (`PERF_RECORD_CPU_MAP`).
    pub struct CpuMap<'a> {
        /// How they are encoded: 0 a list, 1 a mask, 2 a range.
        pub kind: u16,
        /// The list, mask or range, and padding, in the file's byte order.
        pub data: &'a [u8],
    }

    /// More about an event (`PERF_RECORD_EVENT_UPDATE`).
    pub struct EventUpdate<'a> {
        /// What: 0 unit, 1 scale, 2 name, 3 CPUs.
        pub kind: u64,
        /// The event.
        pub id: u64,
        /// A string (unit, name), a 64-bit float (scale), or a CPU map.
        pub data: &'a [u8],
    }

    /// How time-stamp counter and perf clock convert (`PERF_RECORD_TIME_CONV`; `perf_event_mmap_page`).
    pub struct TimeConv {
        /// See `time_shift` in perf_event_open(2).
        pub time_shift: u64,
        /// See `time_mult`.
        pub time_mult: u64,
        /// See `time_zero`.
        pub time_zero: u64,
        /// For counters that wrap; not in old files.
        pub short: Option<TimeConvShort>,
    }

    /// The part of TIME_CONV for counters narrower than 64 bits.
    pub struct TimeConvShort {
        /// See `time_cycles`.
        pub time_cycles: u64,
        /// See `time_mask`.
        pub time_mask: u64,
        /// Whether `time_zero` counts.
        pub cap_user_time_zero: u8,
        /// Whether `time_cycles` and `time_mask` count.
        pub cap_user_time_short: u8,
        /// Kept as found.
        pub reserved: [u8; 6],
    }

    /// A header feature (`PERF_RECORD_HEADER_FEATURE`; pipe mode).
    pub struct HeaderFeature<'a> {
        /// Its number.
        pub feat_id: u64,
        /// What its section would hold.
        pub data: &'a [u8],
    }

    /// Compressed records (`PERF_RECORD_COMPRESSED`): a piece of one zstd stream.
    pub struct Compressed<'a> {
        /// The piece.
        pub data: &'a [u8],
    }

    /// Compressed records, padded (`PERF_RECORD_COMPRESSED2`).
    pub struct Compressed2<'a> {
        /// How many bytes of `data` count.
        pub data_size: u64,
        /// The piece and its padding.
        pub data: &'a [u8],
    }

    /// What a BPF program says of itself (`PERF_RECORD_BPF_METADATA`).
    pub struct BpfMetadata<'a> {
        /// The program's name.
        pub prog_name: [u8; 16],
        /// How many entries there are, by the record's word.
        pub nr_entries: u64,
        /// For each a key of 64 bytes and a value of 256.
        pub entries: &'a [u8],
    }

    /// How `perf stat record` was configured (`PERF_RECORD_STAT_CONFIG`).
    pub struct StatConfig<'a> {
        /// How many pairs there are, by the record's word.
        pub nr: u64,
        /// Pairs of tag and value.
        pub words: U64s<'a>,
    }

    /// A count (`PERF_RECORD_STAT`).
    pub struct Stat {
        /// The event.
        pub id: u64,
        /// The CPU.
        pub cpu: u32,
        /// The thread.
        pub thread: u32,
        /// What was counted.
        pub value: u64,
        /// How long the event was enabled, in nanoseconds.
        pub enabled: u64,
        /// How long it ran.
        pub running: u64,
    }

    /// The end of an interval (`PERF_RECORD_STAT_ROUND`).
    pub struct StatRound {
        /// 0: an interval, 1: the end.
        pub kind: u64,
        /// When, in nanoseconds.
        pub time: u64,
    }
}

impl HeaderBuildId<'_> {
    /// The build ID, by the record's `misc`.
    #[must_use]
    pub fn build_id(&self, misc: u16) -> Option<BuildId> {
        let told = misc & crate::abi::misc::BUILD_ID_SIZE != 0;
        let len = if told { self.raw.get(BuildId::MAX).map_or(0, |l| usize::from(*l)) } else { BuildId::MAX };
        BuildId::new(self.raw.get(..len.min(BuildId::MAX))?)
    }
}

/// One counter of an [`IdIndex`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdIndexEntry {
    /// The event's id.
    pub id: u64,
    /// The ring.
    pub idx: u64,
    /// The CPU; all ones for any.
    pub cpu: u64,
    /// The thread; all ones for any.
    pub tid: u64,
}

impl IdIndex<'_> {
    /// The entries, as many as the record says and holds.
    pub fn iter(&self) -> impl Iterator<Item = IdIndexEntry> {
        let words = self.words;
        let count = usize::try_from(self.nr).unwrap_or(usize::MAX).min(words.len() / 4);
        (0..count).filter_map(move |i| {
            let word = |n| words.get(4 * i + n);
            Some(IdIndexEntry { id: word(0)?, idx: word(1)?, cpu: word(2)?, tid: word(3)? })
        })
    }
}

impl<'a> Compressed2<'a> {
    /// The bytes that count. perf has written sizes larger than the record here: they are cut to it.
    #[must_use]
    pub fn stream(&self) -> &'a [u8] {
        usize::try_from(self.data_size).ok().and_then(|len| self.data.get(..len)).unwrap_or(self.data)
    }
}

impl<'a> EventUpdate<'a> {
    /// The string of a unit or name.
    #[must_use]
    pub fn text(&self) -> &'a [u8] {
        self.data.split(|b| *b == 0).next().unwrap_or_default()
    }
}

impl CpuMap<'_> {
    /// The CPUs, in the stream's byte order; `None` for an encoding that is not known or does not fit the record.
    /// No more CPUs are given than `limit`, whatever the record says.
    ///
    /// # Errors
    /// The record is too short for what it says.
    pub fn cpus(&self, endian: crate::endian::Endian, limit: usize) -> Result<Vec<u32>> {
        const WHAT: &str = "CPU_MAP";
        let mut c = Cursor::new(self.data, 0, endian);
        match self.kind {
            0 => {
                let nr = c.u16(WHAT)?;
                (0..nr).take(limit).map(|_| c.u16(WHAT).map(u32::from)).collect()
            }
            1 => {
                let (nr, size) = (c.u16(WHAT)?, c.u16(WHAT)?);
                let mut cpus = Vec::new();
                if size == 8 {
                    c.take(4, WHAT)?;
                }
                for word in 0..u32::from(nr) {
                    let bits = if size == 8 { c.u64(WHAT)? } else { u64::from(c.u32(WHAT)?) };
                    let width = u32::from(size).saturating_mul(8).min(64);
                    let set = (0..width).filter(|bit| bits >> bit & 1 == 1);
                    let room = limit.saturating_sub(cpus.len());
                    cpus.extend(set.map(|bit| word.saturating_mul(width).saturating_add(bit)).take(room));
                }
                Ok(cpus)
            }
            2 => {
                c.take(2, WHAT)?;
                let (start, end) = (c.u16(WHAT)?, c.u16(WHAT)?);
                Ok((u32::from(start)..=u32::from(end)).take(limit).collect())
            }
            kind => Err(Error::invalid(0, WHAT, format!("the encoding {kind} is not known"))),
        }
    }
}
