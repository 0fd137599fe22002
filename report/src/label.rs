//! From counted keys to rows of text: each distinct address is resolved once, each text made once.

use std::sync::Arc;

use rayon::prelude::*;
use recrep_format::abi::CpuMode;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::aggregate::{Count, Field, Key, Meta};
use crate::profile::{LabelId, Labels};
use crate::query::{Query, SortKey};
use crate::resolve::{Loaded, Module, ModuleKind, Resolver, SymbolId};
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

/// A row before it has a text: the key, with the function in the place of the address where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Resolved {
    key: Key,
    symbol: Option<SymbolId>,
}

/// A row: its event, its columns, what it has gathered.
pub type LabelledRow = (usize, Vec<LabelId>, Count);

impl Labeller<'_> {
    /// Makes rows of keys. Rows whose columns read the same may still come several times.
    #[must_use]
    pub fn label(&self, rows: &[(Key, Count)], resolver: &Resolver, labels: &mut Labels) -> Vec<LabelledRow> {
        let loaded = self.load(rows, resolver);
        let resolved = resolve(rows, &loaded);
        let threads = self.threads(&resolved);
        let mut texts = Texts { labeller: self, loaded: &loaded, threads, known: FxHashMap::default(), labels };
        let mut out = Vec::with_capacity(resolved.len());
        for (row, count) in resolved {
            if let Some(columns) = texts.columns(&row) {
                out.push((usize::from(Meta::unpack(Field::Meta.of(&row.key)).event), columns, count));
            }
        }
        out
    }

    /// The symbols of all modules that were hit, where functions are asked for.
    fn load(&self, rows: &[(Key, Count)], resolver: &Resolver) -> Vec<Option<Arc<Loaded>>> {
        if !self.query.needs_symbols() {
            return Vec::new();
        }
        let hit: FxHashSet<u64> = rows.iter().map(|(key, _)| Field::Module.of(key)).collect();
        let wanted = |(number, module): (u64, &&Module)| hit.contains(&(number + 1)).then(|| resolver.load(module));
        let modules: Vec<_> = (0u64..).zip(&self.modules).collect();
        modules.into_par_iter().map(wanted).collect()
    }

    /// A thread number's column is named after its first use that was sampled, as in perf.
    fn threads(&self, rows: &[(Resolved, Count)]) -> FxHashMap<i32, ThreadRef> {
        let mut first = FxHashMap::default();
        if self.query.has(SortKey::Pid) || self.query.has(SortKey::Tid) {
            for (row, _) in rows {
                let thread = ThreadRef::unpack(Field::Thread.of(&row.key));
                let (tid, _) = self.timeline.thread_label(thread);
                first.entry(tid).and_modify(|have: &mut ThreadRef| *have = thread.min(*have)).or_insert(thread);
            }
        }
        first
    }
}

fn module_of(loaded: &[Option<Arc<Loaded>>], number: u64) -> Option<&Loaded> {
    loaded.get(usize::try_from(number.checked_sub(1)?).ok()?)?.as_deref()
}

/// Puts functions in the place of addresses, and counts what has become the same together.
fn resolve(rows: &[(Key, Count)], loaded: &[Option<Arc<Loaded>>]) -> Vec<(Resolved, Count)> {
    let one = |(key, count): &(Key, Count)| {
        let mut key = *key;
        let found = module_of(loaded, Field::Module.of(&key)).and_then(|m| m.lookup(Field::Address.of(&key)));
        if found.is_some() {
            *Field::Address.of_mut(&mut key) = 0;
        }
        (Resolved { key, symbol: found.map(|symbol| symbol.id) }, *count)
    };
    let part = |rows: &[(Key, Count)]| {
        let mut map = FxHashMap::<Resolved, Count>::default();
        for (row, count) in rows.iter().map(one) {
            map.entry(row).or_default().add(count);
        }
        map
    };
    let len = rows.len().div_ceil(rayon::current_num_threads()).max(1);
    let mut parts = rows.par_chunks(len).map(part).collect::<Vec<_>>().into_iter();
    let mut all = parts.next().unwrap_or_default();
    for (row, count) in parts.flatten() {
        all.entry(row).or_default().add(count);
    }
    all.into_iter().collect()
}

