//! Keys of a histogram: one word per field that the query needs.

/// Declares the fields with a list of them.
macro_rules! fields {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Field of a key: one word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Field {
            $($(#[$doc])* $field,)*
        }

        impl Field {
            /// All fields, ordered by discriminant.
            pub const ALL: &[Self] = &[$(Self::$field),*];
        }
    };
}

fields! {
    /// Event, CPU modes, CPU and kinds of the addresses ([`Meta`]).
    Meta,
    /// Comm ([`crate::timeline::CommRef::pack`]).
    Comm,
    /// Number of the module plus one; 0 if nothing was mapped. Of a branch, the target's.
    Module,
    /// Address in its module ([`crate::symbols::ModuleKind::first_address`]); the recorded address
    /// if there is no module. Of a branch, the target.
    Address,
    Ip,
    /// Thread ([`crate::timeline::ThreadRef::pack`]).
    Thread,
    /// Data source: the bits that the query needs.
    DataSrc,
    Weight,
    /// Second part of the weight in the low 16 bits, the third above it: those that the query
    /// needs.
    Latency,
    PhysAddr,
    /// Module of the data address, as [`Field::Module`].
    DataModule,
    /// Module of the branch source, as [`Field::Module`].
    FromModule,
    /// Address of the branch source, as [`Field::Address`].
    FromAddress,
    /// Recorded address of the branch source.
    From,
    /// Recorded address of the branch target.
    To,
    /// Branch flags: the bits that the query needs.
    Branch,
    /// Offset of the address in its function; set when functions replace addresses.
    Offset,
    /// Size of the mapping that has the address, in bytes.
    MapSize,
    /// Transaction flags and abort code.
    Transaction,
    /// Time, rounded down to the start of its step.
    Time,
    /// Page size at the sampled address.
    CodePage,
    /// Page size at the data address.
    DataPage,
    Cgroup,
    /// Number of the cgroup namespace ([`crate::timeline::cgroups::Groups`]).
    CgroupSpace,
    /// Recorded data address.
    DataAddr,
    /// Data address in its module, as [`Field::Address`].
    DataAddress,
    /// Cache line of the data address ([`CacheLine`]).
    DataLine,
    /// Offset of the data address in its cache line.
    LineOffset,
    /// Whether the branch, or the one before the code that was run, went from one module to
    /// another.
    External,
    /// Number of the source line in its module plus one, once looked up.
    Line,
    /// Source line of the branch source, as [`Field::Line`].
    FromLine,
    /// Caller by which rows are grouped (`parent`): its module as [`Field::Module`] in the upper
    /// half, its symbol's number plus one in the lower half.
    Parent,
    /// Callchain ([`crate::callchain::ChainRef`]).
    Chain,
    Process,
    /// Whether a memory access has an address (1), and whether its data (2) and its code (4) are
    /// mapped.
    Reach,
    /// Activity of the thread ([`crate::timeline::Activity::pack`]).
    Switch,
    /// Kind of the wait ([`crate::timeline::WaitKind::pack`]); 0 if the thread did not wait.
    Wait,
    /// Activity of the thread, and how far it reaches from its first step ([`super::Extent`]).
    Extent,
    /// Number of threads that ran ([`crate::timeline::Parallelism`]).
    Parallelism,
    /// Number of the tracepoint's displayed data ([`crate::tracepoints::Traced`]).
    Payload,
    /// Frame of the sampled instruction in a worker ([`crate::callchain::Images::frame`]); it
    /// stands for all the words that a frame has until the worker's rows are merged
    /// ([`crate::callchain::Frame::put`]).
    Frame,
}

/// The second part of a weight in [`Field::Latency`].
pub(crate) const INS_LAT: u64 = 0xffff;
/// The third part of a weight in [`Field::Latency`].
pub(crate) const STAGE: u64 = 0xffff << 16;

/// A key with a word for every field; unused words are 0.
pub(crate) type Key = [u64; Field::COUNT];

pub(crate) const NO_KEY: Key = [0; Field::COUNT];

#[allow(clippy::indexing_slicing, reason = "a field's number is below the length of a key")]
impl Field {
    pub const COUNT: usize = Self::ALL.len();

    /// Returns this word of a key.
    #[inline]
    pub fn of(self, key: &Key) -> u64 {
        key[self as usize]
    }

    /// Returns a mutable reference to this word of a key.
    #[inline]
    pub fn of_mut(self, key: &mut Key) -> &mut u64 {
        &mut key[self as usize]
    }
}

/// A cache line in a key: the address of its first byte, with flags of its mapping in the low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheLine {
    /// Address of the first byte, as [`Field::Address`].
    pub address: u64,
    /// `true` if it belongs to a file mapping shared between processes.
    pub is_shared: bool,
    /// `true` if anything is mapped at the address.
    pub is_mapped: bool,
}

impl CacheLine {
    pub(crate) const LEN: u64 = 64;
    /// The bits of the flags in a packed word.
    pub(crate) const FLAGS: u64 = 0b11;

