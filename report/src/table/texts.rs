//! Cells of rows. Each distinct text is built once.

use std::fmt::Display;

use rayon::prelude::*;
use recrep_format::abi::{BranchFlags, DataSrc};
use rustc_hash::FxHashMap;

use super::amounts::{page_size, transaction};
use super::side::{KeyAddress, LoadedSymbols, function, module_of};
use super::words::{branch, cpu_mode, cpu_mode_letter, padded_hex, process};
use crate::callchain::UNMAPPED;
use crate::count::{CacheLine, Field, Key, Meta, NO_KEY};
use crate::query::sort_key::SortKey;
use crate::symbols::{Addressing, LineId, Module, ModuleKind, SymbolId};
use crate::table::cells::{Kind, Labels, cpu, hex};
use crate::timeline::cgroups::Groups;
use crate::timeline::{Activity, CommRef, ThreadRef, Timeline};
use crate::tracepoints::Traced;

/// Number of rows whose distinct contents one core finds at a time.
const PART: usize = 1 << 14;

/// Builds the cells of a file's rows.
pub(super) struct Texts<'t, 'f> {
    pub(super) timeline: &'t Timeline,
    pub(super) modules: &'t [&'f Module],
    pub(super) events: &'t [String],
    pub(super) symbols: &'t LoadedSymbols,
    pub(super) groups: &'t Groups,
    pub(super) traced: Option<&'t Traced<'t>>,
    pub(super) nanosecs: bool,
    /// `true` if names begin with the letter of the CPU mode, as in perf; otherwise it is a column of its own.
    pub(super) levels: bool,
    /// `true` if unresolved addresses are formatted as in perf; otherwise with their module and `0x`.
    pub(super) as_perf: bool,
    pub(super) threads: FxHashMap<i32, ThreadRef>,
}

