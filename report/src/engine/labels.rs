//! Cells of rows. Each distinct content is named once.

use std::borrow::Cow;

use indexmap::IndexMap;
use rayon::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::labeller::{Labeller, frame_at};
use crate::callchain::{Frame, NAMES_AT_ONCE, UNMAPPED};
use crate::profile::names::{
    CALLERS_UNKNOWN, FileOffset, FunctionLabel, FunctionName, LABEL_SLOT, Label, NewOrKnown,
    NumberSlot, Subject,
};
use crate::query::word_text::{cpu, cpu_mode_letter, padded_hex};
use crate::query::{
    CacheLine, Declaration, Field, Key, KeyAddress, Kind, Meta, NO_KEY, Name, Shown, SortKey,
};
use crate::symbols::{FunctionPlace, LineId, LineOrName, Module, ModuleKind, SourceLine, SymbolId};
use crate::timeline::{Activity, CommRef, ThreadRef, WaitKind};

/// Least number of rows whose distinct contents one core finds at a time.
const PART: usize = 1 << 14;

/// Bit of a cell that has the number of its label, rather than that of its content.
const KNOWN: u64 = 1 << 63;

impl Labeller<'_> {
    /// Returns the words of rows, given their keys: the number of the event, then the cells of the
    /// query's columns. Several rows may have equal words. Finds the distinct contents first, then
    /// names them in parallel.
    #[must_use]
    pub(crate) fn label(&self, rows: usize, read_key: ReadKey<'_>) -> Vec<u64> {
        let width = self.query.width();
        let threads = self.threads(rows, read_key);
        let mut words = vec![0; rows * width];
        // Each core numbers the distinct contents of some rows; their labels are joined. Fewer parts
        // name fewer contents.
        let size = rows.div_ceil(rayon::current_num_threads()).max(PART);
        let parts = words.par_chunks_mut(size * width).enumerate();
        let parts: Vec<Vec<Distinct>> =
            parts.map(|(part, words)| self.put_cells(part * size, words, read_key)).collect();
        for (place, column) in self.query.columns.iter().enumerate() {
            if column.key.kind(self.query.nanosecs) != Kind::Label {
                continue;
            }
            let contents: Vec<&Distinct> =
                parts.iter().filter_map(|part| part.get(place)).collect();
            let numbers = self.number_labels(column.key, &contents, read_key, &threads);
            words.par_chunks_mut(size * width).zip(&numbers).for_each(|(words, numbers)| {
                put_numbers(words.iter_mut().skip(1 + place).step_by(width), numbers);
            });
        }
        words
    }

    /// Puts the events and cells of rows from `first` on into their words. Cells of columns of
    /// labels get the number of their content in the column, unless the number of their label is
    /// known. Returns the contents of each column.
    fn put_cells(&self, first: usize, words: &mut [u64], read_key: ReadKey<'_>) -> Vec<Distinct> {
        let columns = &self.query.columns;
        let columns: Vec<(&Declaration, Kind)> =
            columns.iter().map(|column| column.key.declared()).zip(self.query.kinds()).collect();
        let (mut contents, mut key) = (vec![Distinct::default(); columns.len()], NO_KEY);
        for (row, words) in (first..).zip(words.chunks_exact_mut(self.query.width())) {
            let Some((event, cells)) = words.split_first_mut() else { continue };
            read_key(row, &mut key);
            *event = u64::from(Meta::unpack(Field::Meta.of(&key)).event);
            for (((declared, kind), cell), contents) in columns.iter().zip(cells).zip(&mut contents)
            {
                *cell = match kind {
                    Kind::Label => {
                        match self.label_slot(declared, &key).and_then(NumberSlot::get) {
                            Some(label) => KNOWN | u64::from(label),
                            None => {
                                let content = contents.entry(declared.content(&key));
                                let number = content.index() as u64;
                                content.or_insert(row);
                                number
                            }
                        }
                    }
                    // Rows must not differ in digits that are not displayed.
                    Kind::Micros => declared.number(&key) / 1000 * 1000,
                    _ => declared.number(&key),
                };
            }
        }
        contents
    }

    /// Returns the numbers of the labels of a column, for each content of each part.
    fn number_labels(
        &self,
        column: SortKey,
        parts: &[&Distinct],
        read_key: ReadKey<'_>,
        threads: &Threads,
    ) -> Vec<Vec<u32>> {
        let label = |row: usize| {
            let mut key = NO_KEY;
            read_key(row, &mut key);
            let label = self.column_label(column, &key, threads);
            NewOrKnown::New(label, self.label_slot(column.declared(), &key))
        };
        let rows: Vec<Vec<usize>> =
            parts.iter().map(|part| part.values().copied().collect()).collect();
        let labels: Vec<Vec<NewOrKnown<'_, Label<FunctionName>>>> = rows
            .into_par_iter()
            .map(|rows| rows.into_par_iter().with_max_len(NAMES_AT_ONCE).map(label).collect())
            .collect();
        labels.into_iter().map(|labels| self.names.labels(labels)).collect()
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

    /// Returns the slot for the number of a column's label, if that is a function.
    fn label_slot(&self, column: &Declaration, row: &Key) -> Option<NumberSlot<'_>> {
        let Shown::Name(Name::Function(side)) = column.shown else { return None };
        let frame = frame_at(row, side);
        self.slot(&frame, LABEL_SLOT, frame.end.cpu_mode)
    }

    /// Returns the label of a column.
    fn column_label(&self, column: SortKey, row: &Key, threads: &Threads) -> Label<FunctionName> {
        let declared = column.declared();
        let word = declared.word(row);
        match declared.shown {
            // Columns of numbers have no labels.
            Shown::Number(_) => Label::text(""),
            Shown::Text(text) => Label::Text(text(word).into(), Subject::Word(word)),
            Shown::Trace => {
                let text = self.traced.map(|traced| traced.text(word, column));
                Label::text(text.unwrap_or_default())
            }
            Shown::Input => Label::text(self.input_part(column)),
            Shown::Name(Name::Function(side)) => self.function_label(row, side),
            Shown::Name(Name::FunctionOffset) => self.offset_label(row),
            Shown::Name(name) => {
                let text = self.name(name, row, word, threads);
                Label::Text(text.into(), self.subject(name, row, word))
            }
        }
    }

    /// Returns what the text of a name stands for.
    fn subject(&self, name: Name, row: &Key, first: u64) -> Subject {
        match name {
            Name::Thread => Subject::Task(self.timeline.thread_label(ThreadRef::unpack(first)).0),
            Name::Process => Subject::Task(pid(first)),
            Name::FileOffset(side) => self.file_offset(row, side),
            Name::FunctionPlace => self.function_place(row),
            _ => Subject::Text,
        }
    }

    /// Returns the part of the input's path that a `--by` column shows.
    fn input_part(&self, column: SortKey) -> &str {
        let SortKey::Input(number) = column else { return "" };
        self.query.by.get(usize::from(number)).map_or("", |by| by.part(self.input))
    }

    /// Returns the name that the first word of a column and the others of the row stand for.
    fn name(&self, name: Name, row: &Key, first: u64, threads: &Threads) -> String {
        let word = |field: Field| field.of(row);
        let meta = Meta::unpack(word(Field::Meta));
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
            // Their labels have the functions.
            Name::Function(_) | Name::FunctionOffset => String::new(),
            Name::FunctionSize => {
                self.symbol_size(row).map_or_else(|| "unknown".into(), |size| size.to_string())
            }
            // The subjects distinguish functions of two builds.
            Name::FunctionPlace => format!("{} {:x}", self.path(first), word(Field::Address)),
            Name::Line(side) => {
                self.source_line(row, side).map_or_else(|| "??:0".into(), |line| line.to_string())
            }
            Name::SourceFile => match self.source_line(row, KeyAddress::At) {
                Some(LineOrName::Line(SourceLine { file, .. })) => file.into(),
                _ => ".".into(),
            },
            Name::FileOffset(side) => format!("{}+0x{:x}", self.path(first), word(side.address())),
            Name::Data | Name::DataSymbol | Name::CacheLine => self.data_name(name, row, first),
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
            Name::Wait => WaitKind::unpack(first).map_or("N/A", WaitKind::name).into(),
        }
    }

    /// Returns the name of a data address, with the letter of the CPU mode.
    fn data_name(&self, name: Name, row: &Key, first: u64) -> String {
        let letter = cpu_mode_letter(Meta::unpack(Field::Meta.of(row)).at.cpu_mode);
        match name {
            Name::DataSymbol => {
                let address = Field::DataAddress.of(row);
                self.marked(letter, &self.data_symbol(first, address, Field::DataAddr.of(row)))
            }
            Name::CacheLine => {
                let line = CacheLine::unpack(Field::DataLine.of(row));
                // `s` is for data shared between processes; at `X` nothing is mapped.
                let letter = match letter {
                    _ if !line.is_mapped => 'X',
                    letter if line.is_shared && letter != 'k' => 's',
                    letter => letter,
                };
                self.marked(letter, &self.data_symbol(first, line.address, line.address))
            }
            _ => self.marked(letter, &self.address(first)),
        }
    }

    /// Returns the path of a module, given its number in a key.
    fn path(&self, number: u64) -> Cow<'_, str> {
        self.module(number)
            .map_or_else(|| "[unknown]".into(), |module| String::from_utf8_lossy(&module.path))
    }

    /// Returns the label of the function at an address, or of the address without one.
    fn function_label(&self, row: &Key, side: KeyAddress) -> Label<FunctionName> {
        let frame = frame_at(row, side);
        self.labelled(&frame, None).unwrap_or_else(|| self.address_label(&frame))
    }

    /// Returns the label of the function at the sampled address, with the offset in it.
    fn offset_label(&self, row: &Key) -> Label<FunctionName> {
        let frame = frame_at(row, KeyAddress::At);
        let offset = Some(Field::Offset.of(row));
        self.labelled(&frame, offset).unwrap_or_else(|| self.address_label(&frame))
    }

    /// Returns the label of a frame's function, if it has one.
    fn labelled(&self, frame: &Frame, offset: Option<u64>) -> Option<Label<FunctionName>> {
        let function = self.function_name(frame)?;
        let mark = self.mark(cpu_mode_letter(frame.end.cpu_mode));
        let is_inlined = frame.end.is_inlined;
        Some(Label::Function(FunctionLabel { function, is_inlined, mark, offset }))
    }

    /// Returns the label of an address without a function.
    pub(super) fn address_label(&self, frame: &Frame) -> Label<FunctionName> {
        let module = self.module(frame.module.into());
        // Kernel modules are looked up by absolute address, and printed relative to their start.
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
        let text = self.marked(cpu_mode_letter(frame.end.cpu_mode), &text);
        Label::Text(text.into(), Subject::Address(shown))
    }

    /// Returns the offset of an address in the file of its module.
    fn file_offset(&self, row: &Key, side: KeyAddress) -> Subject {
        match self.module_number(side.module().of(row)) {
            Some(module) => {
                Subject::FileOffset(FileOffset { module, offset: side.address().of(row) })
            }
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

    /// Returns the letter of a CPU mode, unless that is a column of its own.
    fn mark(&self, letter: char) -> Option<char> {
        Some(letter).filter(|_| self.query.needs.marks)
    }

    /// Prefixes a text with the letter of its CPU mode, unless that is a column of its own.
    fn marked(&self, letter: char, text: &str) -> String {
        match self.mark(letter) {
            Some(letter) => format!("[{letter}] {text}"),
            None => text.to_owned(),
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

    /// Returns the source line of an address, or what stands for it; `None` if none was looked up.
    fn source_line(&self, row: &Key, side: KeyAddress) -> Option<LineOrName> {
        let number = side.line().of(row).checked_sub(1)?;
        let number = LineId(u32::try_from(number).ok()?);
        Some(self.loaded(side.module().of(row))?.lines().get(number))
    }
}

/// Puts the numbers of labels into cells that have the numbers of contents.
fn put_numbers<'w>(cells: impl Iterator<Item = &'w mut u64>, numbers: &[u32]) {
    for cell in cells {
        let number = usize::try_from(*cell).ok().and_then(|cell| numbers.get(cell)).copied();
        *cell = number.map_or(*cell & !KNOWN, u64::from);
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

/// Distinct contents of cells, by number, each with a row that has it.
type Distinct = IndexMap<[u64; 4], usize, FxBuildHasher>;
