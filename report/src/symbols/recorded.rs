//! Symbols that the recording itself has: Android's simpleperf leaves the symbols of the files that
//! its samples hit.
//!
//! They are from the recorded device, so they need no proof, and come before all files. How a
//! symbol's address relates to the one by which it is looked up depends on the kind of its file
//! ([`Base`]):
//!
//! ```text
//!   ELF file, its place known:   file offset     = symbol − min_vaddr + offset of min_vaddr
//!   ELF file of old recordings:  from the start of its mapping = symbol − min_vaddr
//!   file with dex code:          file offset     = symbol
//!   kernel module:               sampled address = symbol − min_vaddr + offset in memory + load address
//!   kernel, JIT's code:          sampled address = symbol
//! ```
//!
//! Source: `IpToVaddrInFile` in simpleperf's `dso.cpp`.

use std::cmp::Ordering;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use recrep_format::abi::RecordType;
use recrep_format::error::Error;
use recrep_format::feature::{
    Feature as _, SimpleperfFile, SimpleperfFileKind, SimpleperfFiles, SimpleperfFiles2,
};
use recrep_format::read::File;
use recrep_format::record::RawRecord;
use rustc_hash::FxHashMap;

use super::kernel::kallsyms::Kallsyms;
use super::outcome::Refusal;
use super::search::proof::Reference;
use super::table::{SymbolTable, TableBuilder};

/// Bit in the protection of a mapping by which simpleperf marks code of a JIT, in a file with its
/// symbols.
const JIT_CODE: u32 = 0x4000;

/// Symbols of one module. Equal ones have equal symbols.
#[derive(Clone, Debug)]
pub struct RecordedSymbols(Arc<RecordedContents>);

#[derive(Debug)]
struct RecordedContents {
    /// Of all else, so that to compare modules takes no time.
    hash: u64,
    base: Base,
    symbols: Vec<RecordedSymbol>,
    /// Symbols of the kernel, in which those of modules are looked up, too.
    kernel: Option<RecordedSymbols>,
    /// Text of `/proc/kallsyms`.
    kallsyms: Option<Box<[u8]>>,
}

#[derive(Debug, Hash)]
struct RecordedSymbol {
    start: u64,
    len: u32,
    name: Box<[u8]>,
}

/// Address that symbols are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    /// The beginning of the file; symbols have addresses as if it were this one.
    File(u64),
    /// The start of the mapping, which is this linked address.
    Mapping(u64),
    /// The load address of a kernel module, which is this linked address.
    Module(u64),
    /// None: addresses at run time.
    Zero,
}

/// Symbols in a recording, by the path of their file.
#[derive(Debug, Default)]
pub(crate) struct RecordedFiles<'a> {
    files: FxHashMap<&'a [u8], RecordedSymbols>,
    kernel: Option<RecordedSymbols>,
    /// Error that ended reading early.
    pub damage: Option<Error>,
}