/// Makes texts, each once.
struct Texts<'t, 'f> {
    labeller: &'t Labeller<'f>,
    loaded: &'t [Option<Arc<Loaded>>],
    threads: FxHashMap<i32, ThreadRef>,
    known: FxHashMap<(SortKey, [u64; 3]), LabelId>,
    labels: &'t mut Labels,
}

impl Texts<'_, '_> {
    /// The columns of a row; `None` where the filter by function leaves it out.
    fn columns(&mut self, row: &Resolved) -> Option<Vec<LabelId>> {
        let query = self.labeller.query;
        if let Some(wanted) = &query.filters.symbols
            && !self.function(row).is_some_and(|name| wanted.contains(name.as_ref()))
        {
            return None;
        }
        Some(query.columns.iter().map(|column| self.column(column.key, row)).collect())
    }

    fn column(&mut self, column: SortKey, row: &Resolved) -> LabelId {
        let word = |field: Field| field.of(&row.key);
        let meta = Meta::unpack(word(Field::Meta));
        let symbol = row.symbol.map_or(0, |id| u64::from(id.0) + 1);
        let identity = match column {
            SortKey::Comm => [word(Field::Comm), 0, 0],
            SortKey::Pid | SortKey::Tid => [word(Field::Thread), 0, 0],
            SortKey::Dso => [word(Field::Module), 0, 0],
            SortKey::Symbol => [word(Field::Module), word(Field::Address), symbol << 8 | u64::from(meta.level)],
            SortKey::Ip => [word(Field::Ip), 0, 0],
            SortKey::Cpu => [u64::from(meta.cpu), 0, 0],
            SortKey::Event => [u64::from(meta.event), 0, 0],
        };
        if let Some(label) = self.known.get(&(column, identity)) {
            return *label;
        }
        let text = self.text(column, row, meta);
        let label = self.labels.intern(text);
        self.known.insert((column, identity), label);
        label
    }

    fn text(&self, column: SortKey, row: &Resolved, meta: Meta) -> String {
        let word = |field: Field| field.of(&row.key);
        let timeline = self.labeller.timeline;
        match column {
            SortKey::Comm => timeline.comm(CommRef::unpack(word(Field::Comm))).into_owned(),
            SortKey::Pid | SortKey::Tid => {
                let (tid, _) = timeline.thread_label(ThreadRef::unpack(word(Field::Thread)));
                let last = self.threads.get(&tid).map(|thread| timeline.thread_label(*thread).1);
                format!("{tid}:{}", last.map_or_else(Default::default, |comm| timeline.comm(comm)))
            }
            SortKey::Dso => self.module(row).map_or_else(|| "[unknown]".into(), |module| module.name().into_owned()),
            SortKey::Symbol => {
                let level = level(meta.level);
                match self.function(row) {
                    Some(name) => format!("[{level}] {name}"),
                    None => format!("[{level}] {}", padded_hex(self.shown_address(row))),
                }
            }
            SortKey::Ip => format!("{:#x}", word(Field::Ip)),
            SortKey::Cpu => cpu(meta.cpu),
            SortKey::Event => self.labeller.events.get(usize::from(meta.event)).cloned().unwrap_or_default(),
        }
    }

    fn module(&self, row: &Resolved) -> Option<&Module> {
        let index = usize::try_from(Field::Module.of(&row.key).checked_sub(1)?).ok()?;
        self.labeller.modules.get(index).copied()
    }

    fn function(&self, row: &Resolved) -> Option<std::borrow::Cow<'_, str>> {
        module_of(self.loaded, Field::Module.of(&row.key))?.name(row.symbol?)
    }

    /// An address that has no function, in its module's own terms; kernel modules are looked up by other ones.
    fn shown_address(&self, row: &Resolved) -> u64 {
        let address = Field::Address.of(&row.key);
        match self.module(row).map(|m| &m.kind) {
            Some(ModuleKind::KernelModule { start, .. }) => address.wrapping_sub(*start),
            _ => address,
        }
    }
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
    fn numbers_read_as_in_perfs_columns() {
        assert_eq!(padded_hex(0x903d), "0x000000000000903d");
        assert_eq!(padded_hex(0), "0000000000000000");
        assert_eq!([cpu(1), cpu(1234), cpu(u32::MAX)], ["001", "1234", "-001"]);
        assert_eq!([1, 2, 3, 0].map(level), ['k', '.', 'H', 'H']);
    }
}
