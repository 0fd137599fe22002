//! Cells of rows. Each distinct text is built once.

use std::borrow::Cow;

use indexmap::IndexMap;
use rayon::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::labeller::{Labeller, frame_at};
use crate::callchain::{Frame, NAMES_AT_ONCE, UNMAPPED};
use crate::profile::names::{CALLERS_UNKNOWN, Subject, Text};
use crate::query::word_text::{cpu, cpu_mode_letter, padded_hex};
use crate::query::{
    CacheLine, Declaration, Field, Key, KeyAddress, Kind, Meta, NO_KEY, Name, Shown, SortKey,
};
use crate::symbols::{FunctionPlace, LabelSlot, LineId, Module, ModuleKind, SymbolId};
use crate::timeline::{Activity, CommRef, ThreadRef};

/// Least number of rows whose distinct contents one core finds at a time.
const PART: usize = 1 << 14;

/// Bit of a cell that has the number of its text, rather than that of its content.
const KNOWN: u64 = 1 << 63;

impl Labeller<'_> {
    /// Returns the words of rows, given their keys: the number of the event, then the cells of the
    /// query's columns. Several rows may have equal words. Finds the distinct contents first, then
    /// builds their texts in parallel.
    #[must_use]
    pub(crate) fn label(&self, rows: usize, read_key: ReadKey<'_>) -> Vec<u64> {
        let (columns, width) = (&self.query.columns, self.query.width());
        let threads = self.threads(rows, read_key);
        let mut words = vec![0; rows * width];
        let declared: Vec<(&Declaration, Kind)> =
            columns.iter().map(|column| column.key.declared()).zip(self.query.kinds()).collect();
        // Each core numbers the distinct contents of some rows; their texts are joined. Fewer parts
        // build fewer texts.
        let size = rows.div_ceil(rayon::current_num_threads()).max(PART);
        let part = |(part, words): (usize, &mut [u64])| {
            let (mut found, mut key) = (vec![Distinct::default(); columns.len()], NO_KEY);
            for (row, words) in (part * size..).zip(words.chunks_exact_mut(width)) {
                let Some((event, cells)) = words.split_first_mut() else { continue };
                read_key(row, &mut key);
                *event = u64::from(Meta::unpack(Field::Meta.of(&key)).event);
                let of_columns = declared.iter().zip(columns).zip(cells).zip(&mut found);
                for ((((declared, kind), column), cell), found) in of_columns {
                    *cell = match kind {
                        Kind::Label => match Text::known(self.slot(column.key, &key)) {
                            Some(Text::Known(label)) => KNOWN | u64::from(label),
                            _ => {
                                let content = found.entry(declared.content(&key));
                                let number = content.index() as u64;
                                content.or_insert(row);
                                number
                            }
                        },
                        // Rows must not differ in digits that are not displayed.
                        Kind::Micros => declared.number(&key) / 1000 * 1000,
                        _ => declared.number(&key),
                    };
                }
            }
            found
        };
        let parts: Vec<Vec<Distinct>> =
            words.par_chunks_mut(size * width).enumerate().map(part).collect();
        for (place, (column, (_, kind))) in columns.iter().zip(&declared).enumerate() {
            if *kind != Kind::Label {
                continue;
            }
            let text = |row: usize| {
                let mut key = NO_KEY;
                read_key(row, &mut key);
                let (text, subject) = self.text(column.key, &key, &threads);
                Text::New(text, subject, self.slot(column.key, &key))
            };
            let of_column = parts.iter().filter_map(|part| part.get(place));
            let rows: Vec<Vec<usize>> =
                of_column.map(|part| part.values().copied().collect()).collect();
            let texts: Vec<Vec<Text<'_>>> = rows
                .into_par_iter()
                .map(|rows| rows.into_par_iter().with_max_len(NAMES_AT_ONCE).map(text).collect())
                .collect();
            let mut labels = self.labels.cells.lock();
            labels.reserve(texts.iter().map(Vec::len).sum());
            let mut of_part = |texts: Vec<Text<'_>>| {
                texts.into_iter().map(|text| labels.number(text).into()).collect()
            };
            let numbers: Vec<Vec<u64>> = texts.into_iter().map(&mut of_part).collect();
            drop(labels);
            words.par_chunks_mut(size * width).zip(&numbers).for_each(|(words, numbers)| {
                for cell in
                    words.chunks_exact_mut(width).filter_map(|words| words.get_mut(1 + place))
                {
                    let number =
                        usize::try_from(*cell).ok().and_then(|cell| numbers.get(cell)).copied();
                    *cell = number.unwrap_or(*cell & !KNOWN);
                }
            });
        }
        words
    }

    /// Returns the first sampled thread of each tid: all rows of a reused tid show the name of that
    /// thread, as in perf.
    fn threads(&self, rows: usize, read_key: ReadKey<'_>) -> Threads {
        let mut first = Threads::default();
        if self.query.needs(Field::Thread) {
            let mut key = NO_KEY;
            for row in 0..rows {
                read_key(row, &mut key);
                let thread = ThreadRef::unpack(Field::Thread.of(&key));
                let (tid, _) = self.timeline.thread_label(thread);
                first.entry(tid).and_modify(|have| *have = thread.min(*have)).or_insert(thread);
            }
        }
        first
    }

    /// Returns the slot for the number of a column's text, and the kind of the text, if that is the
    /// name of a function.
    fn slot(&self, column: SortKey, row: &Key) -> Option<(&LabelSlot, u8)> {
        let Shown::Name(Name::Function(side)) = column.declared().shown else { return None };
        let frame = frame_at(row, side);
        let slots = self.label_slots(&frame);
        slots.map(|slots| (&slots.cell, frame.end.cpu_mode))
    }

    /// Returns the text of a column, and what it stands for.
    fn text(&self, column: SortKey, row: &Key, threads: &Threads) -> (String, Subject) {
        let declared = column.declared();
        let word = declared.word(row);
        match declared.shown {
            // Columns of numbers have no text.
            Shown::Number(_) => Default::default(),
            Shown::Text(text) => (text(word), Subject::Word(word)),
            Shown::Trace => {
                let text = self.traced.map(|traced| traced.text(word, column));
                (text.unwrap_or_default(), Subject::Text)
            }
            Shown::Input => (self.input_part(column).to_owned(), Subject::Text),
            Shown::Name(Name::Function(side)) => self.symbol(row, side),
            Shown::Name(Name::FunctionOffset) => self.symbol_offset(row),
            Shown::Name(name) => {
                let subject = match name {
                    Name::Thread => {
                        Subject::Task(self.timeline.thread_label(ThreadRef::unpack(word)).0)
                    }
                    Name::Process => Subject::Task(pid(word)),
                    Name::Place(side) => self.place(row, side),
                    Name::FunctionPlace => self.function_place(row),
                    _ => Subject::Text,
                };
                (self.name(name, row, word, threads), subject)
            }
            Shown::Part(name, part) => (part(&self.name(name, row, word, threads)), Subject::Text),
        }
    }

    /// Returns what a `--by` column shows of the input.
    fn input_part(&self, column: SortKey) -> &str {
        let SortKey::Input(number) = column else { return "" };
        self.query.by.get(usize::from(number)).map_or("", |by| by.part(self.input))
    }

    /// Returns the name that the first word of a column and the others of the row stand for.
    fn name(&self, name: Name, row: &Key, first: u64, threads: &Threads) -> String {
        let word = |field: Field| field.of(row);
        let meta = Meta::unpack(word(Field::Meta));
        let letter = cpu_mode_letter(meta.at.cpu_mode);
        let Labeller { timeline, events, groups, .. } = self;
        match name {
            Name::Comm => timeline.comm(CommRef::unpack(first)).into_owned(),
            Name::Thread => {
                let (tid, _) = timeline.thread_label(ThreadRef::unpack(first));
                let last = threads.get(&tid).map(|thread| timeline.thread_label(*thread).1);
                format!("{tid}:{}", last.map_or_else(Default::default, |comm| timeline.comm(comm)))
            }
            Name::Process => {
                let pid = pid(first);
                format!("{pid}:{}", timeline.comm(timeline.process_comm(pid)))
            }
            Name::Module => self
                .module(first)
                .map_or_else(|| "[unknown]".into(), |module| module.name().into_owned()),
            Name::Path => self.path(first).into_owned(),
            Name::BuildId => {
                let id = self.module(first).and_then(|module| module.build_id);
                id.map_or_else(String::new, |id| id.to_string())
            }
            Name::Identity => self.module(first).map_or_else(String::new, Module::identity),
            Name::MapSize if first == 0 => "unknown".into(),
            Name::MapSize => word(Field::MapSize).to_string(),
            Name::Function(side) => self.symbol(row, side).0,
            Name::FunctionSize => {
                self.symbol_size(row).map_or_else(|| "unknown".into(), |size| size.to_string())
            }
            Name::FunctionOffset => self.symbol_offset(row).0,
            // Functions of two builds are told apart by their subjects.
            Name::FunctionPlace => format!("{} {:x}", self.path(first), word(Field::Address)),
            Name::Line(side) => self.source_line(row, side),
            Name::Place(side) => format!("{}+0x{:x}", self.path(first), word(side.address())),
            Name::Data => self.marked(letter, &self.address(first)),
            Name::DataSymbol => self.marked(
                letter,
                &self.data_symbol(first, word(Field::DataAddress), word(Field::DataAddr)),
            ),
            Name::CacheLine => {
                let line = CacheLine::unpack(word(Field::DataLine));
                // `s` is for data shared between processes; at `X` nothing is mapped.
                let letter = match letter {
                    _ if !line.is_mapped => 'X',
                    letter if line.is_shared && letter != 'k' => 's',
                    letter => letter,
                };
                self.marked(letter, &self.data_symbol(first, line.address, line.address))
            }
            Name::Event => events.get(usize::from(meta.event)).cloned().unwrap_or_default(),
            Name::Socket => cpu(groups.socket(meta.cpu).unwrap_or(u32::MAX)),
            Name::Cgroup if first == 0 => "N/A".into(),
            Name::Cgroup => groups.cgroup(first).unwrap_or("unknown").into(),
            Name::CgroupSpace => {
                let (dev, inode) = groups.space(first).unwrap_or_default();
                format!("{dev}/0x{inode:x}")
            }
            Name::Parent => self.parent(first),
            Name::Activity => Activity::unpack(first).name().into(),
        }
    }

    /// Returns the path of a module, given its number in a key.
    fn path(&self, number: u64) -> Cow<'_, str> {
        self.module(number)
            .map_or_else(|| "[unknown]".into(), |module| String::from_utf8_lossy(&module.path))
    }

    /// Returns the function at an address, or the address, and what the text stands for.
    fn symbol(&self, row: &Key, side: KeyAddress) -> (String, Subject) {
        let frame = frame_at(row, side);
        if let Some(name) = self.function(&frame) {
            return self.marked_function(&frame, &name, "");
        }
        let module = self.module(frame.module.into());
        // Kernel modules are looked up by absolute address; what is printed is relative to their
        // start.
        let shown = match module.map(|module| &module.kind) {
            Some(ModuleKind::KernelModule { start, .. }) => frame.address.wrapping_sub(*start),
            _ => frame.address,
        };
        let has_offsets = |module: &&Module| {
            let kinds = matches!(
                module.kind,
                ModuleKind::File | ModuleKind::Vdso | ModuleKind::KernelModule { .. }
            );
            kinds && !self.as_perf()
        };
        let text = match module.filter(has_offsets) {
            _ if frame.is_missing() => CALLERS_UNKNOWN.into(),
            _ if frame.address == UNMAPPED => "[unknown]".into(),
            Some(module) => format!("{}+{shown:#x}", module.name()),
            None => self.address(shown),
        };
        (self.marked(cpu_mode_letter(frame.end.cpu_mode), &text), Subject::Address(shown))
    }

    /// Returns the function at the sampled address, and the offset in it.
    fn symbol_offset(&self, row: &Key) -> (String, Subject) {
        let frame = frame_at(row, KeyAddress::At);
        match self.function(&frame) {
            Some(name) => {
                self.marked_function(&frame, &name, &format!("+{:#x}", Field::Offset.of(row)))
            }
            None => self.symbol(row, KeyAddress::At),
        }
    }

    /// Returns the text of a frame's function, with the letter of the CPU mode and what follows.
    fn marked_function(&self, frame: &Frame, name: &str, after: &str) -> (String, Subject) {
        let text = self.marked(cpu_mode_letter(frame.end.cpu_mode), &[name, after].concat());
        let start = text.len() - after.len() - name.len();
        (text, Subject::Function(self.named(frame, start, name)))
    }

    /// Returns the offset of an address in the file of its module.
    fn place(&self, row: &Key, side: KeyAddress) -> Subject {
        match self.module_number(side.module().of(row)) {
            Some(module) => Subject::Place { module, offset: side.address().of(row) },
            None => Subject::Text,
        }
    }

    /// Returns the place of the function at the sampled address, if one is known.
    fn function_place(&self, row: &Key) -> Subject {
        let frame = frame_at(row, KeyAddress::At);
        let symbol = u32::try_from(frame.address).ok().map(SymbolId);
        let symbol = symbol.filter(|_| frame.end.is_symbol && !frame.end.is_inlined);
        match self.loaded(frame.module.into()).zip(symbol) {
            Some((loaded, symbol)) => {
                Subject::FunctionPlace(FunctionPlace::new(loaded.clone(), symbol))
            }
            None => Subject::Text,
        }
    }

    /// Prefixes a name with the letter of its CPU mode, unless that is a column of its own.
    fn marked(&self, letter: char, text: &str) -> String {
        let is_marked = self.query.needs.marks;
        if is_marked {
            ["[", letter.encode_utf8(&mut [0; 4]), "] ", text].concat()
        } else {
            text.to_owned()
        }
    }

    /// Returns whether unresolved addresses are formatted as in perf; otherwise with their module
    /// and `0x`.
    fn as_perf(&self) -> bool {
        self.query.separator.is_some()
    }

    /// Formats an address without its module.
    fn address(&self, address: u64) -> String {
        if self.as_perf() { padded_hex(address) } else { format!("{address:#018x}") }
    }

    /// Returns the name of the function in a [`Field::Parent`] word.
    fn parent(&self, word: u64) -> String {
        let id = (word & 0xffff_ffff).checked_sub(1).and_then(|id| u32::try_from(id).ok());
        let name =
            self.loaded(word >> 32).zip(id).and_then(|(loaded, id)| loaded.name(SymbolId(id)));
        name.map_or_else(|| "[other]".into(), Cow::into_owned)
    }

    fn symbol_size(&self, row: &Key) -> Option<u64> {
        let id = SymbolId(u32::try_from(Field::Address.of(row)).ok()?);
        let end = KeyAddress::At.end(row);
        let is_symbol = end.is_symbol && !end.is_inlined;
        let symbol = self.loaded(Field::Module.of(row))?.symbol(id).filter(|_| is_symbol)?;
        Some(symbol.end - symbol.start)
    }

    /// Returns the symbol at an address in a module and the offset in it; without a symbol, the
    /// address `shown`.
    fn data_symbol(&self, module: u64, address: u64, shown: u64) -> String {
        match self.loaded(module).and_then(|loaded| Some((loaded, loaded.table.lookup(address)?))) {
            Some((loaded, symbol)) => {
                format!("{}+{:#x}", loaded.shown(symbol.name), address - symbol.start)
            }
            None => self.address(shown),
        }
    }

    /// Returns the source line as `file:line`, `??:0` if unknown.
    fn source_line(&self, row: &Key, side: KeyAddress) -> String {
        let number =
            side.line().of(row).checked_sub(1).and_then(|number| u32::try_from(number).ok());
        let module = self.loaded(side.module().of(row));
        module
            .zip(number)
            .map_or_else(|| "??:0".into(), |(loaded, number)| loaded.lines().text(LineId(number)))
    }
}

/// Returns the process in a word of [`Field::Process`]; -1 if no record says it.
fn pid(word: u64) -> i32 {
    u32::try_from(word).map_or(-1, u32::cast_signed)
}

/// Function that reads the key of a row into another row's key: a key is long, and few of its words
/// are in use.
type ReadKey<'k> = &'k (dyn Fn(usize, &mut Key) + Sync);

/// The first sampled thread of each tid.
type Threads = FxHashMap<i32, ThreadRef>;

/// Distinct contents of text cells, by number, each with a row that has it.
type Distinct = IndexMap<[u64; 4], usize, FxBuildHasher>;
