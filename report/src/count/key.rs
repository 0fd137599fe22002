//! Keys of a histogram: words that hold what was asked for.

/// A word of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Event, levels, CPU and what the addresses are: [`Meta`].
    Meta,
    /// A comm ([`crate::timeline::CommRef::pack`]).
    Comm,
    /// A module's number plus one; 0 where nothing was mapped. Of a branch, the target's.
    Module,
    /// The address in the module's own terms; as it is where there is no module. Of a branch, the target.
    Address,
    /// The sampled address.
    Ip,
    /// A thread ([`crate::timeline::ThreadRef::pack`]).
    Thread,
    /// Where the data came from: the parts that are asked for.
    DataSrc,
    /// The weight.
    Weight,
    /// The second part of the weight in the low 16 bits, the third above it: those that are asked for.
    Latency,
    /// The physical data address.
    PhysAddr,
    /// The module of the data address, as [`Field::Module`].
    DataModule,
    /// The module that the branch left, as [`Field::Module`].
    FromModule,
    /// Where in it.
    FromAddress,
    /// The branch instruction.
    From,
    /// The target.
    To,
    /// What is known of the branch: the parts that are asked for.
    Branch,
    /// How far in its function the address is; set where functions take the place of addresses.
    Offset,
    /// How many bytes were mapped where the address is.
    MapSize,
    /// Why a transaction ended.
    Transaction,
    /// When, in whole steps of the query's quantum.
    Time,
    /// The page size behind the ip.
    CodePage,
    /// The page size behind the data address.
    DataPage,
    /// The cgroup's id.
    Cgroup,
    /// The number of a cgroup namespace ([`crate::timeline::cgroups::Groups`]).
    CgroupSpace,
    /// The data address.
    DataAddr,
    /// The data address in its module's own terms.
    DataAddress,
    /// The cache line of the data address ([`CacheLine`]).
    DataLine,
    /// Where in its cache line the data address is.
    LineOffset,
    /// Whether a branch, or the one that led to what was run, was from one module to another.
    External,
    /// The number of the source line in its module plus one, once it is looked up.
    Line,
    /// The same of the address that a branch left.
    FromLine,
    /// The function among the callers by which rows are grouped: its module's number in the upper half, its own plus one below.
    Parent,
    /// The callchain ([`crate::callchain::ChainRef`]).
    Chain,
    /// The process.
    Process,
    /// Whether a memory access has an address (1), and whether its data (2) and its code (4) are mapped.
    Reach,
    /// What is shown of a tracepoint's raw bytes ([`crate::tracepoints::Traced`]).
    Payload,
}

/// A key with room for every word; those not in use are 0.
pub type Key = [u64; Field::COUNT];

/// A key of which nothing is known.
pub const NO_KEY: Key = [0; Field::COUNT];

#[allow(clippy::indexing_slicing, reason = "a field's number is below the length of a key")]
impl Field {
    /// How many words a key has at most.
    pub const COUNT: usize = Self::ALL.len();
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 36] = [
        Self::Meta,
        Self::Comm,
        Self::Module,
        Self::Address,
        Self::Ip,
        Self::Thread,
        Self::DataSrc,
        Self::Weight,
        Self::Latency,
        Self::PhysAddr,
        Self::DataModule,
        Self::FromModule,
        Self::FromAddress,
        Self::From,
        Self::To,
        Self::Branch,
        Self::Offset,
        Self::MapSize,
        Self::Transaction,
        Self::Time,
        Self::CodePage,
        Self::DataPage,
        Self::Cgroup,
        Self::CgroupSpace,
        Self::DataAddr,
        Self::DataAddress,
        Self::DataLine,
        Self::LineOffset,
        Self::External,
        Self::Line,
        Self::FromLine,
        Self::Parent,
        Self::Chain,
        Self::Process,
        Self::Reach,
        Self::Payload,
    ];

    /// This word of a key.
    #[must_use]
    #[inline]
    pub fn of(self, key: &Key) -> u64 {
        key[self as usize]
    }

    /// This word of a key, to set.
    #[inline]
    pub fn of_mut(self, key: &mut Key) -> &mut u64 {
        &mut key[self as usize]
    }
}

/// A cache line in a key: the address of its first byte, and in the bits below what is known of its mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLine {
    /// The address of its first byte, in the module's own terms.
    pub address: u64,
    /// Whether it is data of a file that processes share.
    pub is_shared: bool,
    /// Whether anything is mapped there.
    pub is_mapped: bool,
}

impl CacheLine {
    /// How long one is, in bytes.
    pub const LEN: u64 = 64;

    /// As a word.
    #[must_use]
    #[inline]
    pub fn pack(self) -> u64 {
        self.address & !(Self::LEN - 1) | u64::from(self.is_shared) << 1 | u64::from(self.is_mapped)
    }

    /// The reverse of [`CacheLine::pack`].
    #[must_use]
    pub fn unpack(word: u64) -> Self {
        Self { address: word & !(Self::LEN - 1), is_shared: word & 2 != 0, is_mapped: word & 1 != 0 }
    }
}

/// An address in a key, beside the address itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct End {
    /// The CPU mode: the low bits of a record's `misc`.
    pub level: u8,
    /// Whether a symbol's number in its module stands in the place of the address.
    pub is_symbol: bool,
    /// Whether that is the number of a function that was inlined there.
    pub is_inlined: bool,
}

/// The small parts of a key in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The event's place in the file.
    pub event: u16,
    /// What [`Field::Address`] is.
    pub at: End,
    /// What [`Field::FromAddress`] is.
    pub from: End,
    /// The CPU; all ones where it is not sampled.
    pub cpu: u32,
}

impl End {
    fn pack(self) -> u64 {
        u64::from(self.level) << 2 | u64::from(self.is_inlined) << 1 | u64::from(self.is_symbol)
    }

    #[allow(clippy::cast_possible_truncation, reason = "a byte is cut out")]
    fn unpack(word: u64) -> Self {
        Self { level: (word as u8) >> 2, is_inlined: word & 2 == 2, is_symbol: word & 1 == 1 }
    }
}

impl Meta {
    /// As a word.
    #[must_use]
    #[inline]
    pub fn pack(self) -> u64 {
        u64::from(self.event) << 48 | self.from.pack() << 40 | self.at.pack() << 32 | u64::from(self.cpu)
    }

    /// Whether its address has a function; of a branch, both.
    #[must_use]
    pub fn is_resolved(self, of_branch: bool) -> bool {
        self.at.is_symbol && (!of_branch || self.from.is_symbol)
    }

    /// The reverse of [`Meta::pack`].
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "the parts are cut out by their widths")]
    pub fn unpack(word: u64) -> Self {
        let (at, from) = (End::unpack(word >> 32), End::unpack(word >> 40));
        Self { event: (word >> 48) as u16, at, from, cpu: word as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_keeps_every_part() {
        let (at, from) = (
            End { level: 5, is_symbol: true, is_inlined: false },
            End { level: 2, is_symbol: false, is_inlined: true },
        );
        let meta = Meta { event: 0xfedc, at, from, cpu: u32::MAX };
        assert_eq!(Meta::unpack(meta.pack()), meta);
        let line = CacheLine { address: 0x1240, is_shared: true, is_mapped: false };
        assert_eq!(CacheLine::unpack(line.pack()), line);
    }

    #[test]
    fn fields_stand_in_the_order_of_their_numbers() {
        for (number, field) in Field::ALL.into_iter().enumerate() {
            assert_eq!(field as usize, number);
        }
    }
}