impl<'a> RecordedFiles<'a> {
    /// Returns the symbols that simpleperf left in `file` and its records.
    pub(crate) fn of(file: &File<'a>, records: &[RawRecord<'a>]) -> Self {
        let mut all = Self::default();
        if !file.is_of_simpleperf() {
            return all;
        }
        let (mut found, mut kernel) = (Vec::new(), Vec::new());
        if let Some(mut c) = file.feature_cursor(SimpleperfFiles::ID) {
            (found, all.damage) = SimpleperfFiles::readable(&mut c);
        } else if let Some(mut c) = file.feature_cursor(SimpleperfFiles2::ID) {
            (found, all.damage) = SimpleperfFiles2::readable(&mut c);
        }
        let lists =
            records.iter().filter(|raw| raw.header.kind == RecordType::SIMPLEPERF_KERNEL_SYMBOL);
        let kallsyms =
            lists.filter_map(|raw| raw.kallsyms(file.endian)).find(|text| !text.is_empty());
        found.retain(|file| {
            let is_kernel = file.kind == SimpleperfFileKind::KERNEL;
            if is_kernel {
                kernel.extend(symbols_of(file));
            }
            !is_kernel
        });
        if !kernel.is_empty() || kallsyms.is_some() {
            all.kernel = Some(RecordedSymbols::new(Base::Zero, kernel, None, kallsyms));
        }
        for file in &found {
            let kernel =
                all.kernel.clone().filter(|_| file.kind == SimpleperfFileKind::KERNEL_MODULE);
            let symbols =
                RecordedSymbols::new(Base::of(file), symbols_of(file).collect(), kernel, None);
            all.files.insert(file.path, symbols);
        }
        all
    }

    /// Returns the symbols of the kernel.
    pub(crate) fn kernel(&self) -> Option<RecordedSymbols> {
        self.kernel.clone()
    }

    /// Returns the symbols of a kernel module: its own, or those of the kernel.
    pub(crate) fn kernel_module(&self, path: &[u8]) -> Option<RecordedSymbols> {
        self.files.get(path).cloned().or_else(|| self.kernel())
    }

    /// Returns the symbols of a user mapping (of JIT code, given its process), and the address by
    /// which its first byte is looked up.
    pub(crate) fn mapped(
        &self,
        path: &[u8],
        jit: Option<i32>,
        prot: u32,
        start: u64,
    ) -> Option<FromRecording> {
        if self.files.is_empty() {
            return None;
        }
        let symbols = match jit {
            Some(pid) => self.files.get(format!("perf-{pid}.map").as_bytes()),
            None => self.files.get(path),
        }?;
        let is_jit = prot & JIT_CODE != 0;
        let symbols = if is_jit { symbols.at_run_time() } else { symbols.clone() };
        let first = match symbols.0.base {
            Base::File(_) | Base::Module(_) => None,
            Base::Mapping(_) => Some(0),
            Base::Zero => Some(start),
        };
        Some(FromRecording { symbols, first })
    }
}

/// A module of the kernel.
pub(super) struct KernelModule {
    pub(super) name: String,
    /// Load address.
    pub(super) start: u64,
}

/// Symbols of a user mapping.
pub(crate) struct FromRecording {
    pub symbols: RecordedSymbols,
    /// Address by which the first byte is looked up; `None` for that of the module's kind.
    pub first: Option<u64>,
}

impl Base {
    fn of(file: &SimpleperfFile<'_>) -> Self {
        match (file.kind, file.known_offset()) {
            (SimpleperfFileKind::ELF, Some(offset)) => {
                Self::File(file.min_vaddr.wrapping_sub(offset))
            }
            (SimpleperfFileKind::ELF, None) => Self::Mapping(file.min_vaddr),
            (SimpleperfFileKind::DEX, _) => Self::File(0),
            (SimpleperfFileKind::KERNEL_MODULE, offset) => {
                Self::Module(file.min_vaddr.wrapping_sub(offset.unwrap_or(0)))
            }
            _ => Self::Zero,
        }
    }
}

fn symbols_of(file: &SimpleperfFile<'_>) -> impl Iterator<Item = RecordedSymbol> {
    let named =
        file.symbols.iter().filter(|symbol| !symbol.name.is_empty() && !symbol.name.contains(&0));
    named.map(|symbol| RecordedSymbol {
        start: symbol.start,
        len: symbol.len,
        name: symbol.name.into(),
    })
}

impl RecordedSymbols {
    fn new(
        base: Base,
        symbols: Vec<RecordedSymbol>,
        kernel: Option<Self>,
        kallsyms: Option<&[u8]>,
    ) -> Self {
        let mut hasher = DefaultHasher::new();
        (base, &symbols, &kernel, kallsyms).hash(&mut hasher);
        let (hash, kallsyms) = (hasher.finish(), kallsyms.map(Box::from));
        Self(Arc::new(RecordedContents { hash, base, symbols, kernel, kallsyms }))
    }

    /// Returns the same symbols, whose addresses are those at run time.
    fn at_run_time(&self) -> Self {
        let copy =
            |symbol: &RecordedSymbol| RecordedSymbol { name: symbol.name.clone(), ..*symbol };
        Self::new(Base::Zero, self.0.symbols.iter().map(copy).collect(), None, None)
    }

