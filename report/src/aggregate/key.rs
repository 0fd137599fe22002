//! Keys of a histogram: words that hold what was asked for.

use recrep_format::abi::{BranchFlags, DataSrc, SampleType};

use crate::query::Query;
use crate::sort_key::{Mode, SortKey};

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
}

/// The words of a key that are in use, and which parts of some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    fields: Vec<Field>,
    /// Whether the level is part of the key.
    pub level: bool,
    /// Whether the CPU is part of the key.
    pub cpu: bool,
    /// The bits of [`Field::DataSrc`].
    pub data_src: u64,
    /// The bits of [`Field::Latency`].
    pub latency: u64,
    /// The bits of [`Field::Branch`].
    pub branch: u64,
    /// The last field of a sample that must be found by walking it; `None` where none must.
    pub last: Option<SampleType>,
}

/// A key with room for every word; those not in use are 0.
pub type Key = [u64; Layout::MOST];

/// The second part of a weight, in a key.
const INS_LAT: u64 = 0xffff;
/// The third.
const STAGE: u64 = 0xffff << 16;

/// What a column needs of a key.
fn needs(key: SortKey) -> &'static [Field] {
    match key {
        SortKey::Comm => &[Field::Comm],
        SortKey::Pid | SortKey::Tid => &[Field::Thread],
        SortKey::Dso | SortKey::ToDso => &[Field::Module],
        SortKey::Symbol | SortKey::ToSymbol => &[Field::Module, Field::Address],
        SortKey::Ip => &[Field::Ip],
        SortKey::Cpu | SortKey::Event => &[],
        SortKey::DataSrc | SortKey::Mem | SortKey::Snoop | SortKey::Tlb | SortKey::Locked | SortKey::Blocked => {
            &[Field::DataSrc]
        }
        SortKey::LocalWeight | SortKey::Weight => &[Field::Weight],
        SortKey::LocalInsLat | SortKey::InsLat | SortKey::LocalStage | SortKey::Stage => &[Field::Latency],
        SortKey::PhysAddr => &[Field::PhysAddr],
        SortKey::DataDso => &[Field::DataModule],
        SortKey::FromDso => &[Field::FromModule],
        SortKey::FromSymbol => &[Field::FromModule, Field::FromAddress],
        SortKey::FromAddr => &[Field::From],
        SortKey::ToAddr => &[Field::To],
        SortKey::Mispredict | SortKey::InTx | SortKey::Abort | SortKey::Cycles => &[Field::Branch],
    }
}

impl Layout {
    /// How many words a key has at most.
    pub const MOST: usize = 16;
    const ALL: [Field; Self::MOST] = [
        Field::Meta,
        Field::Comm,
        Field::Module,
        Field::Address,
        Field::Ip,
        Field::Thread,
        Field::DataSrc,
        Field::Weight,
        Field::Latency,
        Field::PhysAddr,
        Field::DataModule,
        Field::FromModule,
        Field::FromAddress,
        Field::From,
        Field::To,
        Field::Branch,
    ];

    /// What this question needs.
    #[must_use]
    pub fn of(query: &Query) -> Self {
        let keys = || query.columns.iter().map(|column| column.key);
        let (by_module, by_symbol) = (query.filters.dsos.is_some(), query.filters.symbols.is_some());
        let needed = |field: &Field| match field {
            Field::Meta => true,
            Field::Module if by_module || by_symbol => true,
            Field::Address if by_symbol => true,
            field => keys().any(|key| needs(key).contains(field)),
        };
        let bits = |of: fn(SortKey) -> u64| keys().map(of).fold(0, |all, bits| all | bits);
        let mut layout = Self {
            fields: Self::ALL.into_iter().filter(needed).collect(),
            level: keys().any(|key| {
                matches!(key, SortKey::Symbol | SortKey::FromSymbol | SortKey::ToSymbol | SortKey::PhysAddr)
            }),
            cpu: query.has(SortKey::Cpu),
            data_src: bits(data_src_bits),
            latency: bits(latency_bits),
            branch: bits(branch_bits),
            last: None,
        };
        layout.last = layout.last_field(query.mode);
        layout
    }

    fn last_field(&self, mode: Mode) -> Option<SampleType> {
        if self.has(Field::PhysAddr) {
            Some(SampleType::PHYS_ADDR)
        } else if self.has(Field::DataSrc) {
            Some(SampleType::DATA_SRC)
        } else if mode == Mode::Memory || self.has(Field::Weight) || self.has(Field::Latency) {
            // WEIGHT or WEIGHT_STRUCT, whichever the event has.
            Some(SampleType::WEIGHT_STRUCT)
        } else if mode == Mode::Branches {
            Some(SampleType::BRANCH_STACK)
        } else if self.has(Field::DataModule) {
            Some(SampleType::ADDR)
        } else {
            None
        }
    }

