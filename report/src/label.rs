//! From counted keys to rows of text: each distinct address is resolved once, each text made once.

use std::borrow::Cow;
use std::sync::Arc;

use rayon::prelude::*;
use recrep_format::abi::CpuMode;
use rustc_hash::FxHashMap;

use crate::aggregate::{Count, Field, Key, Meta};
use crate::profile::{LabelId, Labels};
use crate::query::{Query, SortKey};
use crate::resolve::{Loaded, Module, ModuleKind, Resolver, SymbolId};
use crate::scan::Named;
use crate::timeline::{CommRef, ThreadRef, Timeline};

/// What the numbers in the keys of one file stand for.
#[derive(Debug)]
pub struct Labeller<'f> {
    /// What was asked.
    pub query: &'f Query,
    /// Comms and threads.
    pub timeline: &'f Timeline,
    /// Modules by their numbers.
    pub modules: Vec<&'f Module>,
    /// The names of the events.
    pub events: &'f [String],
}

/// A row: its event, its columns, what it has gathered.
pub type LabelledRow = (usize, Vec<LabelId>, Count);

/// The symbols of modules by their numbers; none of those that were not hit.
pub type Symbols = Vec<Option<Arc<Loaded>>>;

impl Labeller<'_> {
    /// The symbols of all modules that were hit, where functions are asked for.
    #[must_use]
    pub fn load(&self, hits: &[bool], resolver: &Resolver) -> Symbols {
        if !self.query.needs_symbols() {
            return Vec::new();
        }
        self.modules.par_iter().zip(hits).map(|(module, hit)| hit.then(|| resolver.load(module))).collect()
    }

    /// Puts the function in the place of the address.
    #[must_use]
    pub fn resolve(&self, mut key: Key, symbols: &Symbols) -> Key {
        let module = module_of(symbols, Field::Module.of(&key));
        if let Some(symbol) = module.and_then(|m| m.table.find(Field::Address.of(&key))) {
            let meta = Meta { is_symbol: true, ..Meta::unpack(Field::Meta.of(&key)) };
            *Field::Meta.of_mut(&mut key) = meta.pack();
            *Field::Address.of_mut(&mut key) = u64::from(symbol.0);
        }
        key
    }

    /// Makes rows of text. Rows whose columns read the same may still come several times.
    #[must_use]
    pub fn label(
        &self,
        rows: Vec<(Key, Count)>,
        named: &Named,
        symbols: &Symbols,
        labels: &mut Labels,
    ) -> Vec<LabelledRow> {
        let wanted = |row: &Key| match &self.query.filters.symbols {
            None => true,
            Some(names) => function(symbols, row).is_some_and(|name| names.contains(name.as_ref())),
        };
        let rows: Vec<_> = rows.into_iter().filter(|(row, _)| wanted(row)).collect();
        let comm_widths = self.comm_widths(&rows, named);
        let texts = Texts { labeller: self, symbols, threads: self.threads(&rows), comm_widths };
        let columns: Vec<_> = self.query.columns.iter().map(|c| texts.column(c.key, &rows, labels)).collect();
        let columns_of = |row: usize| columns.iter().filter_map(|column| column.get(row).copied()).collect();
        let event = |row: &Key| usize::from(Meta::unpack(Field::Meta.of(row)).event);
        rows.iter().enumerate().map(|(place, (row, count))| (event(row), columns_of(place), *count)).collect()
    }

    /// How wide perf's column of comms is for each event: as wide as its heading and as the last names of the threads
    /// in its rows. A name that a thread gave up for a shorter one is cut to that, so that it reads as in perf.
    fn comm_widths(&self, rows: &[(Key, Count)], named: &Named) -> Vec<usize> {
        const HEADING: usize = "Command".len();
        let mut widths = vec![HEADING; self.events.len()];
        if !self.query.has(SortKey::Comm) {
            return widths;
        }
        let mut longest = FxHashMap::<u64, usize>::default();
        for (comm, thread) in named {
            let (_, last) = self.timeline.thread_label(ThreadRef::unpack(*thread));
            let most = longest.entry(*comm).or_default();
            *most = (*most).max(self.timeline.comm(last).len());
        }
        for (row, _) in rows {
            let event = usize::from(Meta::unpack(Field::Meta.of(row)).event);
            if let (Some(width), Some(len)) = (widths.get_mut(event), longest.get(&Field::Comm.of(row))) {
                *width = (*width).max(*len);
            }
        }
        widths
    }

    /// A thread number's column is named after its first use that was sampled, as in perf.
    fn threads(&self, rows: &[(Key, Count)]) -> FxHashMap<i32, ThreadRef> {
        let mut first = FxHashMap::default();
        if self.query.has(SortKey::Pid) || self.query.has(SortKey::Tid) {
            for (row, _) in rows {
                let thread = ThreadRef::unpack(Field::Thread.of(row));
                let (tid, _) = self.timeline.thread_label(thread);
                first.entry(tid).and_modify(|have: &mut ThreadRef| *have = thread.min(*have)).or_insert(thread);
            }
        }
        first
    }
}

fn module_of(symbols: &Symbols, number: u64) -> Option<&Loaded> {
    symbols.get(usize::try_from(number.checked_sub(1)?).ok()?)?.as_deref()
}

fn function<'s>(symbols: &'s Symbols, row: &Key) -> Option<Cow<'s, str>> {
    let module = module_of(symbols, Field::Module.of(row))?;
    let is_symbol = Meta::unpack(Field::Meta.of(row)).is_symbol;
    module.name(SymbolId(u32::try_from(Field::Address.of(row)).ok().filter(|_| is_symbol)?))
}