    /// Builds the table of the symbols of a file, the kernel (whose reference symbol moves them),
    /// or a module of it.
    pub(super) fn table(
        &self,
        kernel_module: Option<&KernelModule>,
        reference: Option<&Reference>,
        demangle: bool,
    ) -> Result<SymbolTable, Refusal> {
        let RecordedContents { base, symbols, kernel, kallsyms, .. } = &*self.0;
        if let (true, Some(text)) = (symbols.is_empty(), kallsyms) {
            let list = Kallsyms::parse(text.to_vec())?;
            return match kernel_module {
                Some(module) => list.module(&module.name),
                None => list.kernel(reference),
            };
        }
        let start = kernel_module.map_or(0, |module| module.start);
        let base = match *base {
            Base::File(base) | Base::Mapping(base) => base,
            Base::Module(base) => base.wrapping_sub(start),
            Base::Zero => 0,
        };
        let of_kernel =
            kernel.iter().flat_map(|kernel| &kernel.0.symbols).map(|symbol| (symbol, 0));
        let mut table = TableBuilder::new(demangle);
        for (symbol, base) in symbols.iter().map(|symbol| (symbol, base)).chain(of_kernel) {
            let start = symbol.start.wrapping_sub(base);
            table.add(&symbol.name, start, start.saturating_add(symbol.len.into()));
        }
        table.settle();
        Ok(table.finish())
    }
}

impl PartialEq for RecordedSymbols {
    fn eq(&self, other: &Self) -> bool {
        self.0.hash == other.0.hash
    }
}

impl Eq for RecordedSymbols {}

impl Hash for RecordedSymbols {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash.hash(state);
    }
}

impl PartialOrd for RecordedSymbols {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RecordedSymbols {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.hash.cmp(&other.0.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::module::ModuleKind;

    fn symbols(base: Base, kernel: Option<RecordedSymbols>) -> RecordedSymbols {
        let symbol = |start, name: &[u8]| RecordedSymbol { start, len: 16, name: name.into() };
        RecordedSymbols::new(
            base,
            vec![symbol(0x1010, b"f"), symbol(0x1020, b"_Z1gi")],
            kernel,
            None,
        )
    }

    fn name(symbols: &RecordedSymbols, kind: &ModuleKind, address: u64) -> Option<String> {
        let start = if let ModuleKind::KernelModule { start } = *kind { Some(start) } else { None };
        let module = start.map(|start| KernelModule { name: "x".into(), start });
        let table = symbols.table(module.as_ref(), None, true).unwrap();
        table.lookup(address).map(|symbol| String::from_utf8_lossy(symbol.name).into_owned())
    }

    #[test]
    fn symbols_are_looked_up_by_the_address_of_their_kind() {
        let offset = symbols(Base::File(0x800), None);
        assert_eq!(name(&offset, &ModuleKind::File, 0x810).as_deref(), Some("f"));
        assert_eq!(name(&offset, &ModuleKind::File, 0x82f).as_deref(), Some("_Z1gi"));
        assert_eq!(name(&offset, &ModuleKind::File, 0x830), None);
        let mapping = symbols(Base::Mapping(0x1000), None);
        assert_eq!(name(&mapping, &ModuleKind::File, 0x10).as_deref(), Some("f"));
        let kernel = symbols(Base::Zero, None);
        assert_eq!(name(&kernel, &ModuleKind::Kernel, 0x1010).as_deref(), Some("f"));
        // A module whose address 0x1000 is 0x20 into its memory.
        let module = symbols(Base::Module(0x1000 - 0x20), Some(kernel));
        let kind = ModuleKind::KernelModule { start: 0x9000 };
        assert_eq!(name(&module, &kind, 0x9030).as_deref(), Some("f"));
        assert_eq!(name(&module, &kind, 0x1020).as_deref(), Some("_Z1gi"));
    }

    #[test]
    fn a_list_of_the_kernel_is_used_where_no_symbols_are() {
        let text = b"ffffffff81000000 T _text\nffffffff81000010 t a\nffffffffc0000000 t b\t[snd]\n";
        let list = RecordedSymbols::new(Base::Zero, Vec::new(), None, Some(text));
        assert_eq!(name(&list, &ModuleKind::Kernel, 0xffff_ffff_8100_0011).as_deref(), Some("a"));
        assert!(list == RecordedSymbols::new(Base::Zero, Vec::new(), None, Some(text)));
        assert!(list != symbols(Base::Zero, None));
    }
}
