//! Fields of a key that a query needs, and how far samples must be parsed for them.

use recrep_format::abi::SampleType;

use crate::query::{
    CacheLine, Field, FrameKey, INS_LAT, Key, Meta, Mode, NO_KEY, Number, Query, STAGE, SortKey,
};

/// Fields of a key that are in use, and the parts of some fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    fields: Vec<Field>,
    /// The same as bits, by discriminant.
    bits: u64,
    /// `true` if the CPU mode is part of the key.
    pub cpu_mode: bool,
    /// `true` if the CPU is part of the key.
    pub cpu: bool,
    /// Bits of `Field::DataSrc` in use.
    pub data_src: u64,
    /// Bits of `Field::Latency` in use.
    pub latency: u64,
    /// Bits of `Field::Branch` in use.
    pub branch: u64,
    /// Assumed size of a cache line, in bytes.
    pub line: u64,
    /// Last needed field of a sample that is found only by walking the sample; `None` if there is
    /// none.
    pub last: Option<SampleType>,
}

impl Layout {
    pub(crate) fn of(query: &Query) -> Self {
        let keys = query.columns.iter().map(|column| column.key.declared());
        let (by_module, by_symbol) =
            (query.filters.samples.dsos.is_some(), query.filters.by_symbol());
        let weights = query
            .numbers()
            .any(|n| matches!(n, Number::Weight1 | Number::Weight2 | Number::Weight3));
        let callees_have_positions =
            query.chains.ignored_callees.is_some() && query.chains.key != FrameKey::Function;
        let needed = |field: &Field| match field {
            Field::Meta => true,
            Field::Module if by_module || by_symbol => true,
            Field::Address if by_symbol => true,
            Field::FromModule | Field::FromAddress if query.filters.resolved => {
                query.mode.is_of_branches()
            }
            Field::Weight | Field::Latency if weights => true,
            Field::Module | Field::Address if query.chains.counted => true,
            // Lines are looked up by addresses.
            Field::Address if query.needs(Field::Line) => true,
            Field::FromAddress if query.needs(Field::FromLine) => true,
            Field::Chain => query.chains.counted,
            // Functions that replace their callees become frames, which lines or offsets tell
            // apart.
            Field::Line | Field::Offset if callees_have_positions => true,
            field => query.needs(*field),
        };
        let [data_src, latency, branch] =
            [Field::DataSrc, Field::Latency, Field::Branch].map(|field| {
                let first = keys.clone().filter(|key| key.fields.first() == Some(&field));
                first.fold(0, |bits, key| bits | key.bits)
            });
        let meta = keys.fold(0, |meta, key| meta | key.meta);
        let mut layout = Self {
            cpu_mode: meta & (Meta::AT_MODE | Meta::FROM_MODE) != 0 || query.has_parts(),
            cpu: meta & Meta::CPU != 0,
            data_src,
            latency: if weights { INS_LAT | STAGE } else { latency },
            branch,
            line: if query.double_lines { 2 * CacheLine::LEN } else { CacheLine::LEN },
            ..Self::of_fields(Field::ALL.iter().copied().filter(needed).collect())
        };
        layout.last = layout.last_field(query.mode);
        layout
    }

    fn of_fields(fields: Vec<Field>) -> Self {
        Self {
            bits: fields.iter().fold(0, |bits, field| bits | 1 << *field as u32),
            fields,
            ..Self::default()
        }
    }

    /// Returns this layout with a frame in the place of all that a frame tells.
    pub(crate) fn by_frame(&self) -> Self {
        let told = [Field::Module, Field::Address, Field::Ip, Field::MapSize];
        let kept = self.fields.iter().filter(|field| !told.contains(field)).copied();
        let Self { fields, bits, .. } = Self::of_fields(kept.chain([Field::Frame]).collect());
        Self { fields, bits, ..self.clone() }
    }

    /// Returns the last of the needed fields in a sample. Fields at fixed offsets need no walk.
    fn last_field(&self, mode: Mode) -> Option<SampleType> {
        let has = |fields: &[Field]| fields.iter().any(|field| self.has(*field));
        let needed = [
            (has(&[Field::CodePage]), SampleType::CODE_PAGE_SIZE),
            (has(&[Field::DataPage]), SampleType::DATA_PAGE_SIZE),
            (has(&[Field::Cgroup]), SampleType::CGROUP),
            (has(&[Field::PhysAddr]), SampleType::PHYS_ADDR),
            (has(&[Field::Transaction]), SampleType::TRANSACTION),
            (has(&[Field::DataSrc]), SampleType::DATA_SRC),
            // WEIGHT or WEIGHT_STRUCT, whichever the event has.
            (
                mode == Mode::Memory || has(&[Field::Weight, Field::Latency]),
                SampleType::WEIGHT_STRUCT,
            ),
            (mode.is_of_branches(), SampleType::BRANCH_STACK),
            (has(&[Field::Payload]), SampleType::RAW),
            (has(&[Field::DataModule, Field::DataAddr, Field::LineOffset]), SampleType::ADDR),
        ];
        needed.into_iter().find_map(|(is_needed, field)| is_needed.then_some(field))
    }