/// Makes texts, each once.
struct Texts<'t, 'f> {
    labeller: &'t Labeller<'f>,
    symbols: &'t Symbols,
    threads: FxHashMap<i32, ThreadRef>,
    comm_widths: Vec<usize>,
}

impl Texts<'_, '_> {
    /// The texts of one column, row by row: what differs is found first, then made into text by all cores.
    fn column(&self, column: SortKey, rows: &[(Key, Count)], labels: &mut Labels) -> Vec<LabelId> {
        let mut slots = FxHashMap::<[u64; 3], usize>::default();
        let mut firsts = Vec::new();
        let mut slot_of = |row: &Key| {
            *slots.entry(identity(column, row)).or_insert_with(|| {
                firsts.push(*row);
                firsts.len() - 1
            })
        };
        let slots: Vec<usize> = rows.iter().map(|(row, _)| slot_of(row)).collect();
        let texts: Vec<String> = firsts.par_iter().map(|row| self.text(column, row)).collect();
        let ids: Vec<LabelId> = texts.into_iter().map(|text| labels.intern(text)).collect();
        slots.into_iter().filter_map(|slot| ids.get(slot).copied()).collect()
    }

    fn text(&self, column: SortKey, row: &Key) -> String {
        let word = |field: Field| field.of(row);
        let meta = Meta::unpack(word(Field::Meta));
        let timeline = self.labeller.timeline;
        match column {
            SortKey::Comm => {
                let width = self.comm_widths.get(usize::from(meta.event)).copied().unwrap_or(usize::MAX);
                cut(&timeline.comm(CommRef::unpack(word(Field::Comm))), width).to_owned()
            }
            SortKey::Pid | SortKey::Tid => {
                let (tid, _) = timeline.thread_label(ThreadRef::unpack(word(Field::Thread)));
                let last = self.threads.get(&tid).map(|thread| timeline.thread_label(*thread).1);
                format!("{tid}:{}", last.map_or_else(Default::default, |comm| timeline.comm(comm)))
            }
            SortKey::Dso => self.module(row).map_or_else(|| "[unknown]".into(), |module| module.name().into_owned()),
            SortKey::Symbol => {
                let level = level(meta.level);
                match function(self.symbols, row) {
                    Some(name) => format!("[{level}] {name}"),
                    None => format!("[{level}] {}", padded_hex(self.shown_address(row))),
                }
            }
            SortKey::Ip => format!("{:#x}", word(Field::Ip)),
            SortKey::Cpu => cpu(meta.cpu),
            SortKey::Event => self.labeller.events.get(usize::from(meta.event)).cloned().unwrap_or_default(),
        }
    }

    fn module(&self, row: &Key) -> Option<&Module> {
        let index = usize::try_from(Field::Module.of(row).checked_sub(1)?).ok()?;
        self.labeller.modules.get(index).copied()
    }

    /// An address that has no function, in its module's own terms; kernel modules are looked up by other ones.
    fn shown_address(&self, row: &Key) -> u64 {
        let address = Field::Address.of(row);
        match self.module(row).map(|m| &m.kind) {
            Some(ModuleKind::KernelModule { start, .. }) => address.wrapping_sub(*start),
            _ => address,
        }
    }
}

/// What of a row its text in this column depends on.
fn identity(column: SortKey, row: &Key) -> [u64; 3] {
    let word = |field: Field| field.of(row);
    let meta = Meta::unpack(word(Field::Meta));
    match column {
        SortKey::Comm => [word(Field::Comm), u64::from(meta.event), 0],
        SortKey::Pid | SortKey::Tid => [word(Field::Thread), 0, 0],
        SortKey::Dso => [word(Field::Module), 0, 0],
        SortKey::Symbol => [word(Field::Module), word(Field::Address), Meta { event: 0, cpu: 0, ..meta }.pack()],
        SortKey::Ip => [word(Field::Ip), 0, 0],
        SortKey::Cpu => [u64::from(meta.cpu), 0, 0],
        SortKey::Event => [u64::from(meta.event), 0, 0],
    }
}

/// The first `width` bytes of a text, or fewer where a character would be split.
fn cut(text: &str, width: usize) -> &str {
    let fits = (0..=width.min(text.len())).rev().find_map(|len| text.get(..len));
    fits.unwrap_or_default()
}

/// As C's `%#.16llx`, which gives zero no prefix.
fn padded_hex(address: u64) -> String {
    if address == 0 { format!("{address:016x}") } else { format!("{address:#018x}") }
}

/// The letter for a CPU mode in the symbol column.
fn level(bits: u8) -> char {
    match CpuMode::of(u16::from(bits)) {
        CpuMode::Kernel => 'k',
        CpuMode::User => '.',
        _ => 'H',
    }
}

/// A CPU as the column has it: three digits; where none was sampled, perf's -1.
fn cpu(number: u32) -> String {
    if number == u32::MAX { "-001".into() } else { format!("{number:03}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("perf-exec", 7), "perf-ex");
        assert_eq!(cut("ls", 7), "ls");
        assert_eq!(cut("fähre", 2), "f");
    }

    #[test]
    fn numbers_read_as_in_perfs_columns() {
        assert_eq!(padded_hex(0x903d), "0x000000000000903d");
        assert_eq!(padded_hex(0), "0000000000000000");
        assert_eq!([cpu(1), cpu(1234), cpu(u32::MAX)], ["001", "1234", "-001"]);
        assert_eq!([1, 2, 3, 0].map(level), ['k', '.', 'H', 'H']);
    }
}