    #[inline]
    pub(crate) fn pack(self) -> u64 {
        self.address & !(Self::LEN - 1) | u64::from(self.is_shared) << 1 | u64::from(self.is_mapped)
    }

    /// Unpacks a word of [`CacheLine::pack`].
    pub(crate) fn unpack(word: u64) -> Self {
        Self {
            address: word & !(Self::LEN - 1),
            is_shared: word & 2 != 0,
            is_mapped: word & 1 != 0,
        }
    }
}

/// CPU mode of an address in a key, and what the word of the address holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct End {
    /// CPU mode: the low bits of a record's `misc`.
    pub cpu_mode: u8,
    /// `true` if the word holds the number of a symbol of the module instead of the address.
    pub is_symbol: bool,
    /// `true` if that number is the one of an inlined function.
    pub is_inlined: bool,
}

/// The small parts of a key, packed into one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Index of the event in the file.
    pub event: u16,
    /// CPU mode and kind of [`Field::Address`].
    pub at: End,
    /// CPU mode and kind of [`Field::FromAddress`].
    pub from: End,
    /// CPU; all ones if not sampled.
    pub cpu: u32,
}

impl End {
    fn pack(self) -> u64 {
        u64::from(self.cpu_mode) << 2 | u64::from(self.is_inlined) << 1 | u64::from(self.is_symbol)
    }

    #[allow(clippy::cast_possible_truncation, reason = "only the low byte is meant")]
    fn unpack(word: u64) -> Self {
        Self { cpu_mode: (word as u8) >> 2, is_inlined: word & 2 == 2, is_symbol: word & 1 == 1 }
    }
}

impl Meta {
    /// The bits of the event in the packed word.
    pub(crate) const EVENT: u64 = 0xffff << 48;
    pub(crate) const CPU: u64 = 0xffff_ffff;
    /// The bits of [`Meta::at`].
    pub(crate) const AT: u64 = 0xff << 32;
    /// The bits of [`Meta::from`].
    pub(crate) const FROM: u64 = 0xff << 40;
    /// The bits of the CPU mode in [`Meta::at`].
    pub(crate) const AT_MODE: u64 = 0xfc << 32;
    /// The bits of the CPU mode in [`Meta::from`].
    pub(crate) const FROM_MODE: u64 = 0xfc << 40;

    #[inline]
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.event) << 48
            | self.from.pack() << 40
            | self.at.pack() << 32
            | u64::from(self.cpu)
    }

    /// Returns whether the address is resolved; of a branch, both addresses.
    pub(crate) fn is_resolved(self, of_branch: bool) -> bool {
        self.at.is_symbol && (!of_branch || self.from.is_symbol)
    }

    /// Unpacks a word of [`Meta::pack`].
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the casts select the parts by their widths"
    )]
    pub(crate) fn unpack(word: u64) -> Self {
        let (at, from) = (End::unpack(word >> 32), End::unpack(word >> 40));
        Self { event: (word >> 48) as u16, at, from, cpu: word as u32 }
    }
}

/// One of the addresses of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAddress {
    /// The sampled address; of a branch, the target.
    At,
    /// The source of a branch.
    From,
}

impl KeyAddress {
    /// Returns `at` or `from`.
    fn choose<T>(self, at: T, from: T) -> T {
        match self {
            Self::At => at,
            Self::From => from,
        }
    }

    pub fn module(self) -> Field {
        self.choose(Field::Module, Field::FromModule)
    }

    /// Returns the field of the address in the module.
    pub fn address(self) -> Field {
        self.choose(Field::Address, Field::FromAddress)
    }

    pub fn line(self) -> Field {
        self.choose(Field::Line, Field::FromLine)
    }

    /// Returns its CPU mode and whether it is a symbol's number.
    pub fn end(self, row: &Key) -> End {
        let meta = Meta::unpack(Field::Meta.of(row));
        self.choose(meta.at, meta.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_keeps_every_part() {
        let (at, from) = (
            End { cpu_mode: 5, is_symbol: true, is_inlined: false },
            End { cpu_mode: 2, is_symbol: false, is_inlined: true },
        );
        let meta = Meta { event: 0xfedc, at, from, cpu: u32::MAX };
        assert_eq!(Meta::unpack(meta.pack()), meta);
        let of = |bits: u64| Meta::unpack(meta.pack() & bits);
        assert_eq!(of(Meta::EVENT), Meta { event: 0xfedc, ..Meta::default() });
        assert_eq!(of(Meta::CPU), Meta { cpu: u32::MAX, ..Meta::default() });
        assert_eq!(of(Meta::AT), Meta { at, ..Meta::default() });
        assert_eq!(of(Meta::FROM), Meta { from, ..Meta::default() });
        assert_eq!(of(Meta::AT_MODE).at, End { cpu_mode: 5, ..End::default() });
        assert_eq!(of(Meta::FROM_MODE).from, End { cpu_mode: 2, ..End::default() });
        let line = CacheLine { address: 0x1240, is_shared: true, is_mapped: false };
        assert_eq!(CacheLine::unpack(line.pack()), line);
    }
}