    /// Returns whether any field depends on the sample's thread or on what was mapped, which
    /// samples do not tell.
    pub(crate) fn has_tasks(&self) -> bool {
        const IN_SAMPLES: [Field; 11] = {
            use Field::*;
            [
                Meta,
                Ip,
                DataSrc,
                Weight,
                Latency,
                PhysAddr,
                Transaction,
                Time,
                CodePage,
                DataPage,
                Cgroup,
            ]
        };
        !self.fields.iter().all(|field| IN_SAMPLES.contains(field))
    }

    /// Returns the number of words in use.
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns the place of a field among the words in use.
    pub(crate) fn place(&self, field: Field) -> Option<usize> {
        self.fields.iter().position(|used| *used == field)
    }

    #[inline]
    pub(crate) fn has(&self, field: Field) -> bool {
        self.bits & (1 << field as u32) != 0
    }

    /// Returns whether the cells of a table with these columns of numbers differ wherever keys do.
    pub(crate) fn is_told_by(&self, columns: impl Iterator<Item = SortKey>) -> bool {
        let (mut told, mut tells_cpu) = (1 << Field::Meta as u32, false);
        for key in columns.map(SortKey::declared).filter(|key| key.is_exact()) {
            match key.fields.first() {
                Some(field) => told |= 1 << *field as u32,
                None => tells_cpu |= key.meta == Meta::CPU,
            }
        }
        self.bits & !told == 0 && !self.cpu_mode && (!self.cpu || tells_cpu)
    }

    /// Copies the words in use from a key to `packed`.
    #[inline]
    pub(crate) fn pack(&self, key: &Key, packed: &mut [u64]) {
        for (word, field) in packed.iter_mut().zip(&self.fields) {
            *word = field.of(key);
        }
    }

    /// Returns the key with these words in use, the others 0.
    #[inline]
    pub(crate) fn unpack(&self, packed: &[u64]) -> Key {
        let mut key = NO_KEY;
        self.unpack_into(packed, &mut key);
        key
    }

    /// Sets the words in use of a key to these.
    #[inline]
    pub(crate) fn unpack_into(&self, packed: &[u64], key: &mut Key) {
        for (word, field) in packed.iter().zip(&self.fields) {
            *field.of_mut(key) = *word;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args;

    fn layout(line: &str) -> Layout {
        Layout::of(&args::parse(line.split(' ').map(Into::into)).unwrap())
    }

    #[test]
    fn keys_have_only_needed_fields() {
        assert_eq!(layout("rep -s comm").fields, [Field::Meta, Field::Comm]);
        assert_eq!(layout("rep -s sym").fields, [Field::Meta, Field::Module, Field::Address]);
        assert_eq!(layout("rep -s comm,dso,sym,ip,pid,cpu,event").len(), 6);
        assert!(layout("rep -s cpu").cpu && !layout("rep -s cpu").cpu_mode);
        assert_eq!(
            layout("rep -s cpu -S main").fields,
            [Field::Meta, Field::Module, Field::Address]
        );
    }

    #[test]
    fn numbers_tell_keys_apart_if_no_other_word_is_needed() {
        let is_told = |line: &str| {
            let query = args::parse(line.split(' ').map(Into::into)).unwrap();
            Layout::of(&query).is_told_by(query.columns.iter().map(|column| column.key))
        };
        assert!(
            ["rep -s ip", "rep -s cpu,ip", "rep --mem-mode -s weight"].into_iter().all(is_told)
        );
        let untold = [
            "rep -s ip,comm",
            "rep -s socket,ip",
            "rep -s time",
            "rep -s ip -S main",
            "rep --mem-mode -s mem",
        ];
        assert!(!untold.into_iter().any(is_told));
    }

    #[test]
    fn samples_are_walked_up_to_the_last_needed_field() {
        assert_eq!(layout("rep").last, None);
        assert_eq!(layout("rep --mem-mode -s comm").last, Some(SampleType::WEIGHT_STRUCT));
        assert_eq!(layout("rep --mem-mode -s mem").last, Some(SampleType::DATA_SRC));
        assert_eq!(layout("rep -s phys_daddr,mem").last, Some(SampleType::PHYS_ADDR));
        assert_eq!(layout("rep -b -s dso").last, Some(SampleType::BRANCH_STACK));
    }

    #[test]
    fn packing_keeps_the_words_in_use() {
        let layout = Layout::of_fields(vec![Field::Meta, Field::Address]);
        let mut key = NO_KEY;
        (*Field::Meta.of_mut(&mut key), *Field::Address.of_mut(&mut key)) = (1, 4);
        let mut packed = [0; 2];
        layout.pack(&key, &mut packed);
        assert_eq!(packed, [1, 4]);
        assert_eq!(layout.unpack(&[1, 4]), key);
    }
}