    /// How many words are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Never: a key has at least its [`Meta`].
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether this word is in use.
    #[must_use]
    pub fn has(&self, field: Field) -> bool {
        self.fields.contains(&field)
    }

    /// The words in use of a whole key.
    #[must_use]
    #[inline]
    pub fn pack<const N: usize>(&self, key: &Key) -> [u64; N] {
        let mut packed = [0; N];
        for (word, field) in packed.iter_mut().zip(&self.fields) {
            *word = field.of(key);
        }
        packed
    }

    /// The whole key of the words in use.
    #[must_use]
    pub fn unpack<const N: usize>(&self, packed: &[u64; N]) -> Key {
        let mut key = Key::default();
        for (word, field) in packed.iter().zip(&self.fields) {
            *field.of_mut(&mut key) = *word;
        }
        key
    }
}

fn data_src_bits(key: SortKey) -> u64 {
    match key {
        SortKey::DataSrc => u64::MAX,
        SortKey::Mem => DataSrc::MEM,
        SortKey::Snoop => DataSrc::SNOOP,
        SortKey::Tlb => DataSrc::TLB,
        SortKey::Locked => DataSrc::LOCKED,
        SortKey::Blocked => DataSrc::BLOCKED,
        _ => 0,
    }
}

fn latency_bits(key: SortKey) -> u64 {
    match key {
        SortKey::LocalInsLat | SortKey::InsLat => INS_LAT,
        SortKey::LocalStage | SortKey::Stage => STAGE,
        _ => 0,
    }
}

fn branch_bits(key: SortKey) -> u64 {
    match key {
        SortKey::Mispredict => BranchFlags::PREDICTION,
        SortKey::InTx => BranchFlags::IN_TX,
        SortKey::Abort => BranchFlags::ABORT,
        SortKey::Cycles => BranchFlags::CYCLES,
        _ => 0,
    }
}

#[allow(clippy::indexing_slicing, reason = "a field's number is below the length of a key")]
impl Field {
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

/// An address in a key, beside the address itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// The CPU mode: the low bits of a record's `misc`.
    pub level: u8,
    /// Whether a symbol's number in its module stands in the place of the address.
    pub is_symbol: bool,
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
        u64::from(self.level) << 1 | u64::from(self.is_symbol)
    }

    #[allow(clippy::cast_possible_truncation, reason = "a byte is cut out")]
    fn unpack(word: u64) -> Self {
        Self { level: (word as u8) >> 1, is_symbol: word & 1 == 1 }
    }
}

impl Meta {
    /// As a word.
    #[must_use]
    #[inline]
    pub fn pack(self) -> u64 {
        u64::from(self.event) << 48 | self.from.pack() << 40 | self.at.pack() << 32 | u64::from(self.cpu)
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
    use crate::args;

    fn layout(line: &str) -> Layout {
        Layout::of(&args::parse(line.split(' ').map(Into::into)).unwrap())
    }

    #[test]
    fn only_what_is_needed_is_in_a_key() {
        assert_eq!(layout("rep -s comm").fields, [Field::Meta, Field::Comm]);
        assert_eq!(layout("rep -s sym").fields, [Field::Meta, Field::Module, Field::Address]);
        assert_eq!(layout("rep -s comm,dso,sym,ip,pid,cpu,event").len(), 6);
        assert!(layout("rep -s cpu").cpu && !layout("rep -s cpu").level);
        assert_eq!(layout("rep -s cpu -S main").fields, [Field::Meta, Field::Module, Field::Address]);
    }

    #[test]
    fn a_sample_is_walked_as_far_as_it_must_be() {
        assert_eq!(layout("rep").last, None);
        assert_eq!(layout("rep --mem-mode -s comm").last, Some(SampleType::WEIGHT_STRUCT));
        assert_eq!(layout("rep --mem-mode -s mem").last, Some(SampleType::DATA_SRC));
        assert_eq!(layout("rep -s phys_daddr,mem").last, Some(SampleType::PHYS_ADDR));
        assert_eq!(layout("rep -b -s dso").last, Some(SampleType::BRANCH_STACK));
    }

    #[test]
    fn packing_keeps_every_part() {
        let (at, from) = (End { level: 5, is_symbol: true }, End { level: 2, is_symbol: false });
        let meta = Meta { event: 0xfedc, at, from, cpu: u32::MAX };
        assert_eq!(Meta::unpack(meta.pack()), meta);
        let layout = Layout { fields: vec![Field::Meta, Field::Address], ..Layout::default() };
        let mut key = Key::default();
        (*Field::Meta.of_mut(&mut key), *Field::Address.of_mut(&mut key)) = (1, 4);
        assert_eq!(layout.pack::<2>(&key), [1, 4]);
        assert_eq!(layout.unpack(&[1, 4]), key);
    }
}