impl Texts<'_, '_> {
    /// Returns the rows' words: the number of the event, then the cells of these columns. Finds the distinct texts
    /// first, then builds them in parallel.
    pub(super) fn rows(
        &self,
        columns: &[SortKey],
        (rows, read_key): (usize, ReadKey<'_>),
        labels: &mut Labels,
    ) -> Vec<u64> {
        let width = 1 + columns.len();
        let mut words = vec![0; rows * width];
        // Each core numbers the distinct contents of some rows; then these are joined.
        let part = |(part, words): (usize, &mut [u64])| {
            let (mut found, mut key) = (vec![Distinct::default(); columns.len()], NO_KEY);
            for (row, words) in (part * PART..).zip(words.chunks_exact_mut(width)) {
                let Some((event, cells)) = words.split_first_mut() else { continue };
                read_key(row, &mut key);
                *event = u64::from(Meta::unpack(Field::Meta.of(&key)).event);
                for ((column, cell), found) in columns.iter().zip(cells).zip(&mut found) {
                    *cell = match content(*column, self.nanosecs, &key) {
                        Content::Number(number) => number,
                        Content::Text(content) => found.number(content, row),
                    };
                }
            }
            found
        };
        let mut parts: Vec<Vec<Distinct>> = words.par_chunks_mut(PART * width).enumerate().map(part).collect();
        for (place, column) in columns.iter().enumerate() {
            if Kind::of(*column, self.nanosecs) != Kind::Label {
                continue;
            }
            let mut all = Distinct::default();
            let joined: Vec<Vec<u64>> = parts
                .iter_mut()
                .filter_map(|part| part.get_mut(place))
                .map(|part| part.contents.iter().map(|(content, row)| all.number(*content, *row)).collect())
                .collect();
            let text = |(_, row): &([u64; 4], usize)| {
                let mut key = NO_KEY;
                read_key(*row, &mut key);
                self.text(*column, &key)
            };
            let texts: Vec<String> = all.contents.par_iter().map(text).collect();
            let numbers: Vec<u64> = texts.into_iter().map(|text| labels.intern(text)).collect();
            let of =
                |numbers: &[u64], cell: u64| usize::try_from(cell).ok().and_then(|cell| numbers.get(cell).copied());
            words.par_chunks_mut(PART * width).zip(&joined).for_each(|(words, joined)| {
                for cell in words.chunks_exact_mut(width).filter_map(|words| words.get_mut(1 + place)) {
                    *cell = of(joined, *cell).and_then(|cell| of(&numbers, cell)).unwrap_or(0);
                }
            });
        }
        words
    }

    fn text(&self, column: SortKey, row: &Key) -> String {
        let word = |field: Field| field.of(row);
        let meta = Meta::unpack(word(Field::Meta));
        let timeline = self.timeline;
        match column {
            SortKey::Comm => timeline.comm(CommRef::unpack(word(Field::Comm))).into_owned(),
            SortKey::Pid | SortKey::Tid => {
                let (tid, _) = timeline.thread_label(ThreadRef::unpack(word(Field::Thread)));
                let last = self.threads.get(&tid).map(|thread| timeline.thread_label(*thread).1);
                format!("{tid}:{}", last.map_or_else(Default::default, |comm| timeline.comm(comm)))
            }
            SortKey::Dso | SortKey::ToDso => self.dso(row, Field::Module),
            SortKey::FromDso => self.dso(row, Field::FromModule),
            SortKey::DataDso => self.dso(row, Field::DataModule),
            SortKey::Symbol | SortKey::ToSymbol => self.symbol(row, KeyAddress::At),
            SortKey::FromSymbol => self.symbol(row, KeyAddress::From),
            SortKey::Srcline | SortKey::ToSrcline => self.line(row, KeyAddress::At),
            SortKey::FromSrcline => self.line(row, KeyAddress::From),
            SortKey::Srcfile => source_file(&self.line(row, KeyAddress::At)).to_owned(),
            SortKey::PhysAddr => self.marked(cpu_mode_letter(meta.at.cpu_mode), self.address(word(Field::PhysAddr))),
            SortKey::CpuMode | SortKey::ToCpuMode => cpu_mode(meta.at.cpu_mode).into(),
            SortKey::FromCpuMode => cpu_mode(meta.from.cpu_mode).into(),
            SortKey::Event => self.events.get(usize::from(meta.event)).cloned().unwrap_or_default(),
            SortKey::Mem => DataSrc(word(Field::DataSrc)).mem(),
            SortKey::Snoop => DataSrc(word(Field::DataSrc)).snoop_name(),
            SortKey::Tlb => DataSrc(word(Field::DataSrc)).tlb_name(),
            SortKey::Locked => DataSrc(word(Field::DataSrc)).locked_name().into(),
            SortKey::Blocked => DataSrc(word(Field::DataSrc)).blocked_name().trim_start().into(),
            SortKey::Mispredict | SortKey::InTx | SortKey::Abort => branch(column, BranchFlags(word(Field::Branch))),
            SortKey::SymbolSize => self.symbol_size(row).map_or_else(|| "unknown".into(), |size| size.to_string()),
            SortKey::SymbolOffset => match function(self.symbols, row, KeyAddress::At) {
                Some(name) => {
                    self.marked(cpu_mode_letter(meta.at.cpu_mode), format_args!("{name}+{}", hex(word(Field::Offset))))
                }
                None => self.symbol(row, KeyAddress::At),
            },
            SortKey::DsoSize if word(Field::Module) == 0 => "unknown".into(),
            SortKey::DsoSize => word(Field::MapSize).to_string(),
            SortKey::DsoPath => self
                .module(row, Field::Module)
                .map_or_else(|| "[unknown]".into(), |module| String::from_utf8_lossy(&module.path).into_owned()),
            SortKey::BuildId => {
                let id = self.module(row, Field::Module).and_then(|module| module.build_id);
                id.map_or_else(String::new, |id| id.to_string())
            }
            SortKey::Socket => cpu(self.groups.socket(meta.cpu).unwrap_or(u32::MAX)),
            SortKey::Cgroup => match word(Field::Cgroup) {
                0 => "N/A".into(),
                id => self.groups.cgroup(id).unwrap_or("unknown").into(),
            },
            SortKey::CgroupId => {
                let (dev, inode) = self.groups.space(word(Field::CgroupSpace)).unwrap_or_default();
                format!("{dev}/0x{inode:x}")
            }
            SortKey::Transaction => transaction(word(Field::Transaction)),
            SortKey::CodePageSize => page_size(word(Field::CodePage)),
            SortKey::DataPageSize => page_size(word(Field::DataPage)),
            SortKey::DataSymbol => self.data_symbol(row),
            SortKey::DataCacheLine => self.cache_line(row),
            SortKey::DataMapping => match CacheLine::unpack(word(Field::DataLine)) {
                CacheLine { is_mapped: false, .. } => "none",
                CacheLine { is_shared: true, .. } => "shared",
                CacheLine { .. } => "private",
            }
            .into(),
            SortKey::External => if word(Field::External) == 1 { "Y" } else { "N" }.into(),
            SortKey::Process => process(word(Field::Process)),
            SortKey::Op => DataSrc(word(Field::DataSrc)).op_name().into(),
            SortKey::Parent => self.parent(word(Field::Parent)),
            SortKey::Trace | SortKey::TraceField(_) => self.traced(column, word(Field::Payload)),
            SortKey::Switch => Activity::unpack(word(Field::Switch)).name().into(),
            SortKey::FromPlace => self.place(row, KeyAddress::From),
            SortKey::ToPlace => self.place(row, KeyAddress::At),
            // Columns of numbers have no text.
            SortKey::Ip
            | SortKey::FromAddr
            | SortKey::ToAddr
            | SortKey::LineOffset
            | SortKey::LocalWeight
            | SortKey::Weight
            | SortKey::LocalInsLat
            | SortKey::InsLat
            | SortKey::LocalStageCycles
            | SortKey::StageCycles
            | SortKey::DataSrc
            | SortKey::Time
            | SortKey::Cycles
            | SortKey::Cpu
            | SortKey::Reach => String::new(),
        }
    }

    fn traced(&self, column: SortKey, number: u64) -> String {
        self.traced.map_or_else(String::new, |traced| traced.text(number, column))
    }

    fn dso(&self, row: &Key, field: Field) -> String {
        self.module(row, field).map_or_else(|| "[unknown]".into(), |module| module.name().into_owned())
    }

    fn symbol(&self, row: &Key, side: KeyAddress) -> String {
        let letter = cpu_mode_letter(side.end(row).cpu_mode);
        match function(self.symbols, row, side) {
            Some(name) => self.marked(letter, name),
            None if side.address().of(row) == UNMAPPED => self.marked(letter, "[unknown]"),
            None => match self.module(row, side.module()).filter(|module| !self.as_perf && has_offsets(module)) {
                Some(module) => {
                    self.marked(letter, format_args!("{}+{:#x}", module.name(), self.shown_address(row, side)))
                }
                None => self.marked(letter, self.address(self.shown_address(row, side))),
            },
        }
    }

    /// Prefixes a name with the letter of its CPU mode, unless that is a column of its own.
    fn marked(&self, letter: char, text: impl Display) -> String {
        if self.levels { format!("[{letter}] {text}") } else { text.to_string() }
    }

    /// Formats an address without its module.
    fn address(&self, address: u64) -> String {
        if self.as_perf { padded_hex(address) } else { format!("{address:#018x}") }
    }

    /// Returns the name of the function in a [`Field::Parent`] word.
    fn parent(&self, word: u64) -> String {
        let id = (word & 0xffff_ffff).checked_sub(1).and_then(|id| u32::try_from(id).ok());
        let name = module_of(self.symbols, word >> 32).zip(id).and_then(|(loaded, id)| loaded.name(SymbolId(id)));
        name.map_or_else(|| "[other]".into(), std::borrow::Cow::into_owned)
    }

    /// Formats an address as its module's path and the offset in it.
    fn place(&self, row: &Key, side: KeyAddress) -> String {
        let path = self.module(row, side.module()).map(|module| String::from_utf8_lossy(&module.path));
        format!("{}+0x{:x}", path.as_deref().unwrap_or("[unknown]"), side.address().of(row))
    }

    fn symbol_size(&self, row: &Key) -> Option<u64> {
        let id = SymbolId(u32::try_from(Field::Address.of(row)).ok()?);
        let end = KeyAddress::At.end(row);
        let is_symbol = end.is_symbol && !end.is_inlined;
        let symbol = module_of(self.symbols, Field::Module.of(row))?.table.get(id).filter(|_| is_symbol)?;
        Some(symbol.end - symbol.start)
    }

    fn data_symbol(&self, row: &Key) -> String {
        let letter = cpu_mode_letter(KeyAddress::At.end(row).cpu_mode);
        let loaded = module_of(self.symbols, Field::DataModule.of(row));
        match loaded.and_then(|loaded| Some((loaded, loaded.lookup(Field::DataAddress.of(row))?))) {
            Some((loaded, symbol)) => {
                let offset = Field::DataAddress.of(row) - symbol.start;
                self.marked(letter, format_args!("{}+{}", loaded.shown(symbol.name), hex(offset)))
            }
            None => self.marked(letter, self.address(Field::DataAddr.of(row))),
        }
    }

    /// Formats a cache line as the symbol of its first byte, or its address. The letter is `s` for data shared between
    /// processes, `X` if nothing is mapped.
    fn cache_line(&self, row: &Key) -> String {
        let line = CacheLine::unpack(Field::DataLine.of(row));
        let letter = match KeyAddress::At.end(row).cpu_mode {
            _ if !line.is_mapped => 'X',
            bits if line.is_shared && cpu_mode_letter(bits) != 'k' => 's',
            bits => cpu_mode_letter(bits),
        };
        let loaded = module_of(self.symbols, Field::DataModule.of(row));
        match loaded.and_then(|loaded| Some((loaded, loaded.lookup(line.address)?))) {
            Some((loaded, symbol)) => {
                let offset = hex(line.address - symbol.start);
                self.marked(letter, format_args!("{}+{offset}", loaded.shown(symbol.name)))
            }
            None => self.marked(letter, self.address(line.address)),
        }
    }

    /// Returns the source line as `file:line`, `??:0` if unknown.
    fn line(&self, row: &Key, side: KeyAddress) -> String {
        let number = side.line().of(row).checked_sub(1).and_then(|number| u32::try_from(number).ok());
        let module = module_of(self.symbols, side.module().of(row));
        module.zip(number).map_or_else(|| "??:0".into(), |(loaded, number)| loaded.lines().text(LineId(number)))
    }

    fn module(&self, row: &Key, field: Field) -> Option<&Module> {
        let index = usize::try_from(field.of(row).checked_sub(1)?).ok()?;
        self.modules.get(index).copied()
    }

    /// Returns an unresolved address as it is printed: relative to the start for kernel modules, which are looked up by
    /// absolute address.
    fn shown_address(&self, row: &Key, side: KeyAddress) -> u64 {
        let address = side.address().of(row);
        match self.module(row, side.module()).map(|m| &m.kind) {
            Some(ModuleKind::KernelModule { start, .. }) => address.wrapping_sub(*start),
            _ => address,
        }
    }
}

/// Function that reads the key of a row into another row's key: a key is long, and few of its words are in use.
pub(super) type ReadKey<'k> = &'k (dyn Fn(usize, &mut Key) + Sync);

/// Content of one cell.
enum Content {
    /// A number.
    Number(u64),
    /// A text that depends on these words only.
    Text([u64; 4]),
}

/// Distinct contents of text cells, by number, each with a row that has it.
#[derive(Clone, Debug, Default)]
struct Distinct {
    numbers: FxHashMap<[u64; 4], u64>,
    contents: Vec<([u64; 4], usize)>,
}

impl Distinct {
    /// Returns the number of a row's content.
    fn number(&mut self, content: [u64; 4], row: usize) -> u64 {
        let Self { numbers, contents } = self;
        *numbers.entry(content).or_insert_with(|| {
            contents.push((content, row));
            contents.len() as u64 - 1
        })
    }
}

/// Returns the content of a row's cell.
fn content(column: SortKey, nanosecs: bool, row: &Key) -> Content {
    let word = |field: Field| field.of(row);
    let meta = Meta::unpack(word(Field::Meta));
    let end = |side: KeyAddress| {
        [word(side.module()), word(side.address()), Meta { at: side.end(row), ..Meta::default() }.pack()]
    };
    let [first, second, third] = match column {
        SortKey::Comm => [word(Field::Comm), 0, 0],
        SortKey::Pid | SortKey::Tid => [word(Field::Thread), 0, 0],
        SortKey::Dso | SortKey::ToDso => [word(Field::Module), 0, 0],
        SortKey::FromDso => [word(Field::FromModule), 0, 0],
        SortKey::DataDso => [word(Field::DataModule), 0, 0],
        SortKey::Symbol | SortKey::ToSymbol => end(KeyAddress::At),
        SortKey::FromSymbol | SortKey::FromPlace => end(KeyAddress::From),
        SortKey::ToPlace => end(KeyAddress::At),
        SortKey::External => [word(Field::External), 0, 0],
        SortKey::Process => [word(Field::Process), 0, 0],
        SortKey::Srcline | SortKey::Srcfile | SortKey::ToSrcline => [word(Field::Module), word(Field::Line), 0],
        SortKey::FromSrcline => [word(Field::FromModule), word(Field::FromLine), 0],
        SortKey::Parent => [word(Field::Parent), 0, 0],
        SortKey::PhysAddr => [word(Field::PhysAddr), u64::from(meta.at.cpu_mode), 0],
        SortKey::CpuMode | SortKey::ToCpuMode => [u64::from(meta.at.cpu_mode), 0, 0],
        SortKey::FromCpuMode => [u64::from(meta.from.cpu_mode), 0, 0],
        SortKey::Event => [u64::from(meta.event), 0, 0],
        SortKey::Op | SortKey::Mem | SortKey::Snoop | SortKey::Tlb | SortKey::Locked | SortKey::Blocked => {
            [word(Field::DataSrc), 0, 0]
        }
        SortKey::Mispredict | SortKey::InTx | SortKey::Abort => [word(Field::Branch), 0, 0],
        SortKey::SymbolSize | SortKey::SymbolOffset => end(KeyAddress::At),
        SortKey::DsoSize => [word(Field::Module).min(1), word(Field::MapSize), 0],
        SortKey::DsoPath | SortKey::BuildId => [word(Field::Module), 0, 0],
        SortKey::Socket => [u64::from(meta.cpu), 0, 0],
        SortKey::Cgroup => [word(Field::Cgroup), 0, 0],
        SortKey::CgroupId => [word(Field::CgroupSpace), 0, 0],
        SortKey::Transaction => [word(Field::Transaction), 0, 0],
        SortKey::CodePageSize => [word(Field::CodePage), 0, 0],
        SortKey::DataPageSize => [word(Field::DataPage), 0, 0],
        SortKey::Trace | SortKey::TraceField(_) => [word(Field::Payload), 0, 0],
        SortKey::Switch => [word(Field::Switch), 0, 0],
        SortKey::DataSymbol => [word(Field::DataModule), word(Field::DataAddr), word(Field::DataAddress)],
        SortKey::DataCacheLine => [word(Field::DataModule), word(Field::DataLine), u64::from(meta.at.cpu_mode)],
        SortKey::DataMapping => [word(Field::DataLine), 0, 0],
        SortKey::Ip => return Content::Number(word(Field::Ip)),
        SortKey::FromAddr => return Content::Number(word(Field::From)),
        SortKey::ToAddr => return Content::Number(word(Field::To)),
        SortKey::LineOffset => return Content::Number(word(Field::LineOffset)),
        SortKey::LocalWeight | SortKey::Weight => return Content::Number(word(Field::Weight)),
        SortKey::LocalInsLat | SortKey::InsLat => return Content::Number(word(Field::Latency) & 0xffff),
        SortKey::LocalStageCycles | SortKey::StageCycles => return Content::Number(word(Field::Latency) >> 16),
        SortKey::DataSrc => return Content::Number(word(Field::DataSrc)),
        SortKey::Cycles => return Content::Number(BranchFlags(word(Field::Branch)).cycles().into()),
        SortKey::Time if nanosecs => return Content::Number(word(Field::Time)),
        // Rows must not differ in digits that are not displayed.
        SortKey::Time => return Content::Number(word(Field::Time) / 1000 * 1000),
        SortKey::Cpu => return Content::Number(meta.cpu.into()),
        SortKey::Reach => return Content::Number(word(Field::Reach)),
    };
    // Only two columns depend on a fourth word.
    let fourth = match column {
        SortKey::SymbolOffset => word(Field::Offset),
        SortKey::DataSymbol => u64::from(meta.at.cpu_mode),
        _ => 0,
    };
    Content::Text([first, second, third, fourth])
}

/// Returns the file of a source line; `.` if unknown, as in perf.
fn source_file(line: &str) -> &str {
    let is_line = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    line.rsplit_once(':').filter(|(file, number)| *file != "??" && is_line(number)).map_or(".", |(file, _)| file)
}

/// Returns whether addresses in a module are printed relative to its start.
fn has_offsets(module: &Module) -> bool {
    module.addressing() != Addressing::Absolute || matches!(module.kind, ModuleKind::KernelModule { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::NO_KEY;

    #[test]
    fn only_label_columns_have_texts() {
        for name in SortKey::list().split(", ") {
            let key = SortKey::named(name).unwrap();
            for nanosecs in [false, true] {
                let is_number = matches!(content(key, nanosecs, &NO_KEY), Content::Number(_));
                assert_eq!(is_number, Kind::of(key, nanosecs) != Kind::Label, "{name}");
            }
        }
    }
}
