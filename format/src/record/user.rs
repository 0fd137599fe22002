//! perf's own records (types 64 and up) about the stream: attrs, names, build IDs, features, time,
//! compression.

use crate::abi::Pid;
use crate::attr::Attr;
use crate::build_id::BuildId;
use crate::bytes::{Cursor, Encoder, U64s};
use crate::endian::Endian;
use crate::error::Result;
use crate::fields::named;
use crate::wire::{Text, Wire, wire};

named! {
    /// An attr and the ids of its counters (`PERF_RECORD_HEADER_ATTR`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HeaderAttr<'a> {
        /// The attr; it takes as many bytes as its `size` says.
        pub attr: Attr,
        /// The ids.
        pub ids: U64s<'a>,
    }
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
        /// Number of bytes that follow, before they are padded to 8.
        pub size: u32,
    }

    /// The build ID of a file (`PERF_RECORD_HEADER_BUILD_ID`); `misc` as in the feature.
    pub struct HeaderBuildId<'a> {
        /// The process of the hypervisor for a guest's file; -1 or 0 for the host's.
        pub pid: Pid,
        /// The build ID's 20 bytes, its length where `misc` says so, 3 reserved bytes.
        pub raw: [u8; 24] => "build_id",
        /// The file.
        pub filename: Text<'a>,
    }

    /// The conversion between time-stamp counter and perf clock (`PERF_RECORD_TIME_CONV`;
    /// `perf_event_mmap_page`).
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
        pub time_mask: u64 => hex,
        /// Whether `time_zero` counts.
        pub cap_user_time_zero: u8,
        /// Whether `time_cycles` and `time_mask` count.
        pub cap_user_time_short: u8,
        /// Kept as found.
        pub reserved: [u8; 6] => hidden,
    }

    /// A header feature (`PERF_RECORD_HEADER_FEATURE`; pipe mode).
    pub struct HeaderFeature<'a> {
        /// Its number.
        pub feat_id: u64,
        /// The content of its section.
        pub data: &'a [u8] => "data_size",
    }

    /// Compressed records (`PERF_RECORD_COMPRESSED`): a piece of one zstd stream.
    pub struct Compressed<'a> {
        /// The piece.
        pub data: &'a [u8] => "compressed_size",
    }

    /// Compressed records, padded (`PERF_RECORD_COMPRESSED2`).
    pub struct Compressed2<'a> {
        /// Number of bytes of `data` without padding.
        pub data_size: u64,
        /// The piece and its padding.
        pub data: &'a [u8] => "compressed_size",
    }

    /// Facts about a BPF program, by the program itself (`PERF_RECORD_BPF_METADATA`).
    pub struct BpfMetadata<'a> {
        /// The program's name.
        pub prog_name: [u8; 16] => text,
        /// Number of entries, as the record says.
        pub nr_entries: u64,
        /// For each a key of 64 bytes and a value of 256 ([`BpfMetadata::iter`]).
        pub entries: &'a [u8] => hidden,
    }
}

impl HeaderBuildId<'_> {
    /// Returns the build ID, by the record's `misc`.
    pub fn build_id(&self, misc: u16) -> Option<BuildId> {
        let told = misc & crate::abi::misc::BUILD_ID_SIZE != 0;
        let len = if told {
            self.raw.get(BuildId::MAX).map_or(0, |l| usize::from(*l))
        } else {
            BuildId::MAX
        };
        BuildId::new(self.raw.get(..len.min(BuildId::MAX))?)
    }
}

impl<'a> HeaderFeature<'a> {
    /// Returns a cursor over the section, to decode the feature with; the record begins at byte
    /// `offset` of the stream.
    pub fn cursor(&self, offset: u64, endian: Endian) -> Cursor<'a> {
        const BEFORE: u64 = super::HEADER_SIZE as u64 + 8;
        Cursor::new(self.data, offset.saturating_add(BEFORE), endian)
    }
}

impl<'a> Compressed2<'a> {
    /// Returns the bytes that count. perf has written sizes larger than the record here: they are
    /// cut to it.
    pub fn stream(&self) -> &'a [u8] {
        usize::try_from(self.data_size)
            .ok()
            .and_then(|len| self.data.get(..len))
            .unwrap_or(self.data)
    }
}

impl<'a> BpfMetadata<'a> {
    const KEY: usize = 64;
    const VALUE: usize = 256;

    /// Returns key and value of each entry, without their padding: as many as the record says, or
    /// fewer if it is too short.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let count = usize::try_from(self.nr_entries).unwrap_or(usize::MAX);
        let entries = self.entries.chunks_exact(Self::KEY + Self::VALUE).take(count);
        entries
            .filter_map(|entry| entry.split_at_checked(Self::KEY))
            .map(|(key, value)| (Text::found(key).as_bytes(), Text::found(value).as_bytes()))
    }
}
